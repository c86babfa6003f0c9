import { Command } from 'commander';
import { settings } from '../../src/config/settings.ts';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  orders: {
    flags: '--orders <n>',
    description: 'orders that are carried into Postgres each time',
    least: 1,
    most: 2_000_000,
    fallback: 300_000,
    tiny: 20_000,
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of the sale, and so order logs',
    least: 1,
    most: 1_024,
    fallback: 8,
  },
  batchRows: {
    flags: '--batch-rows <n>',
    description: "rows in one transaction; the product's default is the default here",
    least: 1,
    most: 50_000,
    fallback: Number(settings.syncBatchRows.fallback),
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often both are measured; medians are printed',
    least: 1,
    most: 100,
    fallback: 3,
    tiny: 1,
  },
} as const;

export type SyncParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('bench:sync').description(
    'How fast sync carries orders into Postgres, beside a bare insert of the same rows in the same run.',
  );
  return parseOptions(program, OPTIONS, argv);
}
