import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { connectionsWithin, openFilesLimit } from '../../src/node/process/open-files.ts';
import { type Invocation, type Parameters, parseOptions, SEGMENTS } from '../support/options.ts';

/** Half of a node's connections may listen. */
const MOST_LISTENERS = Math.floor(connectionsWithin(openFilesLimit()) / 2);

export const OPTIONS = {
  seconds: {
    flags: '--seconds <n>',
    description: 'how long each load of wrk lasts',
    least: 1,
    most: 600,
    fallback: 3,
    tiny: 1,
  },
  connections: {
    flags: '--connections <n>',
    description: "wrk's connections, and those that the people of the rush share",
    least: 1,
    most: 10_000,
    fallback: 512,
    tiny: 16,
  },
  workers: {
    flags: '--workers <n>',
    description: 'threads of the node, and of the echo server',
    least: 1,
    most: 64,
    fallback: Math.max(1, availableParallelism() - 1),
  },
  segments: SEGMENTS,
  rounds: {
    flags: '--rounds <n>',
    description: 'how often the giving of places is measured',
    least: 1,
    most: 100,
    fallback: 5,
    tiny: 1,
  },
  waiting: {
    flags: '--waiting <n>',
    description: 'places of the long queue',
    least: 5_000,
    most: 10_000_000,
    fallback: 1_000_000,
    tiny: 6_000,
  },
  sales: {
    flags: '--sales <n>',
    description: 'sales with a queue each, which the head serves beside each other',
    least: 1,
    most: 10_000,
    fallback: 1_000,
    tiny: 5,
  },
  returns: {
    flags: '--returns <n>',
    description: 'units that come back at random times, one after the other',
    least: 1,
    most: 10_000,
    fallback: 100,
    tiny: 3,
  },
  listeners: {
    flags: '--listeners <n>',
    description: 'streams of places, fewer than 20,000 if the limit of open files (ulimit -n) allows no more',
    least: 1,
    most: 100_000,
    fallback: Math.min(20_000, MOST_LISTENERS),
    tiny: 20,
  },
  people: {
    flags: '--people <n>',
    description: 'people of the rush',
    least: 20,
    most: 100_000,
    fallback: 20_000,
    tiny: 40,
  },
  units: {
    flags: '--units <n>',
    description: 'units that they come for',
    least: 1,
    most: 100_000,
    fallback: 1_000,
    tiny: 10,
  },
  minuteMs: {
    flags: '--minute-ms <n>',
    description: 'what a minute of the rush takes; 60000: real time',
    least: 100,
    most: 60_000,
    fallback: 6_000,
    tiny: 1_000,
  },
  minutes: {
    flags: '--minutes <n>',
    description: 'how many minutes the rush lasts',
    least: 1,
    most: 600,
    fallback: 10,
    tiny: 4,
  },
  askEveryMs: {
    flags: '--ask-every-ms <n>',
    description: 'how often each of the people asks, in real time',
    least: 100,
    most: 600_000,
    fallback: 5_000,
    tiny: 500,
  },
} as const;

export type QueueParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:queue --').description(
    'How fast places are given, what a long queue costs, how long a returned unit lies free, and a rush with and without a queue.',
  );
  return parseOptions(program, OPTIONS, argv);
}
