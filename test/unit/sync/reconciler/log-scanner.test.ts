/** Which of the sales that are not closed a scan returns as needing work, and what it learns of their logs. */
import { beforeEach, describe, expect, test } from 'vitest';
import { isAnnounced, isAsWanted, LogScanner } from '../../../../src/sync/reconciler/log-scanner.ts';
import { headAt, R1, type ScannedSale, ScannedShop } from '../../../support/shop/scanned-shop.ts';

let shop: ScannedShop;

beforeEach(() => {
  shop = new ScannedShop();
});

async function scan(scanner = new LogScanner(shop.stores, shop.held)): Promise<string[]> {
  return (await scanner.atWork()).map(({ sale }) => sale.id);
}

const HELD = { held: true, segments: 2, seq: 3 };

test('sales at rest need no work, and their logs are not read', async () => {
  const sales = ['one', 'two'].map((id) => shop.add(id, HELD));
  expect(await scan()).toEqual([]);
  expect(shop.queried).toEqual([undefined]);
  expect(shop.read).toEqual([[]]);
  expect(sales.some(({ log }) => log!.hasGrown)).toBe(false);
});

test('a sale that this sync does not work on needs work, and is returned with its record', async () => {
  shop.add('held', HELD);
  const { row, version } = shop.add('other');
  expect(await new LogScanner(shop.stores, shop.held).atWork()).toEqual([{ sale: row, version }]);
  expect(shop.queried).toEqual([undefined]);
});

describe('the rows of sales', () => {
  test('are read again only if one has changed', async () => {
    shop.add('sale', HELD);
    const scanner = new LogScanner(shop.stores, shop.held);
    for (let i = 0; i < 3; i++) expect(await scan(scanner)).toEqual([]);
    expect(shop.queried).toEqual([undefined]);
    shop.add('other');
    expect(await scan(scanner)).toEqual(['other']);
    expect(shop.queried).toEqual([undefined, undefined]);
  });

  test('of closed ones are read if this sync works on them', async () => {
    shop.add('open', HELD);
    shop.add('ended', { ...HELD, state: 'closed' });
    shop.add('over', { state: 'closed' });
    expect(await scan()).toEqual(['ended']);
    expect(shop.queried).toEqual([undefined, ['ended']]);
  });
});

describe('a held sale needs work if', () => {
  test.each<[string, (sale: ScannedSale) => void]>([
    ['its record is missing', (sale) => (sale.version = undefined)],
    ['its record is of another generation', (sale) => (sale.version = { ...sale.version!, generation: 2 })],
    ['its record has another state', (sale) => (sale.version = { ...sale.version!, state: 'paused' })],
    ['its record has other rules', (sale) => (sale.version = { ...sale.version!, rules: 'r2' })],
    ['a segment has another state', (sale) => (sale.heads[1] = headAt(3, { state: 'paused' }))],
    ['a segment has other rules', (sale) => (sale.heads[1] = headAt(3, { rules: 'r2' }))],
    ['a segment is missing', (sale) => (sale.heads[1] = undefined)],
    ['a log is behind its cursor', (sale) => (sale.heads[1] = headAt(2))],
    ['a log has another entry at its cursor', (sale) => (sale.heads[1] = headAt(3, { tail: 'other' }))],
    ['it is not announced how far a log is applied', (sale) => (sale.heads[1] = headAt(3, { committed: 2 }))],
  ])('%s', async (_, happen) => {
    happen(shop.add('sale', HELD));
    shop.add('other', HELD);
    expect(await scan()).toEqual(['sale']);
  });

  test('Postgres has it in another generation than its log', async () => {
    const { log } = shop.add('sale', HELD);
    shop.add('sale', { ...HELD, generation: 2 }).log = log;
    expect(await scan()).toEqual(['sale']);
    expect(shop.matched).toEqual([[]]);
  });

  test('it is closed and drained', async () => {
    shop.add('sale', { ...HELD, state: 'closed' });
    expect(await scan()).toEqual(['sale']);
    expect(shop.read.flat()).toHaveLength(2);
  });
});

