/** Several syncs divide the sales. Whatever happens to one of them, every order is applied once and every buyer is answered. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SyncNews } from '../../../src/engine/contract.ts';
import { splitEvenly } from '../../../src/engine/sale/split-evenly.ts';
import { PostgresLocks, type SaleLocks } from '../../../src/postgres/sale-locks.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { SyncProgram } from '../../support/nodes/sync-program.ts';
import { Shop, type SyncSpec, type WatchedSync } from '../../support/shop/shop.ts';
import { expectKept, ordersOf } from '../../support/shop/truth.ts';
import { inTier } from '../../support/tier.ts';

/** Far more than a hand-over takes, on a busy machine. A buyer whose sale nobody takes waits longer. */
const LONGEST_WAIT_MS = 5_000;
/** Purchases that are timed before the second sync comes, and after that. */
const SOME_WAITS = inTier({ test: 200, release: 1_000 });
/** Sales that nobody buys from. */
const IDLE_SALES = inTier({ test: 12, release: 1_000 });

let shop: Shop;
const ends: (() => Promise<void>)[] = [];

beforeEach(async () => {
  shop = await Shop.open();
});

afterEach(async () => {
  await shop[Symbol.asyncDispose]();
  for (const end of ends.splice(0)) await end();
});

/** The locks of one sync, as another process would have them. */
class OwnLocks implements SaleLocks {
  readonly held = new Set<string>();
  statements = 0;
  changes = 0;
  readonly #locks = new PostgresLocks(shop.databaseUrl);

  async tryLock(saleId: string): Promise<boolean> {
    return (await this.tryLocks([saleId])).has(saleId);
  }

  async tryLocks(saleIds: readonly string[]): Promise<ReadonlySet<string>> {
    this.statements++;
    const locked = await this.#locks.tryLocks(saleIds);
    for (const saleId of locked) this.held.add(saleId);
    this.changes += locked.size;
    return locked;
  }

  holds(saleId: string): Promise<boolean> {
    return this.#locks.holds(saleId);
  }

  unlock(saleId: string): Promise<void> {
    this.statements++;
    this.changes++;
    this.held.delete(saleId);
    return this.#locks.unlock(saleId);
  }

  close(): Promise<void> {
    return this.#locks.close();
  }
}

interface OwnSync {
  readonly sync: WatchedSync;
  readonly locks: OwnLocks;
}

async function startSync(options: SyncSpec = {}): Promise<OwnSync> {
  const locks = new OwnLocks();
  ends.push(() => locks.close());
  return { sync: await shop.startSync({ ...options, locks }), locks };
}

async function sell(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await shop.sell({ stock: 100_000, segments: 2 })).id);
  return ids;
}

const countsOf = (syncs: readonly OwnSync[]) => syncs.map(({ locks }) => locks.held.size);

/** Waits until each sync has that many sales. */
const share = (syncs: readonly OwnSync[], counts: readonly number[]) =>
  until(() => countsOf(syncs).sort().join() === [...counts].sort().join(), {
    what: `the syncs have ${counts} sales`,
  });

async function sweeps(syncs: readonly OwnSync[], count: number): Promise<void> {
  const before = syncs.map(({ sync }) => sync.seen.sweeps);
  await until(() => syncs.every(({ sync }, i) => sync.seen.sweeps >= before[i]! + count), {
    what: `${count} sweeps of each sync`,
  });
}

const faultsOf = (syncs: readonly OwnSync[]) =>
  syncs.flatMap(({ sync: { seen } }) => [
    ...[...seen.crashes, ...seen.breaks, ...seen.rebuilds],
    ...[...seen.rejections, ...seen.failures, ...seen.losses],
  ]);

async function expectSound(ids: readonly string[]): Promise<void> {
  for (const id of ids) expect(await shop.service.verify(id)).toMatchObject({ ok: true, rejectedOrders: 0 });
}

