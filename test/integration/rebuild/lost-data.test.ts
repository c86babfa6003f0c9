/**
 * Redis has lost writes: a log, a segment, all of it, or it comes back from an older copy. That is noticed, reported, and
 * repaired from Postgres: nothing is oversold, no buyer gets a second unit, and the remaining units are sold.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Backend, Outcome } from '../../../src/engine/contract.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { BY } from '../../support/author.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import {
  expectKept,
  expectWithinLimit,
  ordersOf,
  type Promised,
  promisesOf,
  soldTo,
  unitsSold,
} from '../../support/shop/truth.ts';

const SEGMENTS = 4;
const STOCK = 40;

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const codesOf = (outcomes: readonly Outcome[]) => [...new Set(outcomes.map(({ code }) => code))];

/** A sale in which twelve have bought and are committed, and twelve more are only in the logs; no sync is running. */
async function halfCommitted() {
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const sync = await shop.startSync();
  await sync.ready;
  const till = await shop.startEngine();
  const committed = await till.buyAll(id, buyers(12, 'early'));
  expect(codesOf(committed)).toEqual(['committed']);
  await until(async () => (await keys.entries(id, SEGMENTS)).length === 0, { what: 'the logs are trimmed' });
  await sync.stop();
  // Several entries to each log.
  const accepted: Outcome[] = [];
  for (const group of [0, 1, 2, 3]) {
    const names = buyers(12, 'late').slice(group * 3, group * 3 + 3);
    accepted.push(...(await till.buyAll(id, names, { awaitCommit: false })));
  }
  expect(codesOf(accepted)).toEqual(['accepted']);
  return {
    id,
    till,
    committed: promisesOf(committed, buyers(12, 'early')),
    accepted: promisesOf(accepted, buyers(12, 'late')),
  };
}

/**
 * Checks after any loss: the sale sells until exactly its stock is sold, buyers with a unit get no second one, and committed
 * orders still exist.
 */
async function expectSoldOutOnce(id: string, till: Till, committed: readonly Promised[]): Promise<void> {
  const again = [...buyers(12, 'early'), ...buyers(12, 'late')];
  await until(async () => (await till.buy(id, 'first')).code.match(/committed|limit_reached/), {
    what: 'the sale sells again',
  });
  await till.buyAll(id, again);
  const report = await until(
    async () => {
      await till.buyAll(id, buyers(STOCK, 'other'));
      const verified = await shop.service.verify(id);
      // An order that Postgres refuses gives its units back after the commit.
      return verified.committedOrders === STOCK && verified.findings.length === 0 && verified;
    },
    { what: 'all is sold and committed, and what was refused has been given back' },
  );
  expect(report).toMatchObject({ ok: true });
  const orders = await ordersOf(shop.databaseUrl, id);
  expect(unitsSold(orders)).toBe(STOCK);
  expectWithinLimit(orders, 1);
  expectKept(committed, orders);
  const buyersOfUnits = soldTo(orders);
  for (const { buyerId } of committed) expect(buyersOfUnits.get(buyerId)).toBe(1);
}

