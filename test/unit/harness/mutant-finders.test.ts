/** The mutators of test/mutants/: what they make of a text, and of all that there is. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Equivalent, withoutEquivalent } from '../../mutants/equivalent.ts';
import { type Change, KINDS, type Mutant, mutantsOf, mutated } from '../../mutants/mutant.ts';
import { findMutants, migrationChanges } from '../../mutants/mutators/find-mutants.ts';
import { luaChanges, parseLua } from '../../mutants/mutators/lua-mutator.ts';
import { Sample, shares } from '../../mutants/mutators/sample.ts';
import { sqlChanges } from '../../mutants/mutators/sql-mutator.ts';
import { instrument } from '../../mutants/mutators/typescript.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Instrumenting everything takes too long for a unit test. */
const SOME_FOLDERS = ['src/locks', 'src/engine/redis/lua', 'src/postgres/migrations', 'src/orders'];
const LONG_MS = 60_000;

/** The changed texts: one for each mutant, with the name of the mutator. */
const all = (text: string, changes: readonly Change[]) =>
  changes.map((change) => `${change.mutator}: ${mutated(text, change)}`);

describe('Lua', () => {
  test('conditions, comparisons, operands and statements', () => {
    const text = 'if a >= 1 and b then x = 2 end';
    expect(all(text, luaChanges(text)).sort()).toEqual([
      'ComparisonShifted: if a < 1 and b then x = 2 end',
      'ComparisonShifted: if a > 1 and b then x = 2 end',
      'ConditionNegated: if not (a >= 1 and b) then x = 2 end',
      'NumberShifted: if a >= 1 and b then x = 3 end',
      'NumberShifted: if a >= 2 and b then x = 2 end',
      'OperandDropped: if a >= 1 then x = 2 end',
      'OperandDropped: if b then x = 2 end',
      'StatementDropped: ',
      'StatementDropped: if a >= 1 and b then  end',
    ]);
  });

  test('calls, returns and negations', () => {
    const text = "redis.call('DEL', KEYS[1]) return not (a + 1 == b)";
    expect(all(text, luaChanges(text)).sort()).toEqual([
      'ArithmeticSwapped: ' + "redis.call('DEL', KEYS[1]) return not (a - 1 == b)",
      'ComparisonShifted: ' + "redis.call('DEL', KEYS[1]) return not (a + 1 ~= b)",
      'NotDropped: ' + "redis.call('DEL', KEYS[1]) return a + 1 == b",
      'NumberShifted: ' + "redis.call('DEL', KEYS[1]) return not (a + 2 == b)",
      'StatementDropped:  return not (a + 1 == b)',
      "StatementDropped: redis.call('DEL', KEYS[1]) ",
    ]);
  });
});

describe('SQL', () => {
  const changed = (text: string) => all(text, sqlChanges(text)).sort();

  test('conditions and comparisons', () => {
    expect(changed('SELECT * FROM t WHERE a < b AND c IS NULL')).toEqual([
      'ComparisonShifted: SELECT * FROM t WHERE a <= b AND c IS NULL',
      'ComparisonShifted: SELECT * FROM t WHERE a >= b AND c IS NULL',
      'ConditionNegated: SELECT * FROM t WHERE NOT (a < b AND c IS NULL)',
      'ConditionNegated: SELECT * FROM t WHERE a < b AND c IS NOT NULL',
      'OperandDropped: SELECT * FROM t WHERE a < b AND true',
      'OperandDropped: SELECT * FROM t WHERE true AND c IS NULL',
    ]);
  });

  test('locks, orders, limits, and a bound that keeps its binding', () => {
    expect(changed('SELECT 1 FROM t ORDER BY a, b DESC LIMIT ? FOR UPDATE SKIP LOCKED')).toEqual([
      'LimitDropped: SELECT 1 FROM t ORDER BY a, b DESC LIMIT ?::bigint + 1000000000 FOR UPDATE SKIP LOCKED',
      'LockDropped: SELECT 1 FROM t ORDER BY a, b DESC LIMIT ? ',
      'LockDropped: SELECT 1 FROM t ORDER BY a, b DESC LIMIT ? FOR UPDATE ',
      'OrderDropped: SELECT 1 FROM t  LIMIT ? FOR UPDATE SKIP LOCKED',
      'WordSwapped: SELECT 1 FROM t ORDER BY a, b ASC LIMIT ? FOR UPDATE SKIP LOCKED',
    ]);
  });

  test('assignments are not changed as comparisons', () => {
    expect(changed('UPDATE t SET a = 1, b = b + ? WHERE id = ?')).toEqual([
      'ArithmeticSwapped: UPDATE t SET a = 1, b = b - ? WHERE id = ?',
      'AssignmentDropped: UPDATE t SET  b = b + ? WHERE id = ?',
      'AssignmentDropped: UPDATE t SET a = 1 WHERE id = ?',
      'ComparisonShifted: UPDATE t SET a = 1, b = b + ? WHERE id <> ?',
      'NumberShifted: UPDATE t SET a = 2, b = b + ? WHERE id = ?',
      'StatementDropped: UPDATE t SET a = 1, b = b + ? WHERE (false AND (id = ?))',
    ]);
  });

  test('statements of a function', () => {
    expect(changed("BEGIN IF a THEN PERFORM f(b); END IF; v := 'x'; END")).toEqual(
      [
        "ConditionNegated: BEGIN IF NOT (a) THEN PERFORM f(b); END IF; v := 'x'; END",
        "StatementDropped: BEGIN IF a THEN NULL; END IF; v := 'x'; END",
        'StatementDropped: BEGIN IF a THEN PERFORM f(b); END IF; NULL; END',
      ].sort(),
    );
  });

  test('of a function that was defined twice, the last definition', () => {
    const of = (body: string) =>
      `CREATE OR REPLACE FUNCTION f(a int) RETURNS void AS $$ BEGIN ${body} END $$;`;
    const texts = new Map([
      ['1.sql', `${of('PERFORM 1;')} CREATE UNIQUE INDEX u ON t (a); CREATE INDEX i ON t (a) WHERE a > 1;`],
      ['2.sql', of('PERFORM 2;')],
    ]);
    const changes = migrationChanges(texts);
    expect(all(texts.get('1.sql')!, changes.get('1.sql')!)).toEqual([
      expect.stringContaining('CREATE INDEX u ON t (a)'),
    ]);
    expect(all(texts.get('2.sql')!, changes.get('2.sql')!)).toEqual([`StatementDropped: ${of('NULL;')}`]);
  });
});