/** News of a sync that is not there. */
async function hearNews(): Promise<SyncNews[]> {
  const heard: SyncNews[] = [];
  await shop.backend.subscribe({ syncNews: (news) => heard.push(news) });
  return heard;
}

describe('a further sync', () => {
  test('gets its part, and balanced syncs move nothing and try no lock more than once a second', {
    timeout: 300_000,
  }, async () => {
    await sell(IDLE_SALES);
    const first = await startSync();
    await first.sync.ready;
    await share([first], [IDLE_SALES]);
    const second = await startSync();
    await share([first, second], splitEvenly(IDLE_SALES, 2));
    const third = await startSync();
    const all = [first, second, third];
    await share(all, splitEvenly(IDLE_SALES, 3));
    await sweeps(all, 1);
    const before = all.map(({ locks }) => ({ changes: locks.changes, statements: locks.statements }));
    await sweeps(all, 3);
    for (const [i, { locks }] of all.entries()) {
      expect(locks.changes).toBe(before[i]!.changes);
      // A sweep is under way at the beginning, and one at the end.
      expect(locks.statements - before[i]!.statements).toBeLessThanOrEqual(5);
    }
    expect(faultsOf(all)).toEqual([]);
  });

  test('leaves a single sale where it is', async () => {
    const [id] = await sell(1);
    const first = await startSync();
    await first.sync.ready;
    const second = await startSync();
    await sweeps([first, second], 4);
    expect(first.locks.held).toEqual(new Set([id]));
    expect([first.locks.changes, second.locks.changes]).toEqual([1, 0]);
  });

  test('gets half of the busy sales while they sell, and no buyer waits long', {
    timeout: 300_000,
  }, async () => {
    const ids = await sell(6);
    const busy = ids.slice(0, 4);
    const first = await startSync({ batchRows: 20 });
    await first.sync.ready;
    const till = await shop.startEngine();
    const waits: number[] = [];
    const buy = till.buy.bind(till);
    till.buy = async (...purchase) => {
      const began = performance.now();
      const outcome = await buy(...purchase);
      waits.push(performance.now() - began);
      return outcome;
    };
    const loads = busy.map((id) => new Load(till, id, { lines: 5 }));
    await until(() => waits.length > SOME_WAITS, { what: `${SOME_WAITS} purchases` });
    const usual = Math.max(...waits.splice(0));
    const second = await startSync({ batchRows: 20 });
    await share([first, second], [3, 3]);
    const divided = busy.filter((id) => second.locks.held.has(id));
    const since = waits.length;
    await until(() => waits.length > since + SOME_WAITS, { what: `${SOME_WAITS} more` });
    const promised = await Promise.all(loads.map((load) => load.stop()));
    console.log(`longest wait ${Math.round(Math.max(...waits))} ms, before ${Math.round(usual)} ms`);
    expect(divided).toHaveLength(2);
    expect(Math.max(...waits)).toBeLessThan(usual + LONGEST_WAIT_MS);
    for (const [i, id] of busy.entries()) {
      const orders = await ordersOf(shop.databaseUrl, id);
      expect(orders.size).toBe(promised[i]!.length);
      expectKept(promised[i]!, orders);
      expect([...loads[i]!.codes.keys()]).toEqual(['committed']);
    }
    await expectSound(ids);
    expect(faultsOf([first, second])).toEqual([]);
  });

  test('gets its part from a sync that leaves the processor to buyers', async () => {
    const ids = await sell(4);
    const first = await startSync({ backpressure: { isLoadHigh: () => true, maxMs: 600_000 } });
    await first.sync.ready;
    const till = await shop.startEngine();
    for (const id of ids) await till.buy(id, 'anna', { awaitCommit: false });
    const second = await startSync();
    await share([first, second], [2, 2]);
  });
});

