import { Command } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  buyers: {
    flags: '--buyers <n>',
    description: 'buyers that already have a unit',
    least: 1,
    most: 2_000_000,
    fallback: 100_000,
    tiny: 2_000,
  },
  clients: {
    flags: '--clients <n>',
    description: 'buyers side by side that buy without a pause, each time under a new name',
    least: 1,
    most: 4_096,
    fallback: 64,
    tiny: 8,
  },
  purchases: {
    flags: '--purchases <n>',
    description: 'least number of purchases before each resize, and after it',
    least: 1,
    most: 1_000_000,
    fallback: 10_000,
    tiny: 200,
  },
} as const;

export type ResizeParameters = Parameters<typeof OPTIONS>;

export function readOptions(argv: readonly string[]): Invocation<typeof OPTIONS> {
  const program = new Command('npm run bench:resize --').description(
    'How long buyers wait while their sale is resized.',
  );
  return parseOptions(program, OPTIONS, argv);
}
