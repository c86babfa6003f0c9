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
    description: 'segments of the sale; the first is the home of all buyers',
    least: 2,
    most: 256,
    fallback: 16,
    tiny: 4,
  },
  buyers: {
    flags: '--buyers <n>',
    description: 'buyers at once; each waits for its answer before the next comes',
    least: 1,
    most: 10_000,
    fallback: 256,
    tiny: 16,
  },
  everyMs: {
    flags: '--every-ms <n>',
    description: 'the interval of the timer, in rounds with a timer',
    least: 1,
    most: 60_000,
    fallback: Number(settings.rebalanceEveryMs.fallback),
    tiny: 5,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'rounds of each variant; medians are printed',
    least: 1,
    most: 100,
    fallback: 3,
    tiny: 1,
  },
} as const;

export type RebalanceParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:rebalance --').description(
    'How long buyers wait for refills if all of them have the same home segment, with and without the timer.',
  );
  return parseOptions(program, OPTIONS, argv);
}
