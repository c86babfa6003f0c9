/**
 * TypeScript mutants, found and planted by StrykerJS. The instrumented copy of a file holds all its mutants, each behind a
 * switch with a name. `mutant-switch.ts`, which the copy imports, knows which one is on.
 */
import { Instrumenter } from '@stryker-mutator/instrumenter';
import type { Change } from '../mutant.ts';

type Logger = ConstructorParameters<typeof Instrumenter>[0];

const log = () => {};
const no = () => false;
const SILENT: Logger = {
  ...{ fatal: log, error: log, warn: log, info: log, debug: log, trace: log },
  ...{ isFatalEnabled: no, isErrorEnabled: no, isWarnEnabled: no },
  ...{ isInfoEnabled: no, isDebugEnabled: no, isTraceEnabled: no },
};
const OPTIONS = { plugins: null, excludedMutations: [], ignorers: [] };

export type Switched = Change & { readonly switch: string };

export interface Instrumented {
  readonly text: string;
  readonly changes: readonly Switched[];
  /** Strings that are SQL, with their quotes: for the SQL mutator. */
  readonly sql: readonly Switched[];
}

/** @param file path from the root of the repository; `switches`: the module that knows which mutant is on */
export async function instrument(file: string, source: string, switches: string): Promise<Instrumented> {
  const given = { name: file, content: source, mutate: true };
  const { files, mutants } = await new Instrumenter(SILENT).instrument([given], OPTIONS);
  const offset = offsetsIn(source);
  const named = (id: string) => `${file}#${id}`;
  const all = mutants.map(({ id, mutatorName, location: { start, end }, replacement }) => ({
    mutator: mutatorName,
    start: offset(start),
    end: offset(end),
    replacement,
    switch: named(id),
  }));
  const textOf = (change: Change) => source.slice(change.start, change.end);
  return {
    text: instrumentedText(files[0]!.content, file, switches, named),
    changes: all.filter(
      (change) => change.mutator !== 'StringLiteral' || !isForPeopleOrServers(textOf(change)),
    ),
    sql: all.filter((change) => change.mutator === 'StringLiteral' && isSql(textOf(change))),
  };
}

/**
 * Instrumented code calls this at each step. Only a dry run needs it, and it slows down tests with millions of steps.
 */
const COVER = 'function stryCov_9fa48() {';
const COVER_IF_RECORDED = `${COVER} if (!stryRecords) { stryCov_9fa48 = () => {}; return; }`;

function instrumentedText(
  text: string,
  file: string,
  switches: string,
  named: (id: string) => string,
): string {
  if (text.includes('stryCov_9fa48(') && !text.includes(COVER))
    throw new Error(`${file} does not begin as instrumented files do`);
  const renamed = text
    .replace(COVER, () => COVER_IF_RECORDED)
    .replace(/stry(?:MutAct|Cov)_9fa48\(("\d+"(?:, "\d+")*)\)/g, (call: string) =>
      call.replace(/"(\d+)"/g, (_, id: string) => JSON.stringify(named(id))),
    );
  // Imported modules run first, so the switch is set before any code of the file runs.
  return `import { loaded as stryLoaded, records as stryRecords } from '${switches}';\nstryLoaded('${file}');\n${renamed}`;
}

/**
 * Whether a string is for people or for Postgres. A string of several words is a message, which no test should repeat word for
 * word, or SQL, which has its own mutator. A string of one word or none is part of a protocol: a code, a key, a field name.
 */
function isForPeopleOrServers(literal: string): boolean {
  const words = withoutHoles(literal);
  return /\s/.test(words) && /[A-Za-z]/.test(words);
}

const SQL_WORD = /\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|OR|VALUES|coalesce)\b/;

function isSql(literal: string): boolean {
  return isForPeopleOrServers(literal) && SQL_WORD.test(withoutHoles(literal));
}

/** The string without template expressions `${…}`, which may contain two levels of braces. */
function withoutHoles(literal: string): string {
  return literal.replace(/\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}/g, '');
}

function offsetsIn(text: string): (at: { line: number; column: number }) => number {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return ({ line, column }) => starts[line]! + column;
}
