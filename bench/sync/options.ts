import { Command } from 'commander';
import { settings } from '../../src/config/settings.ts';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  orders: {
    flags: '--orders <n>',
    description: 'orders to carry into Postgres each time',
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
    description: "rows in one transaction; the default is the product's",
    least: 1,
    most: 50_000,
    fallback: Number(settings.syncBatchRows.fallback),
  },
  eventsStreamMax: {
    flags: '--events-stream-max <n>',
    description: 'EVENTS_STREAM_MAX of the relay of order events beside sync; 0: no relay',
    least: 0,
    most: 1_000_000_000,
    fallback: Number(settings.eventsStreamMax.fallback),
  },
  eventsYieldMs: {
    flags: '--events-yield-ms <n>',
    description: 'how long the relay waits for a sync that is behind; 0: not at all',
    least: 0,
    most: 600_000,
    fallback: Number(settings.eventsYieldMs.fallback),
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
  const program = new Command('npm run bench:sync --').description(
    'How fast sync carries orders into Postgres, compared with a bare insert of the same rows in the same run.',
  );
  return parseOptions(program, OPTIONS, argv);
}
