import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  orders: {
    flags: '--orders <n>',
    description: 'orders of the sale in Postgres, each of another buyer',
    least: 1,
    most: 10_000_000,
    fallback: 1_000_000,
    tiny: 20_000,
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of the sale',
    least: 1,
    most: 1_024,
    fallback: 8,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often each is measured; medians are printed',
    least: 1,
    most: 100,
    fallback: 3,
    tiny: 1,
  },
} as const;

export type RecoverParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:recover --').description(
    'How long a rebuild of a sale from Postgres takes after Redis has lost everything, compared with only reading it.',
  );
  return parseOptions(program, OPTIONS, argv);
}
