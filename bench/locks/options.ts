import { availableParallelism } from 'node:os';
import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

const MOST_PROCESSES = 16;

export const OPTIONS = {
  ms: {
    flags: '--ms <n>',
    description: 'milliseconds that each line is measured; those with a bar five times as long',
    least: 10,
    most: 60_000,
    fallback: 500,
    tiny: 40,
  },
  warmUpMs: {
    flags: '--warm-up-ms <n>',
    description: 'milliseconds of warm-up before each line',
    least: 10,
    most: 60_000,
    fallback: 150,
    tiny: 20,
  },
  clients: {
    flags: '--clients <n>',
    description: 'most clients at once; lines are measured with 1, 16, 64 and 256 of them, up to this limit',
    least: 16,
    most: 256,
    fallback: 256,
    tiny: 16,
  },
  processes: {
    flags: '--processes <n>',
    description: 'lines are measured with all clients in one process, and in so many processes',
    least: 2,
    most: MOST_PROCESSES,
    fallback: 4,
    tiny: 2,
  },
  stripingProcesses: {
    flags: '--striping-processes <n>',
    description: 'processes that share the clients of the striping lines; must divide their number',
    least: 1,
    most: MOST_PROCESSES,
    // One for each core, as long as any number of clients that is a power of two can be split evenly.
    fallback: 2 ** Math.floor(Math.log2(Math.min(MOST_PROCESSES, availableParallelism()))),
  },
  spreadMs: {
    flags: '--spread-ms <n>',
    description:
      'random spread of the 2 ms of work inside a lock, up to so much more or less; 0: always 2 ms',
    least: 0,
    most: 2,
    fallback: 1,
  },
} as const;

export type LocksParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:locks --').description(
    'What segment locks cost: one against many, waking against spinning, with and without combining.',
  );
  const invocation = parseOptions(program, OPTIONS, argv);
  const { clients, stripingProcesses } = invocation.parameters;
  if (clients % stripingProcesses !== 0) {
    program.error(
      `error: --clients ${clients} can't be split evenly among --striping-processes ${stripingProcesses}`,
    );
  }
  return invocation;
}
