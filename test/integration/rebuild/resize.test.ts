/**
 * A sale that is resized while it sells, with many recorded buyers and others that buy all the time: how long buyers wait, and
 * whether anything is refused, forgotten, sold twice or lost.
 */
import { afterEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/engine/contract.ts';
import { LockedBackend } from '../../../src/engine/locked/locked-backend.ts';
import type { Inside } from '../../../src/engine/locked/locked-takes.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { deathAt, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { buyers, Shop, type ShopOptions } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { expectKept, ordersOf, type Promised, promisesOf } from '../../support/shop/truth.ts';
import { inTier } from '../../support/tier.ts';

const WHO = { actor: 'otto', reason: 'more came' };
const HOLDERS = inTier({ test: 1_000, release: 100_000 });
/** Before the resize, and after it. */
const PURCHASES = inTier({ test: 400, release: 2_000 });
const HELD_FROM = '1000000000000000000';

let shop: Shop;

afterEach(() => shop[Symbol.asyncDispose]());

/** A sale of so many units, of which so many buyers have one each already. */
async function sellWithHolders(stock: number, segments: number, holders: number): Promise<string> {
  const { id } = await shop.sell({ stock: stock + holders, segments });
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
     SELECT ?::bigint + n, ?, 'holder-' || n, 1, true FROM generate_series(0, ? - 1) AS n`,
    [HELD_FROM, id, holders],
  );
  await shop.db.raw('UPDATE sales SET stock = stock - ?, live_orders = ? WHERE id = ?', [
    holders,
    holders,
    id,
  ]);
  await rebuildSale(shop.db, shop.backend, id);
  return id;
}

/** Buys without a pause, as so many buyers side by side, until it is stopped. */
class BusyCrowd {
  readonly names: string[] = [];
  readonly outcomes: Outcome[] = [];
  bought = 0;
  /** The answers to buyers who have a unit already. */
  readonly again = new Set<string>();
  readonly #till: Till;
  readonly #saleId: string;
  readonly #holders: number;
  readonly #ended: Promise<unknown>;
  #stopped = false;

  constructor(till: Till, saleId: string, width: number, holders: number) {
    this.#till = till;
    this.#saleId = saleId;
    this.#holders = holders;
    this.#ended = Promise.all(Array.from({ length: width }, () => this.#buy()));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#ended;
  }

  async #buy(): Promise<void> {
    while (!this.#stopped) {
      const buyerId = `crowd-${this.names.length}`;
      const at = this.names.push(buyerId) - 1;
      this.outcomes[at] = await this.#till.buy(this.#saleId, buyerId);
      this.bought++;
      const greedy = at % 2 ? buyerId : `holder-${at % this.#holders}`;
      this.again.add((await this.#till.buy(this.#saleId, greedy)).code);
    }
  }
}

/** Cancels orders as the product does, in one transaction. */
async function giveBack(id: string, buyerId: string): Promise<void> {
  await shop.db.raw(
    `SELECT stockade_give_back(ARRAY(SELECT order_id FROM orders WHERE sale_id = ? AND buyer_id = ?), 'cancelled')`,
    [id, buyerId],
  );
}

/** Does something once, right before the first call of that name. */
function before(call: string, work: () => Promise<unknown>) {
  let done: Promise<unknown> | undefined;
  return intercept(shop.backend, (name) => {
    if (name !== call) return undefined;
    done ??= work();
    return done;
  });
}

const resize = (id: string, segments: number) => shop.service.change(id, { action: 'resize', segments }, WHO);

async function expectSound(id: string, promised: readonly Promised[]): Promise<void> {
  await until(async () => (await shop.service.verify(id)).ok, { what: 'the sale adds up' });
  expectKept(promised, await ordersOf(shop.databaseUrl, id));
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, rejectedOrders: 0 });
}

