/** The list of a shop's processes: those that have reported lately, by Postgres' clock, wherever it was set. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { ProcessList, readChecks } from '../../../src/shop/process-list.ts';
import { freshDatabase } from '../../support/fixtures.ts';

let db: Database;

beforeAll(async () => {
  db = openDatabase({ url: await freshDatabase(), maxConnections: 2 });
});

afterAll(() => db.destroy());

beforeEach(() => db.raw('DELETE FROM processes'));

const listed = (process: string) => ({
  process,
  version: `1.0.${process.length}`,
  settings: { KEY: process },
});
const listOf = (process: string) => new ProcessList(db, listed(process));
/** Sets the last report of a process. @param ageS negative: Postgres' clock was set back since */
const age = (process: string, ageS: number) =>
  db.raw('UPDATE processes SET seen_at = now() - make_interval(secs => ?) WHERE process = ?', [
    ageS,
    process,
  ]);
const names = async () =>
  (await rows<{ process: string }>(db, 'SELECT process FROM processes ORDER BY process')).map(
    ({ process }) => process,
  );

test('a report returns the other processes, by their names, each with its version and settings', async () => {
  expect(await listOf('b').report()).toEqual([]);
  expect(await listOf('cc').report()).toEqual([listed('b')]);
  expect(await listOf('a').report()).toEqual([listed('b'), listed('cc')]);
  expect(await listOf('b').report()).toEqual([listed('a'), listed('cc')]);
});

test('each report counts as a check', async () => {
  const [one, two] = [listOf('one'), listOf('two')];
  for (const list of [one, one, two, one]) await list.report();
  expect(await readChecks(db)).toEqual(
    new Map([
      ['one', 3],
      ['two', 1],
    ]),
  );
});

test.each([1, -1])(
  'a process that was silent for 10 s does not count, until it reports again (%i)',
  async (way) => {
    for (const name of ['silent', 'slow']) await listOf(name).report();
    await age('silent', way * 11);
    await age('slow', way * 5);
    expect(await listOf('new').report()).toEqual([listed('slow')]);
    expect([...(await readChecks(db)).keys()].sort()).toEqual(['new', 'slow']);
    await listOf('silent').report();
    expect((await readChecks(db)).get('silent')).toBe(2);
  },
);

test.each([1, -1])(
  'a process that was silent for a minute is removed by the next that starts (%i)',
  async (way) => {
    for (const name of ['dead', 'silent', 'old']) await listOf(name).report();
    await age('dead', way * 70);
    await age('silent', way * 50);
    await listOf('old').report();
    expect(await names()).toEqual(['dead', 'old', 'silent']);
    await listOf('new').report();
    expect(await names()).toEqual(['new', 'old', 'silent']);
  },
);

test('a process that ends removes itself only, and one that was removed meanwhile lists itself again', async () => {
  const one = listOf('one');
  await one.report();
  await listOf('two').report();
  await one.remove();
  expect(await names()).toEqual(['two']);
  expect(await one.report()).toEqual([listed('two')]);
  expect((await readChecks(db)).get('one')).toBe(1);
});