describe('a segment that loses writes alone, as one server of a cluster may', () => {
  test('after its publication: it is rebuilt', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
    const names = Object.values(keys.of(id, 1));
    let copy = await keys.dump([]);
    const watched = intercept(shop.backend, async (call) => {
      if (call === 'sales.publish') copy = await keys.dump(names);
    });
    await rebuildSale(shop.db, watched, id);
    expect(await keys.redis.hget(keys.of(id, 1).segment, 'state')).toBe('open');
    await keys.restore(names, copy);
    expect(await keys.redis.hget(keys.of(id, 1).segment, 'state')).toBe('loaded');

    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([
      { saleId: id, segment: 1, problem: 'the segment is loaded, but the sale is published' },
    ]);
    await expectSoldOutOnce(id, await shop.startEngine(), []);
    expect(sync.seen.rebuilds).toHaveLength(1);
  });

  test.each(['while no sync is running', 'while sync is running'])(
    'behind a change of state, %s: it follows again',
    async (when) => {
      const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
      const sync = when === 'while sync is running' ? await shop.startSync() : undefined;
      await sync?.ready;
      const names = Object.values(keys.of(id, 1));
      await shop.service.change(id, { action: 'pause' }, BY);
      const copy = await keys.dump(names);
      await shop.service.change(id, { action: 'resume' }, BY);
      await keys.restore(names, copy);

      const { seen } = sync ?? (await shop.startSync());
      await until(async () => (await keys.redis.hget(keys.of(id, 1).segment, 'state')) === 'open', {
        what: 'the segment sells',
      });
      expect(seen).toMatchObject({ breaks: [], rebuilds: [], failures: [] });
    },
  );

  test.each(['the segment', 'the record'])(
    'behind a change of what it asks of buyers, %s: it follows again, and no purchase waits for ever',
    async (what) => {
      const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS, requireToken: true });
      const { seen, ready } = await shop.startSync();
      await ready;
      const names = what === 'the record' ? [keys.sale(id)] : Object.values(keys.of(id, 1));
      const copy = await keys.dump(names);
      await shop.service.change(id, { action: 'require-token', requireToken: false }, BY);
      await keys.restore(names, copy);
      const till = await shop.startEngine({ checkToken: () => 'alien' });
      await until(
        async () => {
          const outcomes = await till.buyAll(id, buyers(12, 'early'));
          return outcomes.every(({ code }) => code === 'committed' || code === 'limit_reached');
        },
        { what: 'every segment and the record have the rules of Postgres' },
      );
      expect(seen).toMatchObject({ breaks: [], rebuilds: [], failures: [] });
    },
  );
});

describe('a log', () => {
  test('that has lost an entry: the loss is reported, the other entries are salvaged', async () => {
    const { id, till, committed, accepted } = await halfCommitted();
    const log = (await keys.entries(id, SEGMENTS)).find(({ ids }) => ids.length > 1)!;
    await keys.redis.xdel(keys.of(id, log.segment).log, log.ids[0]!);

    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ saleId: id, segment: log.segment }]);
    expect(sync.seen.breaks[0]!.problem).toMatch(/is missing; the next is/);
    const orders = await ordersOf(shop.databaseUrl, id);
    const lost = accepted.filter(({ orderId }) => !orders.has(orderId));
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.length).toBeLessThan(accepted.length);
    expect(orders.size).toBe(committed.length + accepted.length - lost.length);
    await expectSoldOutOnce(id, till, committed);
  });

  test('that has lost its newest entry', async () => {
    const { id, till, committed } = await halfCommitted();
    const [log] = await keys.entries(id, SEGMENTS);
    await keys.redis.xdel(keys.of(id, log!.segment).log, log!.ids.at(-1)!);
    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ segment: log!.segment }]);
    await expectSoldOutOnce(id, till, committed);
  });

  test('that is missing', async () => {
    const { id, till, committed } = await halfCommitted();
    const [log] = await keys.entries(id, SEGMENTS);
    await keys.redis.del(keys.of(id, log!.segment).log);
    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ segment: log!.segment, problem: /are missing/ }]);
    await expectSoldOutOnce(id, till, committed);
  });

  test('that holds other data is left to an operator: the other sales continue', async () => {
    const { id, till, committed } = await halfCommitted();
    const other = await shop.sell({ stock: 5, segments: 2 });
    const [log] = await keys.entries(id, SEGMENTS);
    const key = keys.of(id, log!.segment).log;
    await keys.redis.set(key, 'not a stream');
    const sync = await shop.startSync();
    await until(() => sync.seen.failures.length > 0, { what: 'the failure is reported' });
    expect(sync.seen.failures[0]).toMatchObject({ saleId: id, error: { code: 'backend_corrupt' } });
    await until(async () => (await till.buy(other.id, 'anna')).code.match(/committed|limit_reached/), {
      what: 'the other sale sells',
    });
    expect(sync.seen.rebuilds).toEqual([]);
    await keys.redis.del(key);
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    await expectSoldOutOnce(id, till, committed);
  });
});

