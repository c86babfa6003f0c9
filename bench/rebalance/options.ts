import { Command } from 'commander';
import { settings } from '../../src/config/settings.ts';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  orders: {
    flags: '--orders <n>',
    description: 'orders of a round, and units of its sale: it sells out',
    least: 100,
    most: 1_000_000,
    fallback: 100_000,
    tiny: 400,
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of the sale; all buyers live at the first',
    least: 2,
    most: 256,
    fallback: 16,
    tiny: 4,
  },
  buyers: {
    flags: '--buyers <n>',
    description: 'buyers at once, of whom each waits for his answer before the next comes',
    least: 1,
    most: 10_000,
    fallback: 256,
    tiny: 16,
  },
  everyMs: {
    flags: '--every-ms <n>',
    description: 'the timer, in the rounds that have one',
    least: 1,
    most: 60_000,
    fallback: Number(settings.rebalanceEveryMs.fallback),
    tiny: 5,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'rounds of each way; medians are printed',
    least: 1,
    most: 100,
    fallback: 3,
    tiny: 1,
  },
} as const;

export type RebalanceParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:rebalance --').description(
    'What a crowd waits for refills if all of it lives at one segment, with and without the timer.',
  );
  return parseOptions(program, OPTIONS, argv);
}
