import { Command } from 'commander';
import { settings } from '../../src/config/settings.ts';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  nodes: {
    flags: '--nodes <n>',
    description: 'the most nodes, and the most syncs; fewer of them are measured, too',
    least: 1,
    most: 8,
    fallback: 3,
    tiny: 2,
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of the sales that the nodes sell',
    least: 1,
    most: 1_024,
    fallback: 24,
  },
  connections: {
    flags: '--connections <n>',
    description: 'the same crowd: connections to all nodes together, each with one purchase under way',
    least: 8,
    most: 10_000,
    fallback: 256,
    tiny: 12,
  },
  takeOrders: {
    flags: '--take-orders <n>',
    description: 'equal batches: orders in a take; warm-ups find the connections for it',
    least: 1,
    most: 100,
    fallback: 6,
    tiny: 1,
  },
  seconds: {
    flags: '--seconds <n>',
    description: 'how long each point is measured',
    least: 1,
    most: 3_600,
    fallback: 4,
    tiny: 1,
  },
  warmupSeconds: {
    flags: '--warmup-seconds <n>',
    description: 'how long each point runs before it is measured; 0: not at all, so batches are not equal',
    least: 0,
    most: 3_600,
    fallback: 2,
    tiny: 0,
  },
  orders: {
    flags: '--orders <n>',
    description:
      'the backlog that syncs drain, in orders of all sales together; 0: neither a drain nor syncs beside nodes are measured',
    least: 0,
    most: 2_000_000,
    fallback: 300_000,
    tiny: 6_000,
  },
  sales: {
    flags: '--sales <n>',
    description: 'sales that syncs share, of eight segments each',
    least: 1,
    most: 1_000,
    fallback: 12,
  },
  eventsStreamMax: {
    flags: '--events-stream-max <n>',
    description: 'EVENTS_STREAM_MAX of nodes and syncs; 0: order events are not delivered',
    least: 0,
    most: 1_000_000_000,
    fallback: Number(settings.eventsStreamMax.fallback),
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often everything is measured; medians are printed',
    least: 1,
    most: 100,
    fallback: 5,
    tiny: 1,
  },
} as const;

export type ScaleParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:scale --').description(
    'Processor time of a committed order with more nodes and more primaries, and of draining a backlog with more syncs.',
  );
  return parseOptions(program, OPTIONS, argv);
}