describe('a watermark for an entry that the log does not hold', () => {
  test('neither moves the segment’s cursor nor trims its log', async () => {
    const { id } = await halfCommitted();
    const [log] = await keys.entries(id, SEGMENTS);
    const { segment, ids } = log!;
    const snapshot = async () => (await shop.backend.sales.snapshot(id, SEGMENTS, 1))[segment]!.counters!;
    const { seq, orders, committed } = await snapshot();
    const watermark = { saleId: id, segment, generation: 1, seq, orders, rejected: [] };
    await shop.backend.log.advance([{ ...watermark, tails: ['1', '2'] }]);
    expect((await snapshot()).committed).toBe(committed);
    expect((await keys.entries(id, SEGMENTS))[0]).toEqual({ segment, ids });

    const position = { saleId: id, segment, generation: 1, seq: committed, tail: '' };
    const [read] = await shop.backend.log.readLog([position], 100);
    await shop.backend.log.advance([{ ...watermark, tails: read!.entries.map(({ tail }) => tail) }]);
    expect((await snapshot()).committed).toBe(seq);
    expect((await keys.entries(id, SEGMENTS)).find((other) => other.segment === segment)).toBeUndefined();
  });
});

describe('a segment', () => {
  test('that is missing is rebuilt, and the orders in its log are kept', async () => {
    const { id, till, committed, accepted } = await halfCommitted();
    await keys.redis.del(keys.of(id, 1).segment);
    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ segment: 1, problem: /missing/ }]);
    expectKept([...committed, ...accepted], await ordersOf(shop.databaseUrl, id));
    await expectSoldOutOnce(id, till, committed);
  });

  test('whose buyers are missing sells none of them a second unit', async () => {
    const { id, till, committed, accepted } = await halfCommitted();
    for (let segment = 0; segment < SEGMENTS; segment++) await keys.redis.del(keys.of(id, segment).buyers);
    await shop.startSync();
    const again = await Promise.all(
      [...committed, ...accepted].map(({ buyerId }) =>
        till.buy(id, buyerId, { awaitCommit: true }).then(({ code }) => code),
      ),
    );
    expect([...new Set(again)].filter((code) => code === 'committed')).toEqual([]);
    // A buyer who has not asked again is missing in the record: a repair finds and restores that.
    await until(async () => (await shop.service.verify(id, { repair: true })).ok, {
      what: 'all are recorded',
    });
    await expectSoldOutOnce(id, till, [...committed, ...accepted]);
  });
});

/** Sells to one buyer at a time, so that each has a log entry of its own. */
async function accept(till: Till, id: string, buyerIds: readonly string[]): Promise<void> {
  for (const buyerId of buyerIds) {
    expect((await till.buy(id, buyerId, { awaitCommit: false })).code).toBe('accepted');
  }
}

/** A backend whose logs give so many pages of entries; for the next ones sync waits, or fails, until the gate is opened. */
function logGate(backend: Backend, pages: number, sync: 'waits' | 'fails' = 'waits') {
  let [read, isOpen, open] = [0, false, () => {}];
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const gated = intercept(backend, (call, [positions, maxEntries]) => {
    const isPage = call === 'log.readLog' && (positions as unknown[]).length > 0 && maxEntries !== 0;
    if (!isPage || ++read <= pages || isOpen) return undefined;
    if (sync === 'fails') throw new Error('the connection is gone');
    return opened;
  });
  return {
    backend: gated,
    isShut: () => read > pages,
    open: () => {
      isOpen = true;
      open();
    },
  };
}

