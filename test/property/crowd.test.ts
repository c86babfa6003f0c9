/**
 * Many buyers buy at once from several workers, while takes and their replies get lost. The test does not predict who is
 * first. After all answers it checks what must hold, whichever buyers were served.
 */
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Backend, HeldOrder, Outcome, Purchase } from '../../src/engine/contract.ts';
import { freezeTime, turn } from '../support/engine/frozen-time.ts';
import { seed } from '../support/fixtures.ts';
import { inTier } from '../support/tier.ts';
import { MEMORY, REDIS } from './backends.ts';
import { type Fate, type LossyBackend, lossy } from './lossy-takes.ts';
import { units } from './sale-model.ts';
import { type Bought, Trial } from './trial.ts';

const BUYERS = ['anna', 'ben', 'cleo', 'dora', 'emil', 'fred', 'gina', 'hugo', 'ines', 'jack'];
const WORKERS = 3;
const COMMIT_EVERY_MS = 10;

type Wish = Pick<Purchase, 'quantity' | 'key' | 'awaitCommit'> & {
  readonly buyer: string;
  readonly worker: number;
  /** Starts in a later turn of the event loop than the wish before it. */
  readonly pause: boolean;
};

interface Scenario {
  readonly limit: number;
  readonly split: readonly number[];
  readonly wishes: readonly Wish[];
  readonly fates: readonly Fate[];
}

/** @param most units that one wish may be for, at most the limit */
function scenario(most: number): fc.Arbitrary<Scenario> {
  const wish = fc.record({
    buyer: fc.constantFrom(...BUYERS),
    worker: fc.nat(WORKERS - 1),
    quantity: fc.integer({ min: 1, max: most }),
    key: fc.constantFrom('', '', 'k1', 'k2'),
    awaitCommit: fc.boolean(),
    pause: fc.oneof(
      { weight: 7, arbitrary: fc.constant(false) },
      { weight: 1, arbitrary: fc.constant(true) },
    ),
  });
  const fate = fc.oneof(
    { weight: 6, arbitrary: fc.constant('well') },
    { weight: 1, arbitrary: fc.constant('refused') },
    { weight: 2, arbitrary: fc.constantFrom('request lost', 'reply lost', 'late', 'very late') },
  ) as fc.Arbitrary<Fate>;
  return fc.record({
    limit: fc.integer({ min: most, max: 3 }),
    split: fc
      .array(fc.nat(4), { minLength: 1, maxLength: 8 })
      .filter((split) => split.some((left) => left > 0)),
    wishes: fc.array(wish, { maxLength: 80, size: 'max' }),
    fates: fc.oneof(fc.constant([]), fc.array(fate, { maxLength: 30, size: 'max' })),
  });
}

class Crowd {
  readonly #trial: Trial;
  readonly #backend: LossyBackend;
  readonly #bought: Bought[] = [];

  constructor(trial: Trial, backend: LossyBackend) {
    this.#trial = trial;
    this.#backend = backend;
  }

  async run(wishes: readonly Wish[]): Promise<void> {
    for (const { buyer: buyerId, worker, quantity, key, awaitCommit, pause } of wishes) {
      if (pause) await turn();
      this.#bought.push(this.#trial.buy(worker, { buyerId, quantity, key, awaitCommit }));
    }
    await this.#answers();
    await this.#expectTruths();
    // Stock has come back, so a take that timed out could now succeed late. It must not.
    await this.#giveOneBack();
    await this.#backend.deliver();
    await this.#expectExplained();
    await this.#settleUnknown();
  }

  /** Sync commits and time passes until every purchase is answered, at its deadline at the latest. */
  async #answers(): Promise<void> {
    const waiting = () => this.#bought.some(({ outcome }) => !outcome);
    for (await turn(); waiting(); await this.#trial.elapse(COMMIT_EVERY_MS)) await this.#trial.commitAll();
    await this.#trial.quiet();
  }

