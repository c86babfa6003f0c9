import { randomInt } from 'node:crypto';
import { Command, Help, InvalidArgumentError, Option } from 'commander';
import { RECOVERY_MS } from './queue/round.ts';
import type { QueueRunOptions } from './queue/run-all.ts';
import { QUEUE_SCHEDULES, type QueueSchedule } from './queue/schedules.ts';
import type { RoundOptions } from './round.ts';
import type { Schedule } from './schedule.ts';
import { namedAmong, SCHEDULES } from './schedules.ts';

const SEED_LIMIT = 2 ** 31;
const MOST_ROUNDS = 1_000;
const MOST_SECONDS = 600;
/** More stock than is sold before the last strike, so that every fault hits a sale that is still selling. */
const ROUND = { stock: 5_000, segments: 4, limit: 2, customers: 16, servedBetween: 150 } as const;
/** Both times are longer than all people need to ask once over so many connections, and short, so that offers run out in a round. */
const QUEUE_ROUND = {
  connections: 64,
  segments: 4,
  offerSeconds: 6,
  presenceSeconds: 20,
  // So that some of the time between two strikes is judged.
  betweenMs: RECOVERY_MS + 5_000,
} as const;
const PEOPLE = 5_000;
/** Many more than the units, so that people wait, and so that enough are left when others cancel or let their offers run out. */
const PEOPLE_PER_UNIT = 50 / 3;
const FEWEST_PEOPLE = 400;
const MOST_PEOPLE = 20_000;

export interface ChaosOptions {
  readonly schedules: readonly Schedule[];
  readonly rounds: number;
  readonly seed: number;
  readonly json: boolean;
  readonly round: Omit<RoundOptions, 'seed'>;
  /** Faults on a sale with a queue, instead of `schedules` and `round`. */
  readonly queue?: QueueRunOptions;
}

interface Given {
  readonly only?: string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly seed?: number;
  readonly json?: true;
  readonly queue?: true;
  readonly people?: number;
}

export function readOptions(argv: readonly string[]): ChaosOptions {
  const command = new Command('npm run chaos --')
    .description(
      'Faults on real processes while customers buy; afterwards every answer is compared with Postgres.',
    )
    .addOption(
      new Option('--only <names>', 'these faults, with commas between them').argParser((text) =>
        text.split(','),
      ),
    )
    .option('--queue', 'on a sale with a queue')
    .addOption(
      new Option('--people <n>', `people in the queue (default: ${PEOPLE})`).argParser(
        whole(FEWEST_PEOPLE, MOST_PEOPLE),
      ),
    )
    .addOption(new Option('--rounds <n>', 'rounds of each fault').default(1).argParser(whole(1, MOST_ROUNDS)))
    .addOption(
      new Option('--seconds <n>', 'duration of a fault that does not end by itself')
        .default(2)
        .argParser(whole(1, MOST_SECONDS)),
    )
    .addOption(
      new Option('--seed <n>', 'seed of the customers or people (default: random)').argParser(
        whole(0, SEED_LIMIT),
      ),
    )
    .option('--json', 'print one JSON object on stdout and nothing else there')
    .addHelpText(
      'after',
      `\nFaults:\n${faultsText(SCHEDULES)}\n\nFaults with --queue:\n${faultsText(QUEUE_SCHEDULES)}\n`,
    )
    .parse(argv);
  const given = command.opts<Given>();
  if (given.people !== undefined && !given.queue) command.error('error: --people needs --queue');
  const seed = given.seed ?? randomInt(SEED_LIMIT);
  let schedules = SCHEDULES;
  let queueSchedules: readonly QueueSchedule[] = QUEUE_SCHEDULES;
  try {
    if (given.queue) queueSchedules = chosen(QUEUE_SCHEDULES, given.only);
    else schedules = chosen(SCHEDULES, given.only);
  } catch (error) {
    command.error(`error: --only: ${(error as Error).message}`);
  }
  const holdMs = given.seconds * 1_000;
  const people = given.people ?? PEOPLE;
  const round = { ...QUEUE_ROUND, people, stock: Math.ceil(people / PEOPLE_PER_UNIT), holdMs, seed };
  return {
    schedules,
    rounds: given.rounds,
    seed,
    json: given.json === true,
    round: { ...ROUND, holdMs },
    ...(given.queue && { queue: { schedules: queueSchedules, rounds: given.rounds, round } }),
  };
}

function chosen<T extends Schedule>(all: readonly T[], names: readonly string[] | undefined): readonly T[] {
  return names?.map((name) => namedAmong(all, name)) ?? all;
}

const NAME_COLUMNS = 20;

function faultsText(schedules: readonly Schedule[]): string {
  const help = new Help();
  help.prepareContext({ helpWidth: process.stdout.columns });
  return schedules.map(({ name, what }) => help.formatItem(name, NAME_COLUMNS, what, help)).join('\n');
}

function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