describe('a log that has grown without a hint', () => {
  test('is read by the loop, and the sale needs no other work', async () => {
    const sale = shop.add('sale', HELD);
    sale.heads[1] = headAt(5, { committed: 3 });
    expect(await scan()).toEqual([]);
    expect(sale.log!.takeGrown(9).map(({ segment }) => segment)).toEqual([1]);
    expect(sale.log!.newest[1]).toMatchObject({ seq: 5 });
  });

  test('is not read if the sale was released meanwhile', async () => {
    const sale = shop.add('sale', HELD);
    const { log } = sale;
    sale.heads[1] = headAt(5, { committed: 3 });
    shop.meanwhile = () => (sale.log = undefined);
    await scan();
    expect(log!.hasGrown).toBe(false);
  });

  test('is read again if what was seen in it was not', async () => {
    const sale = shop.add('sale', HELD);
    sale.heads[1] = headAt(5);
    const position = sale.cursors[1]!;
    sale.log!.saw(1, { position, head: sale.heads[1], entries: [] });
    expect(await scan()).toEqual([]);
    expect(shop.read).toEqual([[]]);
    expect(sale.log!.hasGrown).toBe(true);
  });

  test('that is not as it was known teaches nothing about the other logs of the sale', async () => {
    const sale = shop.add('sale', HELD);
    sale.heads = [headAt(5), headAt(2)];
    expect(await scan()).toEqual(['sale']);
    expect(sale.log!.hasGrown).toBe(false);
    expect(sale.log!.newest[0]).toMatchObject({ seq: 3 });
  });
});

describe('a closed sale that this sync works on', () => {
  const grown = headAt(5, { state: 'closed', committed: 3 });

  test('is not released before its logs are drained', async () => {
    shop.add('sale', { ...HELD, state: 'closed' }).heads[1] = grown;
    expect(await scan()).toEqual([]);
  });

  test.each([
    ['it was compared', R1, 1],
    ['its logs were read', 'r2', 2],
  ])('and that was released while %s is left to the next scan', async (_, rules, calls) => {
    const sale = shop.add('sale', { ...HELD, state: 'closed' });
    sale.heads[1] = headAt(3, { state: 'closed', rules });
    shop.meanwhile = () => {
      if (shop.matched.length + shop.read.length === calls) sale.log = undefined;
    };
    expect(await scan()).toEqual([]);
  });
});

describe('a scan asks page by page, each', () => {
  test('of a thousand segments', async () => {
    for (const id of ['a', 'b', 'c']) shop.add(id, { held: true, segments: 500 });
    await scan();
    expect(shop.matched).toEqual([['a', 'b'], ['c']]);
  });

  test('and of no empty rest', async () => {
    for (const id of ['a', 'b']) shop.add(id, { held: true, segments: 500 });
    await scan();
    expect(shop.matched).toEqual([['a', 'b']]);
  });

  test('of a thousand sales that this sync does not work on', async () => {
    for (let i = 0; i < 1_001; i++) shop.add(`sale-${i}`);
    expect(await scan()).toHaveLength(1_001);
    expect(shop.asked.map((ids) => ids.length)).toEqual([1_000, 1]);
  });
});

test('of many quiet sales each scan asks a part, and all again when hints may have been lost', async () => {
  for (let i = 0; i < 400; i++) shop.add(`sale-${i}`, { held: true });
  const scanner = new LogScanner(shop.stores, shop.held);
  for (let i = 0; i < 20; i++) await scan(scanner);
  expect(shop.matched.map((ids) => ids.length)).toEqual([...Array(11).fill(400), ...Array(9).fill(100)]);
  const { log } = shop.sales.get('sale-7')!;
  shop.add('sale-7', { generation: 2 }).log = log;
  for (let i = 0; i < 4; i++) expect(await scan(scanner)).toEqual(['sale-7']);
  shop.add('sale-7').log = log;
  scanner.hintsLost();
  await scan(scanner);
  expect(shop.matched.at(-1)).toHaveLength(400);
});

test('a log is announced if the backend knows that it is applied up to the position', () => {
  const position = { saleId: 'sale', segment: 0, generation: 1, seq: 3, tail: '' };
  const isKnown = [2, 3, 4].map((committed) =>
    isAnnounced({ position, head: headAt(4, { committed }), entries: [] }),
  );
  expect(isKnown).toEqual([false, true, true]);
  expect(isAnnounced({ position, head: undefined, entries: [] })).toBe(false);
});

test.each([
  ['open', 'open', R1, true],
  ['open', 'paused', R1, false],
  ['open', 'open', 'r2', false],
  ['open', 'open', undefined, false],
  ['closed', 'closed', R1, true],
  ['closed', 'closed', 'r2', true],
  ['closed', 'closed', undefined, false],
  ['closed', 'open', R1, false],
] as const)(
  'a sale that is %s in Postgres, and %s in the backend with rules %s: as wanted: %s',
  (state, seen, rules, isSo) => {
    const { row } = shop.add('sale', { state });
    expect(isAsWanted(row, { state: seen, ...(rules && { rules }) })).toBe(isSo);
  },
);
