import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  starts: {
    flags: '--starts <n>',
    description: 'how often each kind of start is measured; medians are printed',
    least: 1,
    most: 100,
    fallback: 5,
    tiny: 1,
  },
  sales: {
    flags: '--sales <n>',
    description: 'sales of the idle node, each with eight segments',
    least: 1,
    most: 10_000,
    fallback: 1_000,
    tiny: 10,
  },
  seconds: {
    flags: '--seconds <n>',
    description: 'how long the idle node is watched',
    least: 1,
    most: 3_600,
    fallback: 20,
    tiny: 1,
  },
  connections: {
    flags: '--connections <n>',
    description: 'idle connections for the measurement of memory',
    least: 1,
    most: 20_000,
    fallback: 10_000,
    tiny: 50,
  },
} as const;

export type StartParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:start --').description(
    'How soon a node is ready, what it costs while nobody buys, and what idle connections cost.',
  );
  return parseOptions(program, OPTIONS, argv);
}
