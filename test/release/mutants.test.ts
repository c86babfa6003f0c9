/**
 * The harness of mutation tests (test/mutants/), on a copy of the repository that has hardly any tests: it must kill what these
 * look at, and find out what they don't.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hunt } from '../mutants/hunt.ts';
import { findMutants, type Population } from '../mutants/mutators/find-mutants.ts';
import { listed, summaryOf, textOf } from '../mutants/report.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TIMEOUT_MS = 1_200_000;
const LEFT_OUT = ['.git', '.stockade', 'dist', 'node_modules', 'test'];

/** Enough to choose from: to find all mutants takes longer than to run some. */
const FOLDERS = ['src/locks', 'src/engine/redis/lua', 'src/postgres/migrations'];

const UNIT_TEST = `
import { expect, test } from 'vitest';
import { lockKeys } from '../../../src/locks/lock-keys.ts';
test('a lock has a name', () => {
  expect(() => lockKeys('')).toThrow();
  expect(lockKeys('a').lock).toBe('{a}');
});
`;

const STORE_TEST = `
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { LockScripts } from '../../src/locks/lock-scripts.ts';
import { lockKeys } from '../../src/locks/lock-keys.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { freshDatabase, freshPrefix, redisUrl } from '../support/fixtures.ts';
test('a lock is released once', async () => {
  const redis = new Redis(redisUrl());
  const scripts = new LockScripts(redis);
  const keys = lockKeys(\`\${freshPrefix()}{a}\`);
  await scripts.acquire(keys, 'me', 10_000, '');
  expect([await scripts.release(keys, 'me'), await scripts.release(keys, 'me')]).toEqual([0, -1]);
  redis.disconnect();
});
test('nothing expires where nothing is', async () => {
  const db = openDatabase({ url: await freshDatabase(), maxConnections: 1 });
  const { rows } = await db.raw("SELECT order_ids::text FROM stockade_expire_given('{}', 's', 10)");
  expect(rows).toEqual([{ order_ids: '{}' }]);
  await db.destroy();
});
`;

let root: string;
let population: Population;

beforeAll(async () => {
  root = `${mkdtempSync(join(tmpdir(), 'stockade-fixture-'))}/`;
  for (const name of readdirSync(ROOT))
    if (!LEFT_OUT.includes(name)) cpSync(join(ROOT, name), join(root, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  for (const folder of ['support', 'mutants'])
    cpSync(join(ROOT, 'test', folder), join(root, 'test', folder), { recursive: true });
  for (const folder of ['unit/locks', 'contract']) mkdirSync(join(root, 'test', folder), { recursive: true });
  writeFileSync(join(root, 'test/unit/locks/lock-keys.test.ts'), UNIT_TEST);
  writeFileSync(join(root, 'test/contract/stores.test.ts'), STORE_TEST);
  population = await findMutants(root, FOLDERS);
}, TIMEOUT_MS);

afterAll(() => {
  rmSync(root, { recursive: true, force: true });
});

/** The first mutant of a file with these words in it. */
function mutantIn(file: string, mutator: string, words: string) {
  const found = population.mutants.find(
    (one) => one.file === file && one.mutator === mutator && one.original.includes(words),
  );
  if (!found) throw new Error(`${file} has no mutant ${mutator} of ${words}`);
  return found;
}

it('kills mutants that tests notice, and names the others', { timeout: TIMEOUT_MS }, async () => {
  const release = 'src/locks/lua/release.lua';
  const killed = [
    mutantIn('src/locks/lock-keys.ts', 'ConditionalExpression', "name === ''"),
    mutantIn(release, 'ConditionNegated', ''),
    mutantIn('src/postgres/migrations/031-expiry-beside-locks.sql', 'StatementDropped', "order_ids := '{}'"),
  ];
  // The type of the reply says that it never is this text.
  const invalid = mutantIn('src/locks/lock-scripts.ts', 'StringLiteral', 'refused');
  const survivors = [
    // Run by a test that looks at something else, and by none.
    mutantIn('src/locks/lua/acquire.lua', 'NumberShifted', '1000000'),
    mutantIn('src/locks/lock-queue.ts', 'ConditionalExpression', ''),
    mutantIn('src/engine/redis/lua/purchase/take.lua', 'StatementDropped', ''),
  ];
  const said: string[] = [];
  const summary = summaryOf(
    1,
    await hunt(root, population, [...killed, invalid, ...survivors], (line) => said.push(line)),
  );
  expect(summary, said.join('\n')).toMatchObject({ planted: 6, killed: 3, invalid: 1, score: 0.5 });
  expect(summary.survivors.map(({ id }) => id)).toEqual(survivors.map(({ id }) => id));
  expect(summary.survivors.map(({ why }) => why)).toEqual([
    'it passes test/contract/stores.test.ts',
    'no test reaches it',
    'no test reaches it',
  ]);
  expect(textOf(summary)).toContain('3 of 6 mutants were killed (50.0 %)');
  expect(listed(survivors, false)).toContain('src/locks/lock-queue.ts:');
});
