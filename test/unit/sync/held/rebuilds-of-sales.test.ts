/** What a rebuild beside the loop is told of its sale, and what it tells. The rebuild itself is replaced. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { StaleGeneration } from '../../../../src/engine/errors.ts';
import { LocalLocks } from '../../../../src/postgres/sale-locks.ts';
import type { SaleLog } from '../../../../src/sync/apply/sale-log.ts';
import { Hints } from '../../../../src/sync/held/hints.ts';
import { type RebuildCause, Rebuilds } from '../../../../src/sync/held/rebuilds.ts';
import type { SyncStores } from '../../../../src/sync/held/sync-stores.ts';

interface Witness {
  rejected(rejection: unknown): void;
  ordersLost(loss: unknown): void;
}

const { rebuildSale, readSale } = vi.hoisted(() => ({ rebuildSale: vi.fn(), readSale: vi.fn() }));
vi.mock('../../../../src/rebuild/rebuild.ts', () => ({ rebuildSale }));
vi.mock('../../../../src/sales/sale-rows.ts', () => ({ readSale }));

const REPORT = { generation: 4, salvagedOrders: 1, loadedBuyers: 2 };
const NEWEST = [{ seq: 1, tail: '7', orders: 1 }];

let events: [kind: string, of: unknown][];
let setAside: unknown[][];
let locks: LocalLocks;
let hints: Hints;
let backend: { durable: boolean; sales: { versions: () => Promise<unknown[]> } };
/** What the backend's record of the sale names. */
let published: number | undefined;
let claim: (() => Promise<void>) | undefined;
let rebuilds: Rebuilds;

beforeEach(async () => {
  [events, setAside, locks, hints, claim, published] = [[], [], new LocalLocks(), new Hints(), undefined, 3];
  backend = {
    durable: true,
    sales: { versions: async () => [published === undefined ? undefined : { generation: published }] },
  };
  rebuildSale.mockReset().mockResolvedValue(REPORT);
  readSale.mockReset().mockResolvedValue({ generation: 3 });
  await locks.tryLock('sale');
  const seen = (kind: string) => (of: unknown) => void events.push([kind, of]);
  const stores = {
    db: {},
    backend,
    locks,
    events: { rebuilt: seen('rebuilt'), rejected: seen('rejected'), ordersLost: seen('ordersLost') },
    claim: () => claim?.(),
  };
  rebuilds = new Rebuilds(stores as unknown as SyncStores, hints, (...failed) => setAside.push(failed));
});

async function rebuild(generation = 3, cause?: RebuildCause): Promise<void> {
  rebuilds.begin({ saleId: 'sale', generation, newest: NEWEST } as unknown as SaleLog, 'lost', cause);
  expect([rebuilds.count, rebuilds.has('sale'), rebuilds.has('other')]).toEqual([1, true, false]);
  await rebuilds.ended();
}

describe('a sale is rebuilt', () => {
  test('with what is known of it, and this is told', async () => {
    const asked = {};
    rebuildSale.mockImplementation(async (...[, , , witness]: [unknown, unknown, unknown, Witness]) => {
      witness.rejected({ orderId: '7', reason: 'stock' });
      witness.ordersLost({ segment: 1, orders: 5 });
      return REPORT;
    });
    await rebuild(3, { asked });
    const witness = expect.objectContaining({ generation: 3, newest: NEWEST });
    expect(rebuildSale.mock.calls).toEqual([[{}, backend, 'sale', witness, asked]]);
    expect(events).toEqual([
      ['rejected', { saleId: 'sale', orderId: '7', reason: 'stock' }],
      ['ordersLost', { saleId: 'sale', segment: 1, orders: 5 }],
      ['rebuilt', { saleId: 'sale', why: 'lost', again: false, ...REPORT }],
    ]);
  });

  test.each([
    ['the backend has lost it', 3, undefined, true, true],
    ['it was never built', 0, undefined, true, false],
    ['an operator asked for it', 3, {}, true, false],
    ['the backend lives in the process', 3, undefined, false, false],
  ])('again only if the backend should have had it: %s', async (_, generation, asked, durable, again) => {
    backend.durable = durable;
    readSale.mockResolvedValue({ generation });
    await rebuild(generation, asked && { asked });
    expect(events).toEqual([['rebuilt', expect.objectContaining({ again })]]);
  });

  test('without a generation if it is archived: nothing is known of its logs', async () => {
    readSale.mockResolvedValue({ generation: 3, archivedAt: new Date(0) });
    await rebuild(0);
    expect(rebuildSale).toHaveBeenCalledOnce();
    expect(rebuildSale.mock.calls[0]![3]).not.toHaveProperty('generation');
  });
});

describe('nothing is rebuilt', () => {
  test.each([
    ['if another process has rebuilt the sale', { generation: 4 }, 3],
    ['if another process has rebuilt the archived sale', { generation: 4, archivedAt: new Date(0) }, 3],
    ['if it was built meanwhile', { generation: 1 }, 0],
    ['if the sale was deleted', undefined, 3],
    ['if the sale that was never built was deleted', undefined, 0],
  ])('%s', async (_, row, generation) => {
    readSale.mockResolvedValue(row);
    await rebuild(generation);
    expect(rebuildSale).not.toHaveBeenCalled();
    expect([events, setAside]).toEqual([[], []]);
  });

  test('if the stores do not belong together', async () => {
    const foreign = new Error('foreign stores');
    claim = () => Promise.reject(foreign);
    await rebuild();
    expect(rebuildSale).not.toHaveBeenCalled();
    expect(setAside).toEqual([['sale', foreign]]);
  });

  test('and nothing told if the rebuild had nothing to do', async () => {
    rebuildSale.mockResolvedValue(undefined);
    await rebuild();
    expect(events).toEqual([]);
  });
});

test.each([
  ['not repeated if another process has published it meanwhile', 3, 0],
  ['published if no other process has', 2, 1],
  ['published if the backend is empty', undefined, 1],
])('a generation that was not published is %s', async (_, generation, times) => {
  published = generation;
  await rebuild(3, { isUnpublished: true });
  expect(rebuildSale).toHaveBeenCalledTimes(times);
});

describe('after a rebuild', () => {
  test.each<[string, Error | undefined, boolean]>([
    ['that succeeded', undefined, false],
    ['that failed, and whose sale is set aside', new Error('no number'), true],
    ['in which another process was faster', new StaleGeneration('sale', 3), false],
  ])('%s, the sale is free, and the loop tries it', async (_, error, isSetAside) => {
    if (error) rebuildSale.mockRejectedValue(error);
    await rebuild();
    expect(setAside).toEqual(isSetAside ? [['sale', error]] : []);
    expect([rebuilds.count, rebuilds.has('sale')]).toEqual([0, false]);
    expect(await locks.tryLock('sale')).toBe(true);
    expect([...hints.takeAll().keys()]).toEqual(['sale']);
  });

  test('the loop tries the sale even if the connection of the locks has gone', async () => {
    const unlock = locks.unlock.bind(locks);
    locks.unlock = (name) => (name === 'sale' ? Promise.reject(new Error('gone')) : unlock(name));
    await rebuild();
    expect(rebuilds.count).toBe(0);
    expect([...hints.takeAll().keys()]).toEqual(['sale']);
  });
});

test('while an operator rebuilds the sale, sync waits for the end', async () => {
  await locks.tryLock('rebuild:sale');
  const ended = rebuild();
  await new Promise(setImmediate);
  expect(rebuildSale).not.toHaveBeenCalled();
  await locks.unlock('rebuild:sale');
  await ended;
  expect(rebuildSale).toHaveBeenCalledOnce();
});