describe.each<{ backend: NonNullable<ShopOptions['backend']> }>([
  { backend: 'memory' },
  { backend: 'redis' },
])('on $backend', ({ backend }) => {
  test.each([
    { from: 8, to: 32 },
    { from: 32, to: 4 },
  ])(
    // How long buyers wait is what `npm run bench:resize` measures.
    `with ${HOLDERS} buyers recorded and a crowd that buys, $from -> $to segments: each purchase is committed`,
    { timeout: 300_000 },
    async ({ from, to }) => {
      shop = await Shop.open({ backend });
      const id = await sellWithHolders(500_000, from, HOLDERS);
      const sync = await shop.startSync();
      await sync.ready;
      const till = await shop.startEngine();
      const crowd = new BusyCrowd(till, id, 64, HOLDERS);
      await until(() => crowd.bought > PURCHASES, { what: 'the crowd buys' });
      const status = await resize(id, to);
      expect(status.segments).toBe(to);
      const soFar = crowd.bought;
      await until(() => crowd.bought > soFar + PURCHASES, { what: 'the crowd goes on' });
      await crowd.stop();

      expect([...new Set(crowd.outcomes.map(({ code }) => code))]).toEqual(['committed']);
      expect([...crowd.again]).toEqual(['limit_reached']);
      expect(till.faults).toEqual([]);
      const orders = await ordersOf(shop.databaseUrl, id);
      expectKept(promisesOf(crowd.outcomes, crowd.names), orders);
      expect(orders.size).toBe(HOLDERS + crowd.names.length);
      expect(await shop.service.verify(id)).toMatchObject({ ok: true, rejectedOrders: 0 });
      expect(sync.seen).toMatchObject({ breaks: [], losses: [], rejections: [], failures: [], crashes: [] });
      expect(sync.seen.rebuilds).toMatchObject([{ again: false }]);
      expect(await shop.changesOf(id)).toMatchObject([
        { action: 'resize', actor: 'otto', reason: 'more came', applied: true, detail: { from, to } },
      ]);
    },
  );
});

describe.each<{ backend: NonNullable<ShopOptions['backend']> }>([
  { backend: 'memory' },
  { backend: 'redis' },
])('between the draft and the next generation, on $backend', ({ backend }) => {
  test('a buyer that has returned a unit may buy again, and one that has bought may not', async () => {
    shop = await Shop.open({ backend });
    const id = await sellWithHolders(100, 2, 20);
    const till = await shop.startEngine();
    let late: Promise<Outcome> | undefined;
    const changed = before('sales.freeze', async () => {
      await giveBack(id, 'holder-3');
      // Nothing is committed before the sale is built. Then she gets her answer.
      late = till.buy(id, 'late');
      // What remains tells nothing: sync may put the returned unit on sale before this take, or after it.
      const orders = async () =>
        (await shop.backend.sales.snapshot(id, 2, 2)).map(({ counters }) => counters?.orders ?? 0);
      await until(async () => (await orders()).some((taken) => taken > 0), { what: 'a unit is taken' });
    });
    const sync = await shop.startSync({ backend: changed });
    await sync.ready;
    await resize(id, 5);
    expect((await late)?.code).toBe('committed');
    expect((await till.buy(id, 'late')).code).toBe('limit_reached');
    expect((await till.buy(id, 'holder-4')).code).toBe('limit_reached');
    expect((await till.buy(id, 'holder-3')).code).toBe('committed');
    expect(sync.seen.rejections).toEqual([]);
    await expectSound(id, []);
    expect(await shop.service.show(id)).toMatchObject({ segments: 5, remaining: 99 });
  });
});

