/** Which of the closed sales a scan returns, page by page. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type ClosedSales, LogScanner } from '../../../../src/sync/reconciler/log-scanner.ts';
import { headAt, type ScannedSale, ScannedShop } from '../../../support/shop/scanned-shop.ts';

let shop: ScannedShop;
let scanner: LogScanner;

beforeEach(() => {
  shop = new ScannedShop();
  scanner = new LogScanner(shop.stores, shop.held);
});

function add(id: string, spec: Parameters<ScannedShop['add']>[1] = {}): ScannedSale {
  return shop.add(id, { state: 'closed', segments: 2, seq: 3, ...spec });
}

function addDrained(id: string): ScannedSale {
  const sale = add(id);
  sale.isFinished = true;
  return sale;
}

async function scan(): Promise<{ [kind in keyof ClosedSales]: string[] }> {
  const { needingWork, drained } = await scanner.closed();
  return { needingWork: needingWork.map(({ sale }) => sale.id), drained: [...drained] };
}

test('a sale that is not known to be drained needs work', async () => {
  add('sale');
  expect(await scan()).toEqual({ needingWork: ['sale'], drained: [] });
  expect(shop.matched).toEqual([]);
});

test('a drained sale that matches its cursors needs none, and its logs are not read', async () => {
  addDrained('sale');
  expect(await scan()).toEqual({ needingWork: [], drained: ['sale'] });
  expect(shop.read).toEqual([[]]);
});

test('a sale that this sync works on is left to the scan of those', async () => {
  add('sale', { held: true });
  expect(await scan()).toEqual({ needingWork: [], drained: [] });
});

describe('an archived sale', () => {
  test('needs no work if the backend does not have it', async () => {
    add('sale', { isArchived: true }).version = undefined;
    expect(await scan()).toEqual({ needingWork: [], drained: [] });
  });

  test('needs work if the backend has it, even after it was drained', async () => {
    add('sale', { isArchived: true }).isFinished = true;
    expect(await scan()).toEqual({ needingWork: ['sale'], drained: [] });
  });
});

describe('a drained sale needs work if', () => {
  test.each<[string, (sale: ScannedSale) => void]>([
    ['its record is missing', (sale) => (sale.version = undefined)],
    ['its record is of another generation', (sale) => (sale.version = { ...sale.version!, generation: 2 })],
    ['its record has another state', (sale) => (sale.version = { ...sale.version!, state: 'open' })],
  ])('%s', async (_, happen) => {
    happen(addDrained('sale'));
    expect(await scan()).toEqual({ needingWork: ['sale'], drained: [] });
  });

  const closed = { state: 'closed' } as const;

  test.each([
    ['has another state', headAt(3)],
    ['has no rules', { ...headAt(3, closed), rules: '' }],
    ['has further entries', headAt(4, closed)],
    ['has lost entries', headAt(2, closed)],
    ['has another entry at the cursor', headAt(3, { ...closed, tail: 'other' })],
    ['does not know that it is drained', headAt(3, { ...closed, committed: 2 })],
    ['is missing', undefined],
  ])('one of its segments %s', async (_, head) => {
    addDrained('a');
    addDrained('b').heads[1] = head;
    addDrained('c');
    expect(await scan()).toEqual({ needingWork: ['b'], drained: ['a', 'b', 'c'] });
  });

  test('but not if only its rules are others: nobody can buy', async () => {
    for (const id of ['a', 'b']) addDrained(id).heads[1] = headAt(3, { ...closed, rules: 'r2' });
    expect(await scan()).toEqual({ needingWork: [], drained: ['a', 'b'] });
    expect(shop.read.flat()).toHaveLength(4);
  });
});

const idOf = (i: number) => `sale-${String(i).padStart(4, '0')}`;

/** In the order of ids. */
function addMany(count: number, one: (id: string) => void = add): void {
  for (let i = 1; i <= count; i++) one(idOf(i));
}

describe('the next scan continues', () => {
  test.each([
    ['after 100 sales that are not known to be drained', 150, add, 100],
    ['after 50 drained ones', 80, addDrained, 50],
    ['after 500 in any case', 500, (id: string) => add(id, { held: true }), 500],
  ])('%s', async (_, count, one, looked) => {
    addMany(count, one);
    const { needingWork, drained } = await scan();
    expect(needingWork.length + drained.length).toBe(looked === 500 ? 0 : looked);
    await scan();
    expect(shop.queried).toEqual(['', idOf(looked)]);
  });

  test.each([
    ['100', 100, add],
    ['50 drained', 50, addDrained],
    ['499 known', 499, (id: string) => add(id, { held: true })],
    ['no', 0, add],
  ])('at the beginning after the last of %s sales', async (_, count, one) => {
    addMany(count, one);
    await scan();
    await scan();
    expect(shop.queried).toEqual(['', '']);
  });
});
