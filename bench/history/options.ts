import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  orders: {
    flags: '--orders <n>',
    description: 'orders of ended sales, in all',
    least: 1_000,
    most: 200_000_000,
    fallback: 20_000_000,
    tiny: 20_000,
  },
  sales: {
    flags: '--sales <n>',
    description: 'ended sales',
    least: 10,
    most: 100_000,
    fallback: 10_000,
    tiny: 50,
  },
  selling: {
    flags: '--selling <n>',
    description: 'sales that sell',
    least: 1,
    most: 100,
    fallback: 20,
    tiny: 2,
  },
  held: {
    flags: '--held <n>',
    description: 'orders that each selling sale has had',
    least: 100,
    most: 1_000_000,
    fallback: 20_000,
    tiny: 500,
  },
  exported: {
    flags: '--exported <n>',
    description: 'orders of the larger one of two sales that are exported',
    least: 1_000,
    most: 100_000_000,
    fallback: 10_000_000,
    tiny: 5_000,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'measurements of each operation in each shop, in turns; the median is compared',
    least: 1,
    most: 100,
    fallback: 15,
    tiny: 2,
  },
} as const;

export type HistoryParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:history --').description(
    'What operations cost in a shop with many orders of ended sales, and in one without.',
  );
  return parseOptions(program, OPTIONS, argv);
}
