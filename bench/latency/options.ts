import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions, SEGMENTS } from '../support/options.ts';

export const OPTIONS = {
  seconds: {
    flags: '--seconds <n>',
    description: 'how long each load lasts',
    least: 1,
    most: 600,
    fallback: 5,
    tiny: 1,
  },
  connections: {
    flags: '--connections <n>',
    description: "the crowd's connections; at full load each has one purchase under way",
    least: 1,
    most: 10_000,
    fallback: 512,
    tiny: 16,
  },
  workers: {
    flags: '--workers <n>',
    description: 'threads of the node',
    least: 1,
    most: 64,
    fallback: Math.max(1, availableParallelism() - 1),
  },
  segments: SEGMENTS,
  rounds: {
    flags: '--rounds <n>',
    description: 'how often everything is measured; medians and quartiles are printed',
    least: 1,
    most: 100,
    fallback: 5,
    tiny: 1,
  },
} as const;

export type LatencyParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:latency --').description(
    'How long a purchase takes until it is in Postgres: alone, and at 10, 30 and 60 % of the most that the node can commit.',
  );
  return parseOptions(program, OPTIONS, argv);
}
