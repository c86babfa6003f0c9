import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  minutes: {
    flags: '--minutes <n>',
    description: 'how long the load lasts',
    least: 0,
    most: 10_080,
    fallback: 30,
    tiny: 0,
  },
  seconds: {
    flags: '--seconds <n>',
    description: 'additional seconds',
    least: 0,
    most: 86_400,
    fallback: 0,
    tiny: 8,
  },
  warmupSeconds: {
    flags: '--warmup-seconds <n>',
    description: 'the first part, which is not judged: heaps, caches and pools grow to their size',
    least: 0,
    most: 86_400,
    fallback: 300,
    tiny: 2,
  },
  sampleSeconds: {
    flags: '--sample-seconds <n>',
    description: 'seconds between two samples',
    least: 1,
    most: 3_600,
    fallback: 5,
    tiny: 1,
  },
  rate: {
    flags: '--rate <n>',
    description: 'requests per second',
    least: 1,
    most: 5_000,
    fallback: 100,
  },
  saleSeconds: {
    flags: '--sale-seconds <n>',
    description: 'a new sale opens this often, and the one before last is closed',
    least: 1,
    most: 86_400,
    fallback: 30,
    tiny: 3,
  },
  workers: {
    flags: '--workers <n>',
    description: 'threads of the node',
    least: 1,
    most: 64,
    fallback: 2,
  },
  seed: {
    flags: '--seed <n>',
    description: 'repeats the sequence of requests',
    least: 0,
    most: 2_147_483_647,
    fallback: 1,
  },
} as const;

export type SoakParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run soak --').description(
    'Whether a node under a steady mixed load leaks memory, handles or connections.',
  );
  return parseOptions(program, OPTIONS, argv);
}