test('an instrumented file has all its mutants, except for messages', async () => {
  const text =
    "export function f(a: number) { if (a > 1) throw new Error('it is too much'); return 'code'; }\n";
  const { text: instrumented, changes, sql } = await instrument('src/f.ts', text, './s.ts');
  expect(changes.map(({ mutator, start, end }) => `${mutator} ${text.slice(start, end)}`)).toEqual(
    expect.arrayContaining(['EqualityOperator a > 1', "StringLiteral 'code'"]),
  );
  expect(
    changes.some(
      ({ start, end }) =>
        text.slice(start, end).includes('too much') && text.slice(start, end).startsWith("'"),
    ),
  ).toBe(false);
  expect(sql).toEqual([]);
  for (const { switch: name } of changes) expect(instrumented).toContain(`stryMutAct_9fa48("${name}")`);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source.
  const query = 'export const q = (id: string) => run(`SELECT a FROM t WHERE id = ${id}`);\n';
  expect((await instrument('src/q.ts', query, './s.ts')).sql).toHaveLength(1);
});

describe('mutants', { timeout: LONG_MS }, () => {
  test('each changes its file, has an id of its own, and Lua stays Lua', async () => {
    const { mutants } = await findMutants(ROOT, SOME_FOLDERS);
    expect(new Set(mutants.map(({ id }) => id)).size).toBe(mutants.length);
    const texts = new Map<string, string>();
    for (const mutant of mutants) {
      const { file, kind, start, end, original, replacement } = mutant;
      const text = texts.get(file) ?? readFileSync(`${ROOT}${file}`, 'utf8');
      texts.set(file, text);
      expect(text.slice(start, end)).toBe(original);
      if (replacement === original) throw new Error(`${file}:${mutant.line} stays as it is`);
      if (kind === 'lua') parseLua(mutated(text, mutant));
    }
    for (const kind of KINDS)
      expect(mutants.filter((mutant) => mutant.kind === kind).length).toBeGreaterThan(100);
  });
});

describe('a sample', () => {
  const some = (kind: Mutant['kind'], count: number): Mutant[] =>
    mutantsOf(
      kind,
      `src/${kind}`,
      'x'.repeat(count),
      Array.from({ length: count }, (_, i) => ({ mutator: 'Any', start: i, end: i + 1, replacement: '' })),
    );
  const mutants = [...some('ts', 50), ...some('lua', 50), ...some('sql', 50)];
  const ids = (sample: Sample) => [...sample].map(({ id }) => id);

  test('has its share of each kind, and is the same for a seed', () => {
    const drawn = [...new Sample(mutants, 20, 7)];
    expect(KINDS.map((kind) => drawn.filter((one) => one.kind === kind).length)).toEqual([12, 4, 4]);
    expect(ids(new Sample(mutants, 20, 7))).toEqual(drawn.map(({ id }) => id));
    expect(ids(new Sample(mutants, 20, 8))).not.toEqual(drawn.map(({ id }) => id));
  });

  test('is full as long as there are mutants', () => {
    expect(
      shares(
        new Map([
          ['ts', 3],
          ['lua', 0],
          ['sql', 50],
        ]),
        20,
      ),
    ).toEqual(
      new Map([
        ['ts', 3],
        ['lua', 0],
        ['sql', 17],
      ]),
    );
    expect(new Set(ids(new Sample(mutants, 1_000, 1))).size).toBe(150);
  });

  test('draws another mutant instead of an invalid one', () => {
    const draw = new Sample(mutants, 20, 7)[Symbol.iterator]();
    let count = 0;
    for (let next = draw.next(); !next.done; count++) next = draw.next(count < 5 ? 'again' : undefined);
    expect(count).toBe(25);
  });
});

test(
  'each entry of equivalent mutants names mutants of this repository',
  async () => {
    const { mutants } = await findMutants(ROOT);
    expect(withoutEquivalent(mutants).length).toBeGreaterThan(5_000);
  },
  3 * LONG_MS,
);

test('equivalent mutants are as many as their entry says', () => {
  const mutants = mutantsOf('lua', 'src/a.lua', 'x x', [
    { mutator: 'Any', start: 0, end: 1, replacement: '' },
    { mutator: 'Any', start: 2, end: 3, replacement: '' },
  ]);
  const entry: Equivalent = {
    file: 'src/a.lua',
    mutator: 'Any',
    original: 'x',
    replacement: '',
    why: 'of a test',
  };
  expect(withoutEquivalent(mutants, [{ ...entry, copies: 2 }])).toEqual([]);
  expect(() => withoutEquivalent(mutants, [entry])).toThrow('2 mutants, not 1');
  expect(() => withoutEquivalent(mutants, [{ ...entry, original: 'y' }])).toThrow('0 mutants, not 1');
});