describe('a hand-over', () => {
  test('waits for the batch under way', async () => {
    const ids = await sell(2);
    const first = await startSync();
    await first.sync.ready;
    const till = await shop.startEngine();
    const row = await shop.lockRow(ids[0]!);
    const bought = till.buy(ids[0]!, 'anna');
    await until(() => shop.isBlocked(), { what: 'the batch waits for the row' });
    const heard = await hearNews();
    const second = await startSync();
    const ofSecond = () => heard.filter(({ sales }) => sales === 0);
    await until(() => ofSecond().length > 3, { what: 'the second sync has told its news four times' });
    expect(heard.filter(({ handedOver }) => handedOver)).toEqual([]);
    expect(countsOf([first, second])).toEqual([2, 0]);
    await row.unlock();
    expect((await bought).code).toBe('committed');
    await share([first, second], [1, 1]);
    await expectSound(ids);
    expect(faultsOf([first, second])).toEqual([]);
  });

  test('whose news is lost leaves no sale to nobody', async () => {
    const ids = await sell(4);
    let lost = 0;
    const backend = intercept(shop.backend, (call, [news]) => {
      if (call !== 'syncs.tell' || !(news as SyncNews).handedOver) return undefined;
      lost++;
      return new Promise(() => {});
    });
    const first = await startSync({ backend });
    await first.sync.ready;
    const till = await shop.startEngine();
    const second = await startSync();
    await until(() => lost > 0, { what: 'sales are handed over' });
    for (const id of ids) expect((await till.buy(id, 'anna')).code).toBe('committed');
    await share([first, second], [2, 2]);
    await expectSound(ids);
  });

  test('to a sync that is not there gives the sales back to the first that looks', async () => {
    const ids = await sell(4);
    const first = await startSync();
    await first.sync.ready;
    const heard = await hearNews();
    const ghost = { from: '0123456789abcdef', sales: 0 };
    await until(
      () => {
        shop.backend.syncs!.tell(ghost);
        return heard.some(({ handedOver }) => handedOver?.to === ghost.from);
      },
      { what: 'sales are handed over to a sync that was never there' },
    );
    const till = await shop.startEngine();
    for (const id of ids) expect((await till.buy(id, 'anna')).code).toBe('committed');
    await share([first], [4]);
    expect(faultsOf([first])).toEqual([]);
  });
});

describe('a process', () => {
  test('that stops, goes on and dies keeps, and then loses, no more than its own sales', {
    timeout: 300_000,
  }, async () => {
    const ids = await sell(6);
    const env = { REDIS_URL: shop.redisUrl, DATABASE_URL: shop.databaseUrl, KEY_PREFIX: shop.keyPrefix };
    await using program = await SyncProgram.start(env);
    const heard = await hearNews();
    await until(() => heard.some(({ sales }) => sales === ids.length), { what: 'it has all sales' });
    const own = await startSync();
    await share([own], [3]);
    const till = await shop.startEngine();
    const mine = [...own.locks.held];
    const theirs = ids.filter((id) => !mine.includes(id));

    program.signal('SIGSTOP');
    const waiting = theirs.map((id) => till.buy(id, 'anna'));
    // Longer than it is remembered.
    await sweeps([own], 7);
    for (const id of mine) expect((await till.buy(id, 'anna')).code).toBe('committed');
    expect([...own.locks.held].sort()).toEqual([...mine].sort());

    program.signal('SIGCONT');
    for (const bought of waiting) expect((await bought).code).toBe('committed');
    await sweeps([own], 2);
    expect([...own.locks.held].sort()).toEqual([...mine].sort());

    await program.kill();
    for (const id of ids) expect((await till.buy(id, 'bert')).code).toBe('committed');
    await share([own], [6]);

    await program.start();
    await share([own], [3]);
    for (const id of ids) expect((await till.buy(id, 'carl')).code).toBe('committed');
    await expectSound(ids);
    expect(faultsOf([own])).toEqual([]);
  });
});
