import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  times: {
    flags: '--times <n>',
    description: 'how many times its capacity the node is asked for',
    least: 2,
    most: 100,
    fallback: 10,
    tiny: 4,
  },
  delayMs: {
    flags: '--delay-ms <n>',
    description:
      "how late Redis' answers are, so that the capacity of one lane can be exceeded so many times",
    least: 1,
    most: 400,
    fallback: 100,
  },
  laneCapacity: {
    flags: '--lane-capacity <n>',
    description:
      "the node's LANE_CAPACITY in the overload: so many orders at most are in a batch, so that a machine with few cores can offer many times the capacity. From some 2,000 on the queue is bounded by its wait instead",
    least: 1,
    most: 1_000_000,
    fallback: 64,
  },
  seconds: {
    flags: '--seconds <n>',
    description: 'how long the overload lasts',
    least: 1,
    most: 3_600,
    fallback: 15,
    tiny: 1,
  },
  calmSeconds: {
    flags: '--calm-seconds <n>',
    description: 'how long the load before it and behind it is measured, and the capacity',
    least: 1,
    most: 3_600,
    fallback: 8,
    tiny: 1,
  },
  lines: {
    flags: '--lines <n>',
    description: 'connections of those who are too many',
    least: 1,
    most: 15_000,
    fallback: 8_000,
    tiny: 1_500,
  },
  connections: {
    flags: '--connections <n>',
    description: 'connections of the normal crowd beside silent and slow ones',
    least: 1,
    most: 3_000,
    fallback: 256,
    tiny: 16,
  },
  idle: {
    flags: '--idle <n>',
    description:
      'connections that are silent but for a question every few seconds, so that the node keeps them',
    least: 0,
    most: 100_000,
    fallback: 10_000,
    tiny: 100,
  },
  slow: {
    flags: '--slow <n>',
    description: 'connections that send a byte every two seconds, or do not read',
    least: 0,
    most: 100_000,
    fallback: 1_000,
    tiny: 30,
  },
  pipelining: {
    flags: '--pipelining <n>',
    description:
      'connections on which 19,000 requests a second are sent at once, without waiting for an answer',
    least: 0,
    most: 10_000,
    fallback: 0,
    tiny: 5,
  },
  crowdSeconds: {
    flags: '--crowd-seconds <n>',
    description: 'how long the normal crowd is measured each time, with and without all of these',
    least: 1,
    most: 3_600,
    fallback: 6,
    tiny: 1,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often with and without take turns; medians are printed',
    least: 1,
    most: 100,
    fallback: 3,
    tiny: 1,
  },
} as const;

export type OverloadParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:overload --').description(
    'What a node does when it is asked for many times what it can carry, and beside thousands of silent and slow connections.',
  );
  return parseOptions(program, OPTIONS, argv);
}