describe('a resize', () => {
  test.each([
    'sales.beginDraft',
    'sales.draftHoldings',
    'sales.freeze',
    'log.readLog',
    'sales.loadSegment',
    'sales.removeSegments',
    'sales.publish',
  ])('is carried out by the next sync if the first dies before %s', async (step) => {
    shop = await Shop.open();
    const id = await sellWithHolders(100, 4, 20);
    const till = await shop.startEngine();
    let wanted = false;
    const { death, before: dies } = deathAt((call) => wanted && call === step);
    const dying = await shop.startSync({
      backend: intercept(shop.backend, dies),
      locks: new LocalLocks(),
      hangs: true,
    });
    await dying.ready;
    const early = await till.buyAll(id, buyers(5));
    const locks = new LocalLocks();
    // Held until the first sync is dead, so that no other process carries it out.
    await locks.tryLock(id);
    const service = new SaleService(shop.db, shop.backend, locks);
    wanted = true;
    const resized = service.change(id, { action: 'resize', segments: 3 }, WHO);
    await death;
    const waiting = till.buyAll(id, buyers(5, 'waiting'));
    await locks.unlock(id);
    const next = await shop.startSync({ locks });
    expect((await resized).segments).toBe(3);
    const late = await till.buyAll(id, [...buyers(5), ...buyers(3, 'late')]);
    expect(late.map(({ code }) => code)).toEqual([
      ...Array(5).fill('limit_reached'),
      ...Array(3).fill('committed'),
    ]);
    expect((await waiting).map(({ code }) => code)).toEqual(Array(5).fill('committed'));
    expect(next.seen.losses).toEqual([]);
    await expectSound(id, promisesOf(await waiting, buyers(5, 'waiting')));
    expectKept(promisesOf(early, buyers(5)), await ordersOf(shop.databaseUrl, id));
  });

  test('works without a sync, too', async () => {
    shop = await Shop.open();
    const id = await sellWithHolders(100, 2, 20);
    expect(await resize(id, 7)).toMatchObject({ segments: 7, generation: 3 });
    const till = await shop.startEngine();
    expect((await till.buy(id, 'holder-1')).code).toBe('limit_reached');
    await expectSound(id, []);
  });

  test('to the present number does nothing; of several requests the last one counts', async () => {
    shop = await Shop.open();
    const { id } = await shop.sell({ stock: 10, segments: 2 });
    await resize(id, 2);
    expect(await shop.changesOf(id)).toEqual([]);
    const sync = await shop.startSync();
    await sync.ready;
    await Promise.all([resize(id, 5), resize(id, 3)]);
    const ledger = await shop.changesOf(id);
    expect(await shop.service.show(id)).toMatchObject({ segments: ledger.at(-1)!.detail.to });
    expect(ledger.map(({ applied }) => applied)).toEqual([true, true]);
    await expectSound(id, []);
  });

  test('of a closed sale is refused', async () => {
    shop = await Shop.open();
    const { id } = await shop.sell({ stock: 10, segments: 2 });
    await shop.service.change(id, { action: 'close' }, WHO);
    await expect(resize(id, 4)).rejects.toMatchObject({ code: 'wrong_state', state: 'closed' });
  });

  test('during the shop’s work under a segment’s lock: the order is taken in its new segment, without repeating the work', async () => {
    shop = await Shop.open();
    const { id } = await shop.sell({ stock: 100, segments: 1 });
    const seen: string[] = [];
    let goOn = () => {};
    const inside: Inside = async (orders) => {
      seen.push(...orders.map(({ buyerId }) => buyerId));
      if (seen.length === 1) await new Promise<void>((resolve) => (goOn = resolve));
      return [];
    };
    const { redisUrl: url, keyPrefix } = shop;
    const options = {
      urls: [url],
      keyPrefix,
      takeTimeoutMs: 5_000,
      maxLogOrders: 1_000,
      inside,
      insideMaxMs: 20_000,
    };
    await using locked = closing(await LockedBackend.open(options));
    const till = await shop.startEngine({ backend: locked.backend });
    const sync = await shop.startSync();
    await sync.ready;
    const anna = till.buy(id, 'anna');
    await until(() => seen.length === 1, { what: 'anna’s order is inside' });
    await resize(id, 4);
    // The lock of her segment is hers still; the other ones are free.
    const others = buyers(20).filter((name) => homeSegment(name, 4) !== 0);
    expect(new Set((await till.buyAll(id, others)).map(({ code }) => code))).toEqual(new Set(['committed']));
    goOn();
    expect((await anna).code).toBe('committed');
    expect(seen.sort()).toEqual(['anna', ...others].sort());
    await expectSound(id, promisesOf([await anna], ['anna']));
    await till.engine.close();
  });
});

function closing(backend: LockedBackend) {
  return { backend, [Symbol.asyncDispose]: () => backend.close() };
}
