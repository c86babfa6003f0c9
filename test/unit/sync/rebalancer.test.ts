/** Which sales the timer looks at: an operator's rebalance looks at any. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { GenerationRef } from '../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { SaleLog } from '../../../src/sync/apply/sale-log.ts';
import type { SyncStores } from '../../../src/sync/held/sync-stores.ts';
import { Rebalancer } from '../../../src/sync/rebalancer.ts';
import { elapse, freezeTime } from '../../support/engine/frozen-time.ts';
import { aSale, type LoadedSale, loadSale } from '../../support/shop/sales.ts';

interface Held {
  readonly sale: LoadedSale;
  readonly log: SaleLog;
}

/** In memory, and says of itself that its segments are on several servers, where a transfer may be left open. */
class SpreadBackend extends MemoryBackend {
  isSpread = true;
}

let backend: SpreadBackend;
let held: Held[];
let rebalancer: Rebalancer;
let told: unknown[];
let failed: unknown[];
let stores: SyncStores;
let sales: { readonly logs: SaleLog[] };

beforeEach(async () => {
  backend = new SpreadBackend({ maxLogOrders: 1_000 });
  held = [];
  told = [];
  failed = [];
  await hold(1);
  const events = {
    transferred: (transfer: unknown) => told.push(transfer),
    saleFailed: (failure: unknown) => failed.push(failure),
  };
  stores = { backend, events } as unknown as SyncStores;
  sales = {
    get logs() {
      return held.map(({ log }) => log);
    },
  };
  rebalancer = new Rebalancer(stores, sales, 0);
});

afterEach(() => {
  vi.useRealTimers();
  expect(failed).toEqual([]);
});

/** So many more sales that sync works on, each with all units in its second segment. */
async function hold(sales: number): Promise<void> {
  for (let i = 0; i < sales; i++) {
    const sale = await loadSale(backend, aSale({ stock: 12, segments: 2 }), { split: [0, 12] });
    held.push({ sale, log: logOf(sale) });
  }
}

function logOf(sale: LoadedSale): SaleLog {
  const cursors = [0, 1].map((segment) => ({ ...sale.position(0, '', segment), orders: 0, units: 0 }));
  return new SaleLog(sale.sale.id, cursors);
}

function sell({ sale, log }: Held): void {
  const seq = log.newest[1]!.seq + 1;
  const head = { seq, tail: String(seq), orders: seq, committed: 0, state: 'open' } as const;
  log.saw(1, { position: sale.position(0, '', 1), head, entries: [] });
}

const isEven = async ({ sale }: Held) => (await sale.left())[0] === 6;

async function evenSales(): Promise<number> {
  const even = await Promise.all(held.map(isEven));
  return even.filter(Boolean).length;
}

const unevenAgain = ({ sale }: Held) =>
  sale.backend.transfers.transfer(sale.ref(), { from: 0, to: 1, units: 6 });

test('a sale that is new to the rebalancer is looked at', async () => {
  await rebalancer.run();
  expect(await evenSales()).toBe(1);
});

test('an uneven sale is left alone until it sells again', async () => {
  const [one] = held as [Held];
  await rebalancer.run();
  await unevenAgain(one);
  await rebalancer.run();
  expect(await isEven(one)).toBe(false);
  sell(one);
  await rebalancer.run();
  expect(await isEven(one)).toBe(true);
});

test('a round looks at 48 sales that have sold, and the others follow in later rounds', async () => {
  await hold(99);
  const even: number[] = [];
  for (let round = 0; round < 3; round++) {
    await rebalancer.run();
    even.push(await evenSales());
  }
  expect(even).toEqual([48, 96, 100]);
});

test('those that have waited longest come first', async () => {
  await hold(59);
  await rebalancer.run();
  await rebalancer.run();
  expect(await evenSales()).toBe(60);
  for (const one of held) {
    await unevenAgain(one);
    sell(one);
  }
  await rebalancer.run();
  // The second round looked at the twelve that had sold, and then again at the first 48, which were quiet.
  expect((await Promise.all(held.map(isEven))).slice(36, 48)).toEqual(Array(12).fill(false));
  await rebalancer.run();
  expect(await evenSales()).toBe(60);
});

test('quiet sales are looked at in turn, because a transfer may be left open', async () => {
  await hold(99);
  for (let round = 0; round < 3; round++) await rebalancer.run();
  const finished: string[] = [];
  vi.spyOn(backend.transfers, 'finish').mockImplementation(async (...[sale]: GenerationRef[]) => {
    finished.push(sale!.saleId);
    return [];
  });
  for (let round = 0; round < 2; round++) await rebalancer.run();
  expect(new Set(finished)).toEqual(new Set(held.map(({ sale }) => sale.sale.id)));
  expect(finished).toHaveLength(128);
});

