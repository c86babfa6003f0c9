import { randomInt } from 'node:crypto';
import { Command, Help, InvalidArgumentError, Option } from 'commander';
import type { RoundOptions } from './round.ts';
import type { Schedule } from './schedule.ts';
import { SCHEDULES, scheduleNamed } from './schedules.ts';

const SEED_LIMIT = 2 ** 31;
const MOST_ROUNDS = 1_000;
const MOST_SECONDS = 600;
/** More stock than is sold before the last strike, so that every fault hits a sale that is still selling. */
const ROUND = { stock: 5_000, segments: 4, limit: 2, customers: 16, servedBetween: 150 } as const;

export interface ChaosOptions {
  readonly schedules: readonly Schedule[];
  readonly rounds: number;
  readonly seed: number;
  readonly json: boolean;
  readonly round: Omit<RoundOptions, 'seed'>;
}

export function readOptions(argv: readonly string[]): ChaosOptions {
  const given = new Command('npm run chaos --')
    .description(
      'Faults on real processes while customers buy; afterwards every answer is compared with Postgres.',
    )
    .addOption(
      new Option('--only <names>', 'these faults, with commas between them').argParser(schedulesNamed),
    )
    .addOption(new Option('--rounds <n>', 'rounds of each fault').default(1).argParser(whole(1, MOST_ROUNDS)))
    .addOption(
      new Option('--seconds <n>', 'duration of a fault that does not end by itself')
        .default(2)
        .argParser(whole(1, MOST_SECONDS)),
    )
    .addOption(
      new Option('--seed <n>', 'seed of the customers (default: random)').argParser(whole(0, SEED_LIMIT)),
    )
    .option('--json', 'print one JSON object on stdout and nothing else there')
    .addHelpText('after', `\nFaults:\n${faultsText()}\n`)
    .parse(argv)
    .opts<{ only?: Schedule[]; rounds: number; seconds: number; seed?: number; json?: true }>();
  return {
    schedules: given.only ?? SCHEDULES,
    rounds: given.rounds,
    seed: given.seed ?? randomInt(SEED_LIMIT),
    json: given.json === true,
    round: { ...ROUND, holdMs: given.seconds * 1_000 },
  };
}

const NAME_COLUMNS = 20;

function faultsText(): string {
  const help = new Help();
  help.prepareContext({ helpWidth: process.stdout.columns });
  return SCHEDULES.map(({ name, what }) => help.formatItem(name, NAME_COLUMNS, what, help)).join('\n');
}

function schedulesNamed(text: string): Schedule[] {
  try {
    return text.split(',').map(scheduleNamed);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
