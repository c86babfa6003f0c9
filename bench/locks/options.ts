import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

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
    description: 'milliseconds before that, which do not count',
    least: 10,
    most: 60_000,
    fallback: 150,
    tiny: 20,
  },
  clients: {
    flags: '--clients <n>',
    description:
      'most clients at once; lines are measured with 1, 16, 64 and 256 of them, as far as this allows',
    least: 16,
    most: 256,
    fallback: 256,
    tiny: 16,
  },
  processes: {
    flags: '--processes <n>',
    description: 'lines are measured with all clients in one process, and in so many',
    least: 2,
    most: 16,
    fallback: 4,
    tiny: 2,
  },
} as const;

export type LocksParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('bench:locks').description(
    'What segment locks cost: one against many, waking against spinning, with and without combining.',
  );
  return parseOptions(program, OPTIONS, argv);
}
