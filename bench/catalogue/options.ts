import { closeSync, openSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { type Invocation, type Parameters, parseOptions } from '../support/options.ts';

export const OPTIONS = {
  ms: {
    flags: '--ms <n>',
    description: 'milliseconds that each row sells in each of its two sales',
    least: 20,
    most: 60_000,
    fallback: 1_500,
    tiny: 40,
  },
  warmUpMs: {
    flags: '--warm-up-ms <n>',
    description: 'milliseconds of warm-up before the sale that does not run out',
    least: 0,
    most: 60_000,
    fallback: 500,
    tiny: 20,
  },
  clients: {
    flags: '--clients <n>',
    description: 'clients; each sends its next request when it has an answer',
    least: 1,
    most: 10_000,
    fallback: 200,
    tiny: 20,
  },
  nodes: {
    flags: '--nodes <n>',
    description: 'nodes that sell, all in the process of the bench; clients are distributed over them',
    least: 1,
    most: 4,
    fallback: 2,
  },
  stock: {
    flags: '--stock <n>',
    description: 'units in the sale that runs out',
    least: 1,
    most: 100_000,
    fallback: 100,
    tiny: 20,
  },
  buyers: {
    flags: '--buyers <n>',
    description: 'buyers in the sale that runs out; each request is by a random one of them',
    least: 1,
    most: 1_000_000,
    fallback: 500,
    tiny: 100,
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of the stock in D1 to D3',
    least: 1,
    most: 64,
    fallback: 10,
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often every row is measured; medians are printed, and the worst of what was sold',
    least: 1,
    most: 100,
    fallback: 1,
  },
} as const;

export type CatalogueParameters = Parameters<typeof OPTIONS>;

export interface CatalogueInvocation extends Invocation<typeof OPTIONS> {
  /** The file for the page, and the one for the chart alone. */
  readonly html: string | undefined;
  readonly svg: string | undefined;
}

export function readOptions(argv: readonly string[]): CatalogueInvocation {
  const program = new Command('npm run bench:catalogue --')
    .description('Every way of selling stock in the catalogue, one after the other, with the same load.')
    .option('--html <file>', 'write a page with charts as well', writable)
    .option('--svg <file>', 'write the chart of orders/s as well', writable);
  const invocation = parseOptions(program, OPTIONS, argv);
  const { html, svg } = program.opts<{ html?: string; svg?: string }>();
  return { ...invocation, html, svg };
}

/** Checks this before the measurement, not after it. */
function writable(file: string): string {
  try {
    closeSync(openSync(file, 'a'));
    return file;
  } catch (error) {
    throw new InvalidArgumentError(`It can't be written: ${(error as Error).message}.`);
  }
}
