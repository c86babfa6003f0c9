/**
 * TypeScript: StrykerJS's own mutators, and its way to plant them. The instrumented copy of a file holds all its mutants, each
 * behind a switch with a name; `mutant-switch.ts`, which the copy imports, says which one is on.
 */
import { Instrumenter } from '@stryker-mutator/instrumenter';
import type { Change } from './mutant.ts';

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
  /** Texts that are SQL, with their quotes: they are for the mutator of SQL. */
  readonly sql: readonly Switched[];
}

/** @param file from the root of the repository; `switches`: the module that it imports to be told */
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

/** What instrumented code calls at each step: only a dry run needs it, and a test that takes millions of steps feels it. */
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
  // Modules that are imported run first: the switch is set before anything of the file runs.
  return `// @ts-nocheck\nimport { loaded as stryLoaded, records as stryRecords } from '${switches}';\nstryLoaded('${file}');\n${renamed}`;
}

/**
 * A text of several words is a message, which no test should repeat word for word, or SQL, which has a mutator of its own. A
 * text of one word, or of none, is part of a protocol: a code, a key, the name of a field.
 */
function isForPeopleOrServers(literal: string): boolean {
  const words = withoutHoles(literal);
  return /\s/.test(words) && /[A-Za-z]/.test(words);
}

const SQL_WORD = /\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|OR|VALUES|coalesce)\b/;

function isSql(literal: string): boolean {
  return isForPeopleOrServers(literal) && SQL_WORD.test(withoutHoles(literal));
}

/** Without what is put into a template: `${…}`, with two levels of braces in it at most. */
function withoutHoles(literal: string): string {
  return literal.replace(/\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}/g, '');
}

function offsetsIn(text: string): (at: { line: number; column: number }) => number {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return ({ line, column }) => starts[line]! + column;
}
