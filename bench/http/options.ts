import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { settings } from '../../src/config/settings.ts';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  connections: {
    flags: '--connections <n>',
    description: 'connections that wrk keeps open, each with one request under way',
    least: 1,
    most: 10_000,
    fallback: 512,
    tiny: 16,
  },
  seconds: {
    flags: '--seconds <n>',
    description: 'how long each phase is measured',
    least: 1,
    most: 3_600,
    fallback: 10,
    tiny: 1,
  },
  warmupSeconds: {
    flags: '--warmup-seconds <n>',
    description: 'how long each phase runs before it is measured; 0: not at all',
    least: 0,
    most: 3_600,
    fallback: 3,
    tiny: 0,
  },
  workers: {
    flags: '--workers <n>',
    description:
      'threads of the node, and of the echo server; the default leaves a core to the stores and to wrk',
    least: 1,
    most: 64,
    fallback: Math.max(1, availableParallelism() - 1),
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of the sales',
    least: 1,
    most: 1_024,
    fallback: 8,
  },
  eventsStreamMax: {
    flags: '--events-stream-max <n>',
    description: "the node's EVENTS_STREAM_MAX; 0: order events are not told to anybody",
    least: 0,
    most: 1_000_000_000,
    fallback: Number(settings.eventsStreamMax.fallback),
  },
  eventsYieldMs: {
    flags: '--events-yield-ms <n>',
    description: "the node's EVENTS_YIELD_MS; 0: order events are told at once, at the buyers' cost",
    least: 0,
    most: 600_000,
    fallback: Number(settings.eventsYieldMs.fallback),
  },
  nodeHttp: {
    flags: '--node-http <0|1>',
    description: '1: a second node, over node:http, goes through the same phases in the same run',
    least: 0,
    most: 1,
    fallback: 0,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often the four phases are gone through; medians are printed',
    least: 1,
    most: 100,
    fallback: 1,
  },
} as const;

export type HttpParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:http --').description(
    'Requests per second of a real node, beside a bare uWebSockets.js echo of the same request in the same run.',
  );
  return parseOptions(program, OPTIONS, argv);
}
