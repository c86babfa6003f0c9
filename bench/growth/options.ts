import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  orders: {
    flags: '--orders <n>',
    description: 'orders in a sample, rounded up to whole bursts of 512',
    least: 1,
    most: 200_000,
    fallback: 20_480,
    tiny: 1_024,
  },
  samples: {
    flags: '--samples <n>',
    description: 'samples of each point, after one that warms up; the cheapest is printed',
    least: 1,
    most: 100,
    fallback: 9,
    tiny: 1,
  },
  units: {
    flags: '--units <n>',
    description: 'the largest stock, from 1,000 up in powers of ten',
    least: 1_000,
    most: 1_000_000_000,
    fallback: 1_000_000,
    tiny: 1_000,
  },
  buyers: {
    flags: '--buyers <n>',
    description: 'the largest number of buyers in a record, from 1,000 up in powers of ten',
    least: 1_000,
    most: 10_000_000,
    fallback: 1_000_000,
    tiny: 1_000,
  },
  sales: {
    flags: '--sales <n>',
    description: 'the largest number of sales, from 1 up in powers of ten',
    least: 1,
    most: 10_000,
    fallback: 1_000,
    tiny: 10,
  },
  segments: {
    flags: '--segments <n>',
    description: 'the largest number of segments, from 1 up in powers of four',
    least: 1,
    most: 1_024,
    fallback: 256,
    tiny: 1,
  },
  idleSeconds: {
    flags: '--idle-seconds <n>',
    description: 'how long a node without buyers is measured',
    least: 1,
    most: 60,
    fallback: 2,
    tiny: 1,
  },
} as const;

export type GrowthParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:growth --').description(
    'How the cost of an order changes with stock, buyers, sales and segments, and how much memory it takes in Redis.',
  );
  return parseOptions(program, OPTIONS, argv);
}