describe('a segment that comes back from an older copy', () => {
  /** Six buy, segment 0 is copied, six more buy; all are committed. */
  async function copied(id: string, till: Till) {
    const early = await till.buyAll(id, buyers(6, 'early'));
    const names = Object.values(keys.of(id, 0));
    await until(async () => (await keys.entries(id, SEGMENTS)).length === 0, {
      what: 'the logs are trimmed',
    });
    const copy = await keys.dump(names);
    const later = await till.buyAll(id, buyers(12, 'early').slice(6));
    expect(codesOf([...early, ...later])).toEqual(['committed']);
    return { early, later, goBack: () => keys.restore(names, copy) };
  }

  test.each([
    { when: 'while no sync is running', running: false },
    { when: 'while sync is running', running: true },
  ])('sells nothing to forgotten buyers, $when', async ({ running }) => {
    const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
    const first = await shop.startSync();
    const till = await shop.startEngine();
    const { early, later, goBack } = await copied(id, till);
    if (!running) await first.stop();

    await goBack();
    // The restored segment offers units that are sold, and does not know their buyers; the lane knows of the loss.
    const names = [...buyers(12, 'early'), ...buyers(6, 'greedy')];
    const asked = till.buyAll(id, names, { awaitCommit: running });
    const isShut = async () => (await keys.redis.hget(keys.of(id, 0).segment, 'state')) === 'lost';
    if (!running) await until(isShut, { what: 'the segment is shut' });
    const sync = running ? first : await shop.startSync();
    const forgotten = codesOf((await asked).slice(0, 12));
    expect(forgotten.filter((code) => !/limit_reached|unavailable/.test(code))).toEqual([]);
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ saleId: id, segment: 0 }]);
    if (!running) expect(sync.seen.breaks[0]!.problem).toMatch(/is missing, although a lane was told of it/);
    expect(sync.seen.rebuilds).toMatchObject([{ again: true }]);
    expect(sync.seen.rejections).toEqual([]);
    // Everything that Redis has lost was in Postgres.
    expect(sync.seen.losses).toEqual([]);
    await expectSoldOutOnce(id, till, promisesOf([...early, ...later], buyers(12, 'early')));
    expect(await shop.service.verify(id)).toMatchObject({ rejectedOrders: 0 });
  });

  test('sells to forgotten buyers through a node that knows nothing; Postgres refuses the orders, and they are counted', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
    const first = await shop.startSync();
    const { early, later, goBack } = await copied(id, await shop.startEngine());
    await first.stop();

    await goBack();
    const till = await shop.startEngine();
    const names = [...buyers(12, 'early'), ...buyers(6, 'greedy')];
    const greedy = till.buyAll(id, names);
    // If sync repaired the segment before, nothing would be sold to those that it forgot.
    await until(async () => (await keys.entries(id, SEGMENTS)).some(({ segment }) => segment === 0), {
      what: 'the segment has sold',
    });
    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ saleId: id, segment: 0 }]);
    expect([...new Set(sync.seen.rejections.map(({ reason }) => reason))]).toEqual(['limit']);
    const promised = promisesOf(await greedy, names);
    expect(promised.filter(({ buyerId }) => buyerId.startsWith('early'))).toEqual([]);
    await expectSoldOutOnce(id, till, promisesOf([...early, ...later], buyers(12, 'early')));
  });

  test('is noticed by the tails of its entries, even if their numbers match again', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: 1 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const { segment, buyers: held, log } = keys.of(id, 0);
    const copy = await keys.dump([segment, held, log]);
    const sold = await till.buyAll(id, buyers(12, 'early'), {});
    await sync.stop();
    await keys.restore([segment, held, log], copy);
    const position = Number(
      (await shop.db.raw('SELECT position FROM segment_cursors WHERE sale_id = ?', [id])).rows[0].position,
    );
    await accept(await shop.startEngine(), id, buyers(position, 'other'));
    const next = await shop.startSync();
    await until(() => next.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(next.seen.breaks).toMatchObject([{ problem: /is not the one that was applied/ }]);
    await expectSoldOutOnce(id, till, promisesOf(sold, buyers(12, 'early')));
  });

  test('without entries that sync has not read: the lane that knows of them marks it as lost, and the orders are counted', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: 1 });
    const till = await shop.startEngine();
    const names = Object.values(keys.of(id, 0));
    await accept(till, id, buyers(4, 'kept'));
    const copy = await keys.dump(names);
    const waiting = till.buyAll(id, buyers(3, 'waiting'));
    await until(async () => (await keys.left(id, 1)) === STOCK - 7, { what: 'three wait for their commits' });
    await accept(till, id, buyers(2, 'lost'));
    await keys.restore(names, copy);
    const late = till.buyAll(id, buyers(5, 'late'));
    const [segment] = names;
    await until(async () => (await keys.redis.hget(segment!, 'state')) === 'lost', {
      what: 'the segment is shut',
    });
    // A change of state that Redis has missed must not stand in the way of the rebuild.
    await shop.db.raw("UPDATE sales SET state = 'paused' WHERE id = ?", [id]);

    const sync = await shop.startSync();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([
      { segment: 0, problem: /is missing, although a lane was told of it/ },
    ]);
    expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 5 }]);
    expect(sync.seen.failures).toEqual([]);
    expect(codesOf(await waiting)).toEqual(['unknown']);
    // A buyer who came while the segment was marked as lost has waited until the sale was rebuilt.
    expect(codesOf(await late)).toEqual(['paused']);
    expect(till.faults).toEqual([]);
    expect([...soldTo(await ordersOf(shop.databaseUrl, id)).keys()].sort()).toEqual(buyers(4, 'kept'));
    await shop.service.change(id, { action: 'resume' }, BY);
    await expectSoldOutOnce(id, till, []);
  });

  test('without entries whose numbers were reused through a node that knows nothing: no buyer gets another order’s commit', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: 1 });
    const till = await shop.startEngine();
    const names = Object.values(keys.of(id, 0));
    const copy = await keys.dump(names);
    const losers = till.buyAll(id, buyers(3, 'loser'));
    await until(async () => (await keys.left(id, 1)) === STOCK - 3, { what: 'three units are taken' });
    // The reply is on its way before this one.
    await till.buy(id, 'loser-0', { awaitCommit: false });
    await keys.restore(names, copy);
    const winners = (await shop.startEngine()).buyAll(id, buyers(3, 'winner'));
    await until(async () => (await keys.left(id, 1)) === STOCK - 3, { what: 'three others are taken' });

    const sync = await shop.startSync();
    expect(codesOf(await winners)).toEqual(['committed']);
    expect(codesOf(await losers)).toEqual(['unknown']);
    const named = () => shop.db('lost_orders').where({ sale_id: id }).orderBy('buyer_id').pluck('buyer_id');
    await until(async () => (await named()).length === 3, { what: 'the lost orders are named' });
    expect(await named()).toEqual(buyers(3, 'loser'));
    expectKept(promisesOf(await winners, buyers(3, 'winner')), await ordersOf(shop.databaseUrl, id));
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 3 });
    expect(sync.seen.rebuilds).toEqual([]);

    // The first node comes back and reports. Three orders were lost; three others reuse their numbers, which hides two of the losses.
    await until(async () => (await till.buy(id, 'loser-0', { key: 'until-sold' })).code === 'committed', {
      what: 'a loser has its unit',
    });
    expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 1 }]);
    expect(codesOf(await till.buyAll(id, buyers(3, 'loser').slice(1)))).toEqual(['committed']);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 6 });
  });

  test.each([
    { who: 'the lane that knows of them', fresh: false },
    { who: 'a node that knows nothing', fresh: true },
  ])('without entries that are committed and not announced yet: $who continues', async ({ fresh }) => {
    const { id } = await shop.sell({ stock: STOCK, segments: 1 });
    const till = await shop.startEngine();
    const names = Object.values(keys.of(id, 0));
    const copy = await keys.dump(names);
    let away = true;
    const backend = intercept(shop.backend, (call) => {
      if (call === 'log.advance' && away) throw new Error('the connection is gone');
    });
    const sync = await shop.startSync({ backend });
    const early = till.buyAll(id, buyers(3, 'early'));
    await until(async () => (await ordersOf(shop.databaseUrl, id)).size === 3, {
      what: 'three are committed',
    });
    await keys.restore(names, copy);
    const second = fresh ? await shop.startEngine() : till;
    const late = second.buyAll(id, buyers(3, 'late'));
    await until(() => sync.seen.breaks.length > 0, { what: 'the loss is noticed' });
    away = false;
    expect(codesOf(await early)).toEqual(['committed']);
    const promises = promisesOf(
      [...(await early), ...(await late)],
      [...buyers(3, 'early'), ...buyers(3, 'late')],
    );
    expectKept(promises, await ordersOf(shop.databaseUrl, id));
    expect(sync.seen.breaks).toHaveLength(1);
    expect(sync.seen.losses).toEqual([]);
    await expectSoldOutOnce(id, till, promises);
  });

  test.each(['waits', 'fails'] as const)(
    'behind what sync has seen of its log, and not read because it %s: the difference is counted',
    async (how) => {
      const { id } = await shop.sell({ stock: STOCK, segments: 1 });
      const till = await shop.startEngine();
      const names = Object.values(keys.of(id, 0));
      await accept(till, id, buyers(6, 'early'));
      const copy = await keys.dump(names);
      await accept(till, id, buyers(12, 'early').slice(6));
      const gate = logGate(shop.backend, 2, how);
      const sync = await shop.startSync({ backend: gate.backend, batchRows: 1 });
      await until(() => gate.isShut() && sync.seen.orders === 2, { what: 'two are applied' });
      await keys.restore(names, copy);
      gate.open();
      await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
      expect(sync.seen.breaks).toMatchObject([{ segment: 0, problem: /was read before and is missing now/ }]);
      expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 6 }]);
      expect(sync.seen.rebuilds).toMatchObject([{ salvagedOrders: 4 }]);
      await expectSoldOutOnce(id, till, []);
    },
  );

  test.each([
    { when: 'when sync reads', isSeen: false },
    { when: 'when sync sees it and can’t read', isSeen: true },
  ])('behind the newest entry that sync has seen, and ahead of it again $when', async ({ isSeen }) => {
    const { id } = await shop.sell({ stock: STOCK, segments: 1 });
    const names = Object.values(keys.of(id, 0));
    const copy = await keys.dump(names);
    await accept(await shop.startEngine(), id, buyers(12, 'early'));
    const gate = logGate(shop.backend, 0, isSeen ? 'fails' : 'waits');
    const sync = await shop.startSync({ backend: gate.backend });
    await until(() => gate.isShut() && sync.seen.lastBacklog === 12, { what: 'sync knows of twelve' });
    await keys.restore(names, copy);
    const till = await shop.startEngine();
    await accept(till, id, buyers(14, 'late'));
    if (isSeen) await until(() => sync.seen.lastBacklog === 14, { what: 'sync knows of fourteen' });
    gate.open();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ segment: 0, problem: /was read before and is missing now/ }]);
    // Twelve orders were lost; fourteen others reuse their numbers, which hides all losses but the one that is missed by name.
    expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 1 }]);
    expect([...soldTo(await ordersOf(shop.databaseUrl, id)).keys()].sort()).toEqual(
      buyers(14, 'late').sort(),
    );
    await expectSoldOutOnce(id, till, []);
  });

  test('behind what sync has read, which then reaches Postgres: nothing is lost', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: 1 });
    const till = await shop.startEngine();
    const names = Object.values(keys.of(id, 0));
    const copy = await keys.dump(names);
    await accept(till, id, buyers(12, 'early'));
    const row = await shop.lockRow(id);
    const sync = await shop.startSync();
    await until(() => shop.isBlocked(), { what: 'sync has read the log and waits for the row' });
    await keys.restore(names, copy);
    await row.unlock();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.breaks).toMatchObject([{ problem: 'the newest entry is 0, but entry 12 was applied' }]);
    expect(sync.seen.losses).toEqual([]);
    expect((await ordersOf(shop.databaseUrl, id)).size).toBe(12);
    await expectSoldOutOnce(id, till, []);
  });

  test('in an older generation: orders taken since are salvaged', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
    const all = [keys.sale(id)];
    for (let n = 0; n < SEGMENTS; n++) all.push(...Object.values(keys.of(id, n)));
    const copy = await keys.dump(all);
    const first = await shop.startSync();
    await first.ready;
    await keys.redis.del(keys.of(id, 0).segment);
    await until(() => first.seen.rebuilds.length > 0, { what: 'the second generation' });
    await first.stop();

    await keys.restore(all, copy);
    // A node that has just started knows of no second generation.
    const till = await shop.startEngine();
    const sold = await till.buyAll(id, buyers(12, 'early'), { awaitCommit: false });
    expect(codesOf(sold)).toEqual(['accepted']);
    const next = await shop.startSync();
    await until(() => next.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    const promises = promisesOf(sold, buyers(12, 'early'));
    expectKept(promises, await ordersOf(shop.databaseUrl, id));
    await expectSoldOutOnce(id, till, promises);
  });
});