  async #expectTruths(): Promise<void> {
    const records = await this.#expectExplained();
    const { sale } = this.#trial;
    const left = await this.#trial.left();
    for (const { purchase, outcome } of this.#bought) {
      const record = records.get(purchase.buyerId)!;
      expectTrue(outcome!, purchase, { left, limit: sale.perBuyerLimit, record });
    }
    this.#expectSold(sale.stock - left);
  }

  /** No unit was made or lost, no buyer is above the limit, and every order was answered. */
  async #expectExplained(): Promise<Map<string, readonly HeldOrder[]>> {
    const { stock, perBuyerLimit } = this.#trial.sale;
    const records = new Map<string, readonly HeldOrder[]>();
    for (const buyerId of BUYERS) {
      const record = await this.#trial.held(buyerId);
      records.set(buyerId, record);
      expect(units(record), `units of ${buyerId}`).toBeLessThanOrEqual(perBuyerLimit);
      expectExplained(
        record,
        this.#bought.filter(({ purchase }) => purchase.buyerId === buyerId),
      );
    }
    const held = [...records.values()].flat();
    expect(new Set(held.map((order) => order.orderId)).size, 'different order ids').toBe(held.length);
    expect((await this.#trial.left()) + units(held), 'units in segments and records').toBe(stock);
    return records;
  }

  async #giveOneBack(): Promise<void> {
    for (const buyerId of BUYERS) {
      const [order] = await this.#trial.held(buyerId);
      if (!order) continue;
      await this.#trial.giveBack({ buyerId, orderId: order.orderId }, order.quantity);
      return this.#trial.learn();
    }
  }

  /** While units are left, every buyer gets some: with single units, the number sold is the smaller of stock and demand. */
  #expectSold(sold: number): void {
    const { stock, perBuyerLimit } = this.#trial.sale;
    const cut = this.#bought.some(({ outcome }) => ['unavailable', 'unknown'].includes(outcome!.code));
    if (cut || this.#bought.some(({ purchase }) => purchase.quantity > 1)) return;
    const wanted = BUYERS.map((buyerId) => {
      const own = this.#bought.map(({ purchase }) => purchase).filter((p) => p.buyerId === buyerId);
      const keys = new Set(own.map(({ key }) => key).filter((key) => key !== ''));
      return Math.min(perBuyerLimit, keys.size + own.filter(({ key }) => key === '').length);
    });
    expect(sold, 'units sold').toBe(
      Math.min(
        stock,
        wanted.reduce((sum, units) => sum + units, 0),
      ),
    );
  }

  /** Repeating an unknown purchase with the same key reveals its outcome. */
  async #settleUnknown(): Promise<void> {
    const unknown = this.#bought.filter(
      ({ purchase, outcome }) => outcome!.code === 'unknown' && purchase.key !== '',
    );
    for (const { purchase } of unknown) {
      const order = (await this.#trial.held(purchase.buyerId)).find(({ key }) => key === purchase.key);
      const again = this.#trial.buy(0, purchase);
      this.#bought.push(again);
      await this.#answers();
      if (order?.quantity === purchase.quantity) expect(idOf(again.outcome!)).toBe(order.orderId);
      else expect(again.outcome!.code).not.toBe('unknown');
    }
    await this.#expectExplained();
  }
}

/** Each order was answered to a buyer, or belongs to a purchase whose outcome is unknown. */
function expectExplained(record: readonly HeldOrder[], bought: readonly Bought[]): void {
  const unknown = bought.filter(({ outcome }) => outcome!.code === 'unknown').map(({ purchase }) => purchase);
  for (const { orderId, quantity, key } of record) {
    const told = bought.filter(({ outcome }) => idOf(outcome!) === orderId);
    const keys = new Set(told.map(({ purchase }) => purchase.key));
    expect(keys.size, `keys of answers with ${orderId}`).toBeLessThanOrEqual(1);
    if (key === '') expect(told.length, `purchases answered with ${orderId}`).toBeLessThanOrEqual(1);
    if (told.length > 0) continue;
    const maybe = unknown.findIndex((purchase) => purchase.quantity === quantity && purchase.key === key);
    expect(maybe, `a purchase with unknown outcome for ${orderId}`).not.toBe(-1);
    unknown.splice(maybe, 1);
  }
}

function idOf(outcome: Outcome): string | undefined {
  return outcome.code === 'committed' || outcome.code === 'accepted' ? outcome.orderId : undefined;
}

/** No units come back in this test, so an answer that was true once is true at the end. */
function expectTrue(
  outcome: Outcome,
  { quantity, key }: Purchase,
  { left, limit, record }: { left: number; limit: number; record: readonly HeldOrder[] },
): void {
  switch (outcome.code) {
    case 'committed':
    case 'accepted': {
      const { orderId } = outcome;
      expect(outcome.quantity).toBe(quantity);
      expect(record).toContainEqual(expect.objectContaining({ orderId, quantity, key }));
      return;
    }
    case 'idempotency_mismatch':
      expect(outcome.quantity).not.toBe(quantity);
      expect(record).toContainEqual(
        expect.objectContaining({ orderId: outcome.orderId, quantity: outcome.quantity, key }),
      );
      return;
    case 'limit_reached':
      expect(units(record) + quantity).toBeGreaterThan(limit);
      expect(record.map(({ orderId }) => orderId)).toEqual(expect.arrayContaining([...outcome.orderIds]));
      return;
    case 'sold_out':
      expect(left).toBe(0);
      return;
    case 'insufficient_stock':
      expect(outcome.remaining).toBeGreaterThan(0);
      expect(outcome.remaining).toBeLessThan(quantity);
      expect(left).toBeLessThanOrEqual(outcome.remaining);
      return;
    default:
      expect(['unavailable', 'unknown']).toContain(outcome.code);
  }
}

describe.each([
  { ...MEMORY, runs: inTier({ test: 30, release: 300 }) },
  { ...REDIS, runs: inTier({ test: 10, release: 80 }) },
])('on $name', ({ runs, open }) => {
  let backend: Backend;

  beforeAll(async () => {
    backend = await open();
  });
  afterAll(() => backend.close());
  beforeEach(() => freezeTime());
  afterEach(() => vi.useRealTimers());

  it.each([
    ['one unit each', 1],
    ['several units', 3],
  ])('when many buy %s at once, all units are sold and all answers are true', async (_, most) => {
    const property = fc.asyncProperty(scenario(most), async ({ limit, split, wishes, fates }) => {
      const takes = lossy(backend, fates);
      const trial = await Trial.begin(takes, { sale: { perBuyerLimit: limit }, split, workers: WORKERS });
      try {
        await new Crowd(trial, takes).run(wishes);
      } finally {
        await trial.end();
      }
    });
    await fc.assert(property, { seed: seed(), numRuns: runs });
  });
});