test('a single server is not asked about quiet sales, because no transfer can be left open there', async () => {
  backend.isSpread = false;
  const [one] = held as [Held];
  await rebalancer.run();
  expect(await isEven(one)).toBe(true);
  const asked = vi.spyOn(backend.sales, 'versions');
  await rebalancer.run();
  expect(asked).not.toHaveBeenCalled();
  await unevenAgain(one);
  sell(one);
  await rebalancer.run();
  expect(await isEven(one)).toBe(true);
});

test('a sale that sync no longer works on is forgotten, and looked at when it comes back', async () => {
  const [one] = held as [Held];
  await rebalancer.run();
  held = [];
  await rebalancer.run();
  await unevenAgain(one);
  held = [one];
  await rebalancer.run();
  expect(await isEven(one)).toBe(true);
});

test('what was moved is told, with the reason', async () => {
  const [{ sale }] = held as [Held];
  const saleId = sale.sale.id;
  await rebalancer.run();
  expect(told).toEqual([{ saleId, why: 'uneven', moves: 1, units: 6 }]);
  vi.spyOn(backend.transfers, 'finish').mockResolvedValueOnce([
    { from: 0, to: 1, units: 2 },
    { from: 1, to: 0, units: 3 },
  ]);
  await rebalancer.run();
  expect(told.slice(1)).toEqual([{ saleId, why: 'unfinished', moves: 2, units: 5 }]);
});

test('a sale that is nearly even is left alone', async () => {
  const [one] = held as [Held];
  await rebalancer.run();
  await one.sale.backend.transfers.transfer(one.sale.ref(), { from: 0, to: 1, units: 3 });
  sell(one);
  await rebalancer.run();
  expect(await one.sale.left()).toEqual([3, 9]);
  expect(told).toHaveLength(1);
});

test('a sale that is not open is left alone, and one that the backend has in another generation', async () => {
  const [one] = held as [Held];
  const versions = await backend.sales.versions([one.sale.sale.id]);
  for (const other of [
    undefined,
    { ...versions[0]!, state: 'paused' as const },
    { ...versions[0]!, generation: 2 },
  ]) {
    vi.spyOn(backend.sales, 'versions').mockResolvedValueOnce([other]);
    sell(one);
    await rebalancer.run();
    expect(await isEven(one)).toBe(false);
  }
  sell(one);
  await rebalancer.run();
  expect(await isEven(one)).toBe(true);
});

describe('of one sale', () => {
  const finishing = (end: () => Promise<never>) =>
    vi.spyOn(backend.transfers, 'finish').mockImplementationOnce(end);

  test('a failure is told, and the others are looked at', async () => {
    await hold(1);
    const error = new Error('no number');
    finishing(() => Promise.reject(error));
    await rebalancer.run();
    expect(failed.splice(0)).toEqual([{ saleId: held[0]!.sale.sale.id, error }]);
    expect(await evenSales()).toBe(1);
  });

  test('a rebuild is no failure', async () => {
    finishing(() => Promise.reject(new StaleGeneration('sale', 1)));
    await rebalancer.run();
  });
});

test('while the backend is away nothing is looked at', async () => {
  vi.spyOn(backend.sales, 'versions').mockRejectedValueOnce(new Error('away'));
  await rebalancer.run();
  expect(await evenSales()).toBe(0);
});

describe('rounds', () => {
  let runs: number;
  let endRound: () => void;

  /** A rebalancer whose rounds end by hand. */
  function started(everyMs: number): Rebalancer {
    freezeTime();
    runs = 0;
    const timed = new Rebalancer(stores, sales, everyMs);
    vi.spyOn(timed, 'run').mockImplementation(() => {
      runs++;
      return new Promise((resolve) => (endRound = resolve));
    });
    timed.start();
    return timed;
  }

  test('follow each other at the given distance', async () => {
    const timed = started(100);
    await elapse(99);
    expect(runs).toBe(0);
    await elapse(1);
    expect(runs).toBe(1);
    await elapse(1_000);
    expect(runs).toBe(1);
    endRound();
    await elapse(0);
    await elapse(100);
    expect(runs).toBe(2);
    endRound();
    await timed.stop();
  });

  test('do not begin without a distance', async () => {
    started(0);
    await elapse(1_000);
    expect(runs).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('end with a stop, which waits for the one under way', async () => {
    const timed = started(100);
    await elapse(100);
    let hasStopped = false;
    const stopped = timed.stop().then(() => {
      hasStopped = true;
    });
    await elapse(0);
    expect(hasStopped).toBe(false);
    endRound();
    await stopped;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('do not begin after a stop', async () => {
    await started(100).stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('that were stopped look at no further sale', async () => {
    await rebalancer.stop();
    await rebalancer.run();
    expect(await evenSales()).toBe(0);
  });
});

test('the timer keeps no process alive', async () => {
  const unref = vi.fn();
  vi.spyOn(globalThis, 'setTimeout').mockReturnValueOnce({ unref } as unknown as NodeJS.Timeout);
  const timed = new Rebalancer(stores, sales, 100);
  timed.start();
  expect(unref).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
});
