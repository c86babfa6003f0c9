/**
 * One run of the life of a sale: two nodes that sell it, sync and operators, on real stores. After each step it compares the
 * books in both stores, read without the product's code.
 */
import { expect } from 'vitest';
import type {
  Backend,
  BackendEvents,
  GenerationRef,
  HeldOrder,
  Outcome,
  Purchase,
} from '../../../src/engine/contract.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import { rows } from '../../../src/postgres/database.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { BY } from '../../support/author.ts';
import { type Before, intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import type { Shop, WatchedSync } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { watched } from '../watched-backend.ts';
import { isLive, LifeModel, type OrderTruth, units } from './life-model.ts';

/** No deadline passes here: a purchase without an answer waits for something that the run must bring about. */
const REQUEST_DEADLINE_MS = 30_000;
const PAY_WITHIN_SECONDS = 3_600;
const NODES = 2;
const MAX_LOG_ENTRIES = 10_000;

export const BEGUN = Date.UTC(2024, 0, 1);
export const BUYERS = ['anna', 'ben', 'cleo', 'dora', 'emil'] as const;

/** A purchase, at one of the nodes. */
export interface Wish {
  readonly node: number;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  readonly awaitCommit: boolean;
}

interface Bought {
  readonly purchase: Purchase;
  outcome: Outcome | undefined;
  /** The order that was taken, while its purchase waits for the commit. */
  orderId?: string | undefined;
}

export interface LifeSale {
  readonly stock: number;
  readonly segments: number;
  readonly limit: number;
}

interface Truth {
  readonly stock: number;
  readonly generation: number;
  readonly segments: number;
  readonly orders: readonly OrderTruth[];
  readonly ledger: readonly { id: string; action: string; units: number; open: boolean }[];
  /** Orders whose return is pending. */
  readonly returns: readonly string[];
  readonly cursors: readonly { segment: number; seq: number; tail: string; units: number }[];
}

export class LifeTrial {
  readonly shop: Shop;
  readonly saleId: string;
  readonly model: LifeModel;
  readonly tills: readonly Till[];
  readonly #hearing: { on: boolean };
  #sync: WatchedSync | undefined;
  #waiting: Bought[] = [];
  generation = 1;
  segments: number;

  private constructor(
    shop: Shop,
    parts: Pick<LifeTrial, 'saleId' | 'model' | 'tills' | 'segments'> & { hearing: { on: boolean } },
  ) {
    this.shop = shop;
    this.saleId = parts.saleId;
    this.model = parts.model;
    this.tills = parts.tills;
    this.segments = parts.segments;
    this.#hearing = parts.hearing;
  }

  static async begin(shop: Shop, { stock, segments, limit }: LifeSale): Promise<LifeTrial> {
    const spec = {
      startsAt: new Date(BEGUN).toISOString(),
      stock,
      segments,
      perBuyerLimit: limit,
      payWithinSeconds: PAY_WITHIN_SECONDS,
    };
    const { id: saleId } = await shop.sell(spec);
    const hearing = { on: true };
    const tills: Till[] = [];
    for (let node = 0; node < NODES; node++) {
      const backend = node === 0 ? shop.backend : droppingChanges(shop.backend, hearing);
      tills.push(await shop.startEngine({ backend, requestDeadlineMs: REQUEST_DEADLINE_MS }));
    }
    const model = new LifeModel({ stock, limit });
    return new LifeTrial(shop, { saleId, model, tills, segments, hearing });
  }

  get ref(): GenerationRef {
    return { saleId: this.saleId, generation: this.generation };
  }

  /** While set, messages about changed sales do not reach the last node. */
  setHearing(on: boolean): void {
    this.#hearing.on = on;
  }

  async startSync(): Promise<void> {
    await this.forsake();
    this.#sync = await this.shop.startSync();
    this.model.isSyncOn = true;
  }

  async stopSync(): Promise<void> {
    if (!this.#sync) return;
    await this.#sync.stop();
    const { failures, crashes, rejections } = this.#sync.seen;
    expect({ failures, crashes, rejections }, 'errors of sync').toEqual({
      ...{ failures: [], crashes: [], rejections: [] },
    });
    this.#sync = undefined;
    this.model.isSyncOn = false;
  }

  /** A process that began a change and did not end it does not come back. */
  async forsake(): Promise<void> {
    await this.shop.db.raw(
      "UPDATE stock_movements SET moved_at = now() - interval '1 minute' WHERE sale_id = ? AND applied_at IS NULL",
      [this.saleId],
    );
  }

  /** Buys side by side. Returns when each purchase is answered, or has taken its order and waits for the commit. */
  async buy(wishes: readonly Wish[]): Promise<void> {
    const bought = wishes.map(({ node, ...wish }) => this.#begin(this.tills[node % NODES]!, wish));
    await this.#taken(bought);
  }

  #begin(till: Till, wish: Omit<Purchase, 'saleId'>): Bought {
    const bought: Bought = { purchase: { ...wish, saleId: this.saleId }, outcome: undefined };
    till.engine.buy(bought.purchase, (outcome) => {
      expect(bought.outcome, 'a purchase is answered once').toBeUndefined();
      bought.outcome = outcome;
    });
    return bought;
  }

  async #taken(bought: readonly Bought[]): Promise<void> {
    await until(() => this.#haveEnded(bought), { what: `the outcome of ${JSON.stringify(bought)}` });
    const before = { left: this.model.left, orders: new Set(this.model.orders.keys()) };
    for (const { purchase, orderId } of bought) {
      if (orderId !== undefined && !this.model.orders.has(orderId)) this.model.take(orderId, purchase);
    }
    const concluded = bought.filter(({ orderId }) => orderId === undefined);
    this.model.conclude(
      concluded.map(({ purchase, outcome }) => ({ purchase, outcome: outcome! })),
      before,
    );
    this.#waiting.push(...bought.filter(({ orderId }) => orderId !== undefined));
  }

  /** Assigns orders to the waiting purchases. */
  async #haveEnded(bought: readonly Bought[]): Promise<boolean> {
    const records = new Map<string, readonly HeldOrder[]>();
    for (const { purchase } of bought) {
      records.set(purchase.buyerId, await this.#record(purchase.buyerId));
    }
    // Nothing can happen between here and the answer.
    for (const one of bought) one.orderId = undefined;
    for (const one of bought) {
      const { buyerId, quantity, key, awaitCommit } = one.purchase;
      if (one.outcome || (this.shop.backend.durable && !awaitCommit)) continue;
      const isOwn = (order: HeldOrder) => key !== '' || !this.#isKnown(order.orderId, bought);
      one.orderId = records
        .get(buyerId)!
        .find((order) => order.key === key && order.quantity === quantity && isOwn(order))?.orderId;
    }
    return bought.every(({ outcome, orderId }) => outcome ?? orderId);
  }

  #isKnown(orderId: string, bought: readonly Bought[]): boolean {
    const named = bought.some(
      (one) =>
        one.orderId === orderId ||
        (one.outcome && 'orderId' in one.outcome && one.outcome.orderId === orderId),
    );
    return named || this.model.orders.has(orderId);
  }

  async #record(buyerId: string) {
    const segment = homeSegment(buyerId, this.segments);
    const { holdings } = await this.shop.backend.sales.recall({ ...this.ref, segment }, [buyerId]);
    return holdings[0]!.orders;
  }

  /** Makes the operator's change. @param before see `intercept`: if it throws, the change ends there */
  async change(change: SaleChange, before?: Before): Promise<void> {
    const backend = watched(before ? intercept(this.shop.backend, before) : this.shop.backend);
    try {
      await new SaleService(this.shop.db, backend, this.shop.locks).change(this.saleId, change, BY);
    } finally {
      await backend.quiet();
    }
  }

  /**
   * After several steps side by side, nothing predicts the result. So the model starts again from what Postgres holds once sync
   * has caught up.
   */
  async adopt(): Promise<void> {
    const { model } = this;
    model.orders.clear();
    model.mayLose = false;
    const { orders, ledger, generation, segments } = await this.#caughtUp();
    for (const order of orders) model.adopt(order);
    model.ledger.splice(0, model.ledger.length, ...ledger.map(({ action, units }) => ({ action, units })));
    model.state = (await this.shop.service.show(this.saleId)).state;
    model.uncredited = 0;
    model.withdrawing = undefined;
    [this.generation, this.segments] = [generation, segments];
  }

  /** The units of this order, if it has ended, are for sale again. */
  async returned(orderId: string): Promise<void> {
    await until(async () => !(await this.#truth()).returns.includes(orderId), {
      what: `the return of ${orderId}`,
    });
  }

  /** Units taken out of the segments for the newest withdrawal. */
  async withdrawn(): Promise<number> {
    const { ledger } = await this.#truth();
    const open = ledger.find((row) => row.open && row.action === 'withdraw')?.id;
    const snapshot = await this.shop.backend.sales.snapshot(this.saleId, this.segments, this.generation);
    const out = snapshot.map(({ counters }) =>
      counters?.withdrawal.movement === open ? (counters?.withdrawal.units ?? 0) : 0,
    );
    return out.reduce((sum, units) => sum + units, 0);
  }

  /** Redis loses all data of the sale. */
  async wipe(): Promise<void> {
    await using keys = new RedisKeys(this.shop);
    const segments = Array.from({ length: this.segments }, (_, segment) => keys.of(this.saleId, segment));
    await keys.redis.del(
      keys.sale(this.saleId),
      ...segments.flatMap(({ segment, buyers, log }) => [segment, buyers, log]),
    );
  }

  /** Compares the books in both stores. */
  async check(): Promise<void> {
    const { model } = this;
    const truth = model.isSyncOn ? await this.#caughtUp() : await this.#truth();
    const inPostgres = new Set(truth.orders.map(({ id }) => id));
    if (model.isSyncOn) model.isBuilt = true;
    if (model.isSyncOn || truth.generation > this.generation) model.arrive(inPostgres);
    this.generation = truth.generation;
    this.segments = truth.segments;
    for (const order of model.logged) if (inPostgres.has(order.id)) order.status = 'unpaid';
    this.#checkPostgres(truth);
    expect(await this.#isBuilt(truth), 'the sale is built').toBe(model.isBuilt);
    if (model.isBuilt) {
      await this.#checkBackend(truth);
      await this.#learned();
    }
    await this.#checkWaiting();
  }

  async #caughtUp(): Promise<Truth> {
    return until<Truth | undefined>(
      async () => {
        const truth = await this.#truth();
        const known = new Set(truth.orders.map(({ id }) => id));
        const isDone =
          truth.returns.length === 0 &&
          truth.ledger.every(({ open }) => !open) &&
          (this.model.mayLose || this.model.logged.every(({ id }) => known.has(id))) &&
          (await this.#isBuilt(truth)) &&
          (await this.#isDrained(truth));
        return isDone ? truth : undefined;
      },
      { what: 'sync has caught up' },
    ) as Promise<Truth>;
  }

  async #truth(): Promise<Truth> {
    const [row] = await rows<{ truth: Truth }>(
      this.shop.db,
      `SELECT json_build_object('stock', s.stock, 'generation', s.generation, 'segments', s.segments,
         'orders', (SELECT coalesce(json_agg(json_build_object('id', order_id::text, 'buyerId', buyer_id,
             'quantity', quantity, 'status', status, 'refundDue', refund_due_at IS NOT NULL,
             'retakenBy', retaken_by::text) ORDER BY order_id), '[]') FROM orders WHERE sale_id = s.id),
         'ledger', (SELECT coalesce(json_agg(json_build_object('id', id::text, 'action', action, 'units', units,
             'open', applied_at IS NULL) ORDER BY id), '[]') FROM stock_movements
             WHERE sale_id = s.id AND action <> 'create'),
         'returns', (SELECT coalesce(json_agg(order_id::text), '[]') FROM stock_returns
             WHERE sale_id = s.id AND applied_at IS NULL),
         'cursors', (SELECT json_agg(json_build_object('segment', segment, 'seq', position, 'tail', tail,
             'units', units) ORDER BY segment) FROM segment_cursors WHERE sale_id = s.id)) AS truth
       FROM sales s WHERE s.id = ?`,
      [this.saleId],
    );
    return row!.truth;
  }

  #checkPostgres({ stock, orders, ledger }: Truth): void {
    const { model } = this;
    const expected = model
      .where(({ status }) => status !== 'logged')
      .map(({ id, buyerId, quantity, status, refundDue, retakenBy = null }) => ({
        ...{ id, buyerId, quantity, status, refundDue, retakenBy },
      }));
    expect([...orders].sort(byId), 'orders in Postgres').toEqual(expected.sort(byId));
    expect(
      ledger.map(({ action, units }) => ({ action, units })),
      'the ledger',
    ).toEqual(model.ledger);
    const live = model.live.filter(({ status }) => status !== 'logged');
    expect(stock + units(live), 'stock and units in live orders').toBe(model.total);
    expect(units(model.live), 'units sold').toBeLessThanOrEqual(model.total);
    for (const buyerId of new Set(model.live.map((order) => order.buyerId))) {
      const held = model.live.filter((order) => order.buyerId === buyerId);
      expect(units(held), `units of ${buyerId}`).toBeLessThanOrEqual(model.limit);
    }
  }

  async #isBuilt(truth: Truth): Promise<boolean> {
    const [version] = await this.shop.backend.sales.versions([this.saleId]);
    if (version?.generation !== truth.generation) return false;
    const heads = await this.#heads(truth);
    return heads.every((head) => head && head.state !== 'frozen' && !head.lost);
  }

  async #isDrained(truth: Truth): Promise<boolean> {
    const heads = await this.#heads(truth);
    return heads.every((head, segment) => head?.seq === truth.cursors[segment]!.seq);
  }

  async #heads({ generation, cursors }: Truth) {
    const positions = cursors.map((cursor) => ({ ...cursor, saleId: this.saleId, generation }));
    return (await this.shop.backend.log.readLog(positions, 0)).map(({ head }) => head);
  }

  /** The units of `stock` are in the segments, in the logs, or in transit; and each part is as the model says. */
  async #checkBackend({ stock, ledger, cursors }: Truth): Promise<void> {
    const { model, saleId, generation, segments } = this;
    const snapshot = await this.shop.backend.sales.snapshot(saleId, segments, generation);
    const positions = cursors.map((cursor) => ({ ...cursor, saleId, generation }));
    const reads = await this.shop.backend.log.readLog(positions, MAX_LOG_ENTRIES);
    const open = ledger.find((row) => row.open && row.action === 'withdraw')?.id;
    let [left, inLogs, withdrawn] = [0, 0, 0];
    const logged: string[] = [];
    for (const [segment, { counters }] of snapshot.entries()) {
      expect(counters, `segment ${segment}`).toBeDefined();
      const entries = reads[segment]!.entries.flatMap(({ orders }) => orders);
      expect(counters!.left, `units left in segment ${segment}`).toBeGreaterThanOrEqual(0);
      expect(counters!.supplied, `supplied to segment ${segment}`).toBe(counters!.left + counters!.taken);
      expect(counters!.taken - cursors[segment]!.units, `in the log of segment ${segment}`).toBe(
        units(entries),
      );
      left += counters!.left;
      inLogs += units(entries);
      if (counters!.withdrawal.movement === open) withdrawn += counters!.withdrawal.units;
      logged.push(...entries.map(({ orderId }) => orderId));
    }
    expect(logged.sort(), 'orders in the logs').toEqual(model.logged.map(({ id }) => id).sort());
    expect(withdrawn, 'units out for a withdrawal').toBe(model.withdrawing ?? 0);
    expect(
      { left, inLogs, returning: units(model.returning), uncredited: model.uncredited, withdrawn, stock },
      'where the stock is',
    ).toMatchObject({
      left: model.left,
      stock: left + inLogs + units(model.returning) + model.uncredited + withdrawn,
    });
    const buyers = [...model.orders.values()].map((order) => order.buyerId);
    for (const buyerId of new Set([...BUYERS, ...buyers])) {
      const held = (await this.#record(buyerId)).map(({ orderId }) => orderId);
      expect(held.sort(), `the record of ${buyerId}`).toEqual(
        model
          .recordOf(buyerId)
          .map(({ id }) => id)
          .sort(),
      );
    }
  }

  async #learned(): Promise<void> {
    const knows = async () => {
      const [version] = await this.shop.backend.sales.versions([this.saleId]);
      return this.tills.every((till) => till.hasLearned(this.saleId, version!));
    };
    await until(knows, { what: 'the nodes know the current state of the sale' });
  }

  /**
   * Waiting purchases are answered at the commit. If their order is lost or has ended by then, they are answered
   * `unknown`.
   */
  async #checkWaiting(): Promise<void> {
    const waiting = this.#waiting.splice(0);
    for (const one of waiting) tellApart(one, waiting);
    for (const one of waiting) {
      const order = this.model.orders.get(one.orderId!);
      if (order?.status === 'logged' || !this.model.isBuilt) {
        this.#waiting.push(one);
        continue;
      }
      const outcome = await until(() => one.outcome, { what: `${JSON.stringify(one)} is told` });
      tellApart(one, waiting);
      const truths = [...(order ? ['committed'] : []), ...(order && isLive(order) ? [] : ['unknown'])];
      expect(truths, `what ${JSON.stringify(one)} is told`).toContain(outcome!.code);
      if (outcome!.code === 'committed') expect(outcome!.orderId).toBe(one.orderId);
    }
  }

  /**
   * Repairs everything, sells each remaining unit to the first buyer that asks, and then expects the sale to be sold
   * out.
   */
  async sellOut(): Promise<void> {
    this.setHearing(true);
    const { model } = this;
    if (model.state === 'paused') await this.#operate({ action: 'resume' });
    if (model.window !== 'open') await this.#operate({ action: 'window', startsAt: BEGUN, endsAt: null });
    model.window = 'open';
    if (!model.isSyncOn) await this.startSync();
    model.state = 'open';
    await this.check();
    const wishes = Array.from({ length: model.left }, (_, i) => this.#late(i));
    await this.buy(wishes);
    await this.check();
    expect(model.left, 'units left after as many purchases').toBe(0);
    await this.buy([this.#late(wishes.length), this.#late(wishes.length + 1)]);
    await this.check();
    const report = await this.shop.service.verify(this.saleId);
    expect(report).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
  }

  #late(nth: number): Wish {
    return { node: nth, buyerId: `late-${nth}`, quantity: 1, key: '', awaitCommit: true };
  }

  async #operate(change: SaleChange): Promise<void> {
    this.model.ledger.push({ action: change.action, units: 0 });
    // A sale that is not built does not apply changes yet.
    await this.change(change).catch((error) => {
      if (this.model.isBuilt) throw error;
    });
  }

  async end(): Promise<void> {
    await this.#sync?.stop();
    const closed = Promise.all(this.tills.map((till) => till.close()));
    // In a run that has failed, they may wait for ever.
    if (this.#waiting.length === 0) await closed;
    await this.shop.service.change(this.saleId, { action: 'close' }, BY).catch(() => {});
  }
}

/** Purchases of one buyer for the same quantity and without keys can only be told apart at the end. */
function tellApart(one: Bought, waiting: readonly Bought[]): void {
  const { outcome } = one;
  if (outcome?.code !== 'committed' || outcome.orderId === one.orderId) return;
  const other = waiting.find(
    ({ purchase, orderId }) =>
      orderId === outcome.orderId && purchase.key === '' && purchase.buyerId === one.purchase.buyerId,
  );
  if (other) [other.orderId, one.orderId] = [one.orderId, other.orderId];
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}

/** While `hearing` is off, messages about changed sales are dropped. */
function droppingChanges(backend: Backend, hearing: { readonly on: boolean }): Backend {
  return {
    ...intercept(backend, () => {}),
    subscribe: ({ saleChanged, ...events }: BackendEvents) =>
      backend.subscribe({
        ...events,
        ...(saleChanged && { saleChanged: (saleId) => hearing.on && saleChanged(saleId) }),
      }),
  };
}
