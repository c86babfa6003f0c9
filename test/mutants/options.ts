/** Parses the command line. */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { KINDS, type Kind } from './mutant.ts';

export const HELP = `Usage: npm run mutants -- [options]

Plants bugs in copies of the source, one at a time, and runs the tests that
reach each of them: they must fail. The first run looks which test reaches what,
which takes a while; later ones know it, as long as sources and tests are the same.

Options:
  --sample <n>     how many mutants to draw (default: 200)
  --seed <n>       draw the same mutants again (default: random, printed)
  --kind <kind>    only mutants of this kind: ts, lua or sql
  --files <paths>  only in files whose path begins so, such as
                   src/engine,src/sync
  --only <ids>     these mutants, whatever other options say: ids with commas
  --list           print all mutants to choose from, and plant none
  --json           print one JSON object on stdout: seed, planted, killed,
                   timedOut, score, survivors
  --help           display help

Exit codes: 0 at least 95 % of the mutants were killed (with --only: all),
1 fewer, 2 the command is wrong.`;

export interface Options {
  readonly sample: number;
  readonly seed: number;
  readonly kind: Kind | undefined;
  /** Beginnings of paths; `['']` if any file will do. */
  readonly files: readonly string[];
  readonly only: readonly string[];
  readonly list: boolean;
  readonly json: boolean;
}

/** @throws Error that says what is wrong @returns `undefined` if help is requested */
export function optionsFrom(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sample: { type: 'string', default: '200' },
      seed: { type: 'string' },
      kind: { type: 'string' },
      files: { type: 'string', default: '' },
      only: { type: 'string' },
      list: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const { kind, files, list, json } = values;
  if (kind !== undefined && !KINDS.includes(kind as Kind))
    throw new Error(`--kind must be ts, lua or sql, not ${JSON.stringify(kind)}`);
  return {
    sample: whole('sample', values.sample),
    seed: values.seed === undefined ? randomInt(1e9) : whole('seed', values.seed),
    kind: kind as Kind | undefined,
    files: files.split(','),
    only: values.only?.split(',').filter((id) => id !== '') ?? [],
    list,
    json,
  };
}

function whole(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Error(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
}
