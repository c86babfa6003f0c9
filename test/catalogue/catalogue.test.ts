/** The catalogue as a whole: complete, as its page says, and true to what each row promises when nothing interferes. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CATALOGUE, SELLING_ROWS } from '../../catalogue/catalogue.ts';
import type { SellingRow, StoreName, Stores } from '../../catalogue/parts/contract.ts';
import { emptyDatabase, freshPrefix, redisAdminUrl } from '../support/fixtures.ts';
import { ZooKeeperEnsemble } from '../support/servers/zookeeper-ensemble.ts';
import { buyers } from './interleavings.ts';
import { byId, tally } from './lab.ts';

const ROOT = new URL('../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/catalogue.md', ROOT), 'utf8');

test('has every row, once and in order', () => {
  const rows = (letter: string, count: number) =>
    Array.from({ length: count }, (_, i) => `${letter}${i + 1}`);
  expect(CATALOGUE.map(({ id }) => id)).toEqual([
    ...rows('A', 6),
    ...rows('B', 12),
    ...['B13-before', 'B13-after'],
    ...rows('C', 4),
    ...rows('D', 3),
    ...rows('E', 2),
  ]);
});

test('has a page that lists them in the same order, each with its file', () => {
  const listed = [...PAGE.matchAll(/^\| ([A-E]\d+\S*) \| \[.+?\]\(\.\.\/catalogue\/(.+?)\) \|/gm)];
  expect(listed.map(([, id]) => id)).toEqual(CATALOGUE.map(({ id }) => id));
  const files = readdirSync(fileURLToPath(new URL('catalogue/', ROOT)), {
    recursive: true,
    encoding: 'utf8',
  }).filter((path) => /^[a-e]\d/.test(basename(path)));
  expect(listed.map(([, , file]) => file).sort()).toEqual(files.sort());
  for (const [, id, file] of listed)
    expect(basename(file!).startsWith(`${id!.toLowerCase()}-`), `${id} in ${file}`).toBe(true);
});

test('has a page that names existing tests', () => {
  const tests = [...PAGE.matchAll(/`(test\/catalogue\/[\w.-]+)`/g)].map(([, path]) => path!);
  expect(tests.filter((path) => !existsSync(new URL(path, ROOT)))).toEqual([]);
});

describe('each row by itself, with the stores that it names, in real time', () => {
  let zookeeper: ZooKeeperEnsemble;

  beforeAll(async () => {
    zookeeper = await ZooKeeperEnsemble.start(1);
  });
  afterAll(() => zookeeper?.[Symbol.asyncDispose]());

  async function storesOf(row: SellingRow): Promise<Stores> {
    const all: Record<StoreName, () => Promise<string | string[]>> = {
      postgres: emptyDatabase,
      redis: async () => redisAdminUrl(),
      lockRedis: async () => [redisAdminUrl()],
      zookeeper: () => zookeeper.servers(),
    };
    const given = await Promise.all(row.stores.map(async (name) => [name, await all[name]()]));
    return { keyPrefix: freshPrefix(), ...Object.fromEntries(given) };
  }

  test.each(byId(...SELLING_ROWS))('%s sells one unit after the other, and then refuses', async (_, row) => {
    const node = await row.open(await storesOf(row), { id: 'sale', stock: 3, segments: 2, nodes: 1 });
    try {
      const outcomes = [];
      for (const [i, buyerId] of buyers(5).entries()) outcomes.push(await node.sell(buyerId, `order-${i}`));
      expect(tally(outcomes)).toEqual({ sold: 3, sold_out: 2 });
      expect((await node.sold()).map(({ buyerId }) => buyerId).sort()).toEqual(buyers(3));
      expect(await node.left()).toBe(0);
    } finally {
      await node.close();
    }
  });

  const stockIsKept = SELLING_ROWS.filter(({ stock }) => stock !== 'unsafe');

  test.each(byId(...stockIsKept))(
    '%s never sells more than there is to a crowd on one node',
    async (_, row) => {
      const node = await row.open(await storesOf(row), { id: 'sale', stock: 10, segments: 2, nodes: 1 });
      try {
        const outcomes = await Promise.all(buyers(20).map((buyerId, i) => node.sell(buyerId, `order-${i}`)));
        const sold = tally(outcomes).sold!;
        expect(sold).toBe((await node.sold()).length);
        expect(sold).toBeLessThanOrEqual(10);
        if (row.undersells === '') expect(sold).toBe(10);
      } finally {
        await node.close();
      }
    },
  );
});
