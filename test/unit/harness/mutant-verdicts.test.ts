/** Verdicts of a run that was stopped are known to the next run of the same repository. */
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type Mutant, mutantsOf } from '../../mutants/mutant.ts';
import { Verdicts } from '../../mutants/verdicts/verdicts.ts';

const folder = mkdtempSync(join(tmpdir(), 'stockade-verdicts-'));
const root = join(folder, 'repository/');
const cache = join(folder, 'cache');
mkdirSync(join(root, 'src'), { recursive: true });
writeFileSync(join(root, 'src/a.ts'), 'a < b');
afterAll(() => rmSync(folder, { recursive: true }));

const [mutant, other] = mutantsOf('ts', 'src/a.ts', 'a < b', [
  { mutator: 'EqualityOperator', start: 0, end: 5, replacement: 'a <= b' },
  { mutator: 'EqualityOperator', start: 0, end: 5, replacement: 'a >= b' },
]) as [Mutant, Mutant];
const verdict = { mutant, end: 'killed', why: 'a test fails', seconds: 2.5 } as const;

test('a run that was stopped has kept what it judged, without what it had written in part', () => {
  new Verdicts(root, cache).keep(verdict);
  const [file] = readdirSync(cache);
  appendFileSync(join(cache, file!), `{"id":"${other.id}","end":"sur`);
  const known = new Verdicts(root, cache);
  expect(known.size).toBe(1);
  expect(known.of(mutant)).toEqual(verdict);
  expect(known.of(other)).toBeUndefined();
  known.keep({ ...verdict, mutant: other });
  expect(new Verdicts(root, cache).size).toBe(2);
});

test('a verdict is not known any more once a file is changed or added', () => {
  writeFileSync(join(root, 'new.test.ts'), '');
  expect(new Verdicts(root, cache).of(mutant)).toBeUndefined();
  rmSync(join(root, 'new.test.ts'));
  expect(new Verdicts(root, cache).of(mutant)).toEqual(verdict);
  writeFileSync(join(root, 'src/a.ts'), 'a > b');
  expect(new Verdicts(root, cache).size).toBe(0);
});