describe('all of Redis is lost', () => {
  let redis: RedisServer;
  let own: Shop;

  beforeEach(async () => {
    redis = await RedisServer.start();
    own = await Shop.open({ redis: redis.productUrl });
  });

  afterEach(async () => {
    await own[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  });

  test('in the middle of the sale: it continues from Postgres’ state', async () => {
    const { id } = await own.sell({ stock: 3_000, segments: 8 });
    const sync = await own.startSync();
    const till = await own.startEngine();
    await using running = new Load(till, id, { lines: 40 });
    for (const sold of [500, 1_500]) {
      await until(() => running.promised.length > sold, { what: `${sold} are sold` });
      const { length } = sync.seen.rebuilds;
      await using all = new RedisKeys(own);
      await all.redis.flushall();
      await until(() => sync.seen.rebuilds.length > length, { what: 'the sale is rebuilt' });
    }
    await until(() => running.codes.has('sold_out'), { what: 'the end of the sale', timeoutMs: 60_000 });
    const promised = await running.stop();
    const orders = await ordersOf(own.databaseUrl, id);
    expect(unitsSold(orders)).toBe(3_000);
    expectWithinLimit(orders, 1);
    // No buyer got `accepted`: the order of one that was still waiting is lost, and that buyer got `unknown`.
    expectKept(promised, orders);
    expect(running.codes.get('accepted')).toBeUndefined();
    expect(await own.service.verify(id)).toMatchObject({ ok: true, rejectedOrders: 0 });
  });

  test('while nothing was under way: later buyers wait until the sale is rebuilt, and none is refused', async () => {
    const { id } = await own.sell({ stock: 100, segments: 4 });
    const sync = await own.startSync();
    const till = await own.startEngine();
    const early = await till.buyAll(id, buyers(10, 'early'));
    await using all = new RedisKeys(own);
    await all.redis.flushall();
    const outcomes = await till.buyAll(id, [...buyers(10, 'early'), ...buyers(30)]);
    expect(outcomes.map(({ code }) => code)).toEqual([
      ...Array(10).fill('limit_reached'),
      ...Array(30).fill('committed'),
    ]);
    expect(sync.seen).toMatchObject({ rebuilds: [{ again: true }], losses: [] });
    expectKept(promisesOf(early, buyers(10, 'early')), await ordersOf(own.databaseUrl, id));
    expect(await own.service.verify(id)).toMatchObject({ ok: true, committedOrders: 40 });
  });

  test('when it was sold out and not all orders were committed: the lost units are sold again', async () => {
    const { id } = await own.sell({ stock: 10, segments: 4 });
    const till = await own.startEngine();
    const lost = await till.buyAll(id, buyers(10), { awaitCommit: false });
    expect(codesOf(lost)).toEqual(['accepted']);
    expect((await till.buy(id, 'late')).code).toBe('sold_out');
    await using all = new RedisKeys(own);
    await all.redis.flushall();
    const sync = await own.startSync();
    await until(async () => (await till.buy(id, 'late', { key: 'until-sold' })).code === 'committed', {
      what: 'the sale sells again',
    });
    const outcomes = await till.buyAll(id, buyers(12, 'other'));
    expect(outcomes.filter(({ code }) => code === 'committed')).toHaveLength(9);
    expect(outcomes.filter(({ code }) => code === 'sold_out')).toHaveLength(3);
    // No remaining process knows of an entry: the loss is known, but not how many orders it has.
    expect(sync.seen.rebuilds).toMatchObject([{ again: true }]);
    expect(sync.seen.losses).toEqual([]);
    expect(await own.service.verify(id)).toMatchObject({ ok: true, committedOrders: 10 });
  });

  test('with orders that sync has seen and not read: they are counted', async () => {
    const { id } = await own.sell({ stock: STOCK, segments: 1 });
    const till = await own.startEngine();
    await accept(till, id, buyers(12, 'early'));
    const gate = logGate(own.backend, 2);
    const sync = await own.startSync({ backend: gate.backend, batchRows: 1 });
    await until(() => gate.isShut() && sync.seen.orders === 2, { what: 'two are applied' });
    await using all = new RedisKeys(own);
    await all.redis.flushall();
    gate.open();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 10 }]);
    expect(sync.seen.rebuilds).toMatchObject([{ again: true }]);
    expect(await own.service.verify(id)).toMatchObject({ ok: true, committedOrders: 2 });
  });

  test('a closed and drained sale is rebuilt, and so are the next ones', async () => {
    const ids = [(await own.sell({ stock: 10, segments: 4 })).id, (await own.sell({ stock: 5 })).id];
    const till = await own.startEngine();
    const sync = await own.startSync();
    for (const id of ids) await till.buyAll(id, buyers(3), { key: 'k' });
    for (const id of ids) await own.service.change(id, { action: 'close' }, BY);
    for (const id of ids) await until(() => own.isUnlocked(id), { what: 'its lock is free' });
    await using all = new RedisKeys(own);
    for (const rebuilds of [2, 4]) {
      await all.redis.flushall();
      await until(() => sync.seen.rebuilds.length === rebuilds, { what: 'both sales are rebuilt' });
      for (const id of ids) {
        expect(await own.service.verify(id)).toMatchObject({ ok: true, committedOrders: 3 });
      }
    }
    expect(codesOf([await till.buy(ids[0]!, 'buyer-0', { key: 'k' })])).toEqual(['committed']);
  });

  test('a buyer who repeats the key gets the same order, or a new one if it was lost', async () => {
    const { id } = await own.sell({ stock: 10, segments: 4 });
    const till = await own.startEngine();
    const sync = await own.startSync();
    const kept = await till.buy(id, 'anna', { key: 'k' });
    await sync.stop();
    const lost = await till.buy(id, 'ben', { key: 'k', awaitCommit: false });
    await using all = new RedisKeys(own);
    await all.redis.flushall();
    await own.startSync();
    await until(async () => (await till.buy(id, 'cleo', { key: 'until-sold' })).code === 'committed', {
      what: 'the sale sells again',
    });
    expect(await till.buy(id, 'anna', { key: 'k' })).toEqual(kept);
    const again = await till.buy(id, 'ben', { key: 'k' });
    expect(again.code).toBe('committed');
    expect(again).not.toMatchObject({ orderId: (lost as { orderId: string }).orderId });
    expect(unitsSold(await ordersOf(own.databaseUrl, id))).toBe(3);
  });
});
