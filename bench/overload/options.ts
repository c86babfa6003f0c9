import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  times: {
    flags: '--times <n>',
    description: 'the overload, as a multiple of the capacity of the node',
    least: 2,
    most: 100,
    fallback: 10,
    tiny: 4,
  },
  delayMs: {
    flags: '--delay-ms <n>',
    description:
      "delay of Redis' answers, which lowers the capacity of the lane so that it can be exceeded by this multiple",
    least: 1,
    most: 400,
    fallback: 100,
  },
  laneCapacity: {
    flags: '--lane-capacity <n>',
    description:
      "the node's LANE_CAPACITY in the overload. It also bounds a batch, so that a machine with few cores can offer many times the capacity. From about 2,000 on, the queue is bounded by its waiting time instead",
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
    description: 'how long the capacity, and the load before and after the overload, are measured',
    least: 1,
    most: 3_600,
    fallback: 8,
    tiny: 1,
  },
  lines: {
    flags: '--lines <n>',
    description: 'connections of the buyers above the capacity',
    least: 1,
    most: 15_000,
    fallback: 8_000,
    tiny: 1_500,
  },
  connections: {
    flags: '--connections <n>',
    description: 'connections of the normal buyers beside silent and slow ones',
    least: 1,
    most: 3_000,
    fallback: 256,
    tiny: 16,
  },
  idle: {
    flags: '--idle <n>',
    description:
      'connections that are idle except for a request every few seconds, so that the node keeps them',
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
      'connections that each send 19,000 requests at once, every second, without waiting for an answer',
    least: 0,
    most: 10_000,
    fallback: 0,
    tiny: 5,
  },
  crowdSeconds: {
    flags: '--crowd-seconds <n>',
    description: 'how long the normal buyers are measured each time, with and without all of these',
    least: 1,
    most: 3_600,
    fallback: 6,
    tiny: 1,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often both are measured, in turn; medians are printed',
    least: 1,
    most: 100,
    fallback: 3,
    tiny: 1,
  },
} as const;

export type OverloadParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:overload --').description(
    'What a node does under many times the load that it can serve, and beside thousands of silent and slow connections.',
  );
  return parseOptions(program, OPTIONS, argv);
}
