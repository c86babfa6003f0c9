/**
 * Interleaves two operations: before any backend call that the first one makes, the second is run to its end, or as far as it
 * can while the first stands still. For every pair and every point of interruption, the books must balance when sync has
 * caught up, every promise to a buyer must be kept, and the rest must sell to the last unit.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Backend, Outcome } from '../../src/engine/contract.ts';
import { StockadeError } from '../../src/engine/errors.ts';
import type { SaleChange } from '../../src/engine/sale/sale-change.ts';
import type { OrderChange } from '../../src/operations/order-operations.ts';
import { Expiry } from '../../src/orders/expiry.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { rebalanceSale } from '../../src/sales/rebalance.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { BY } from '../support/author.ts';
import { type Before, intercept } from '../support/engine/intercept.ts';
import { seed, until } from '../support/fixtures.ts';
import { aged, placed } from '../support/shop/orders.ts';
import { Shop } from '../support/shop/shop.ts';
import { ordersOf } from '../support/shop/truth.ts';
import { inTier } from '../support/tier.ts';
import { LifeTrial } from './life/life-trial.ts';

const RUNS = Number(process.env.LIFE_RUNS ?? inTier({ test: 1, release: 20 })) * 2;
const PAY: OrderChange = { kind: 'pay', payType: 'card' };
/** An operation that waits for the first one is left running after this time, and ends after it. */
const STANDS_STILL_MS = 100;

/** A sale with orders in each state, while no sync runs. */
interface Scene {
  readonly trial: LifeTrial;
  readonly shop: Shop;
  readonly saleId: string;
  readonly unpaid: string;
  readonly paid: string;
  readonly overdue: string;
  readonly bought: { readonly buyerId: string; outcome: Outcome | undefined }[];
}

type Deed = (scene: Scene, backend: Backend) => Promise<unknown>;

const operator =
  (change: SaleChange): Deed =>
  ({ shop, saleId }, backend) =>
    new SaleService(shop.db, backend, shop.locks).change(saleId, change, BY);

const buyer =
  (which: 'unpaid' | 'paid' | 'overdue', change: OrderChange): Deed =>
  ({ shop, trial, ...orders }, backend) =>
    shop.orders(trial.tills[0]!.take, backend).changeOrder(orders[which], change, BY);

const DEEDS: Readonly<Record<string, Deed>> = {
  'resize to 5': operator({ action: 'resize', segments: 5 }),
  'resize to 1': operator({ action: 'resize', segments: 1 }),
  rebuild: ({ shop, saleId }, backend) => rebuildSale(shop.db, backend, saleId),
  'top up': operator({ action: 'top-up', units: 4 }),
  withdraw: operator({ action: 'withdraw', units: 4 }),
  'withdraw too much': operator({ action: 'withdraw', units: 9 }),
  pause: operator({ action: 'pause' }),
  rebalance: ({ shop, saleId }, backend) => rebalanceSale(shop.db, backend, saleId, { dryRun: false }),
  cancel: buyer('unpaid', { kind: 'cancel' }),
  'cancel an overdue order': buyer('overdue', { kind: 'cancel' }),
  refund: buyer('paid', { kind: 'refund' }),
  'pay late': buyer('overdue', PAY),
  expire: async ({ shop: { db } }, backend) => {
    const expiry = new Expiry({ db, backend, events: { expired() {}, failed() {} } });
    expiry.start();
    await expiry.stop();
  },
  sync: async ({ shop }, backend) => {
    const sync = await shop.startSync({ backend });
    await sync.ready;
    await sync.stop();
  },
  buy: async ({ trial, saleId, bought }) => {
    const purchases = ['ira', 'jan', 'kim'].map((buyerId, node) => {
      const one: Scene['bought'][number] = { buyerId, outcome: undefined };
      bought.push(one);
      return trial.tills[node % 2]!.buy(saleId, buyerId).then((outcome) => {
        one.outcome = outcome;
      });
    });
    await Promise.all(purchases);
  },
};

/** The operations with the most steps; each step matters, and everything else may come in between. */
const BUILDING = ['rebuild', 'resize to 5', 'resize to 1'];

async function scene(shop: Shop): Promise<Scene> {
  const trial = await LifeTrial.begin(shop, { stock: 13, segments: 3, limit: 1 });
  const { saleId } = trial;
  await trial.startSync();
  const [till] = trial.tills;
  const ids = [];
  for (const buyerId of ['anna', 'ben', 'cleo']) ids.push(await placed(till!, saleId, buyerId));
  const [unpaid, paid, overdue] = ids as [string, string, string];
  await shop.orders(till!.take).changeOrder(paid, PAY, BY);
  await aged(shop, [overdue]);
  await trial.stopSync();
  const made = { trial, shop, saleId, unpaid, paid, overdue, bought: [] };
  // This order is in the logs only. On the in-process backend its buyer waits for the commit.
  const dora = { buyerId: 'dora', outcome: undefined as Outcome | undefined };
  made.bought.push(dora as never);
  void till!.buy(saleId, 'dora', { awaitCommit: !shop.backend.durable }).then((outcome) => {
    dora.outcome = outcome;
  });
  return made;
}

/**
 * Runs the operation, and the others before its `nth` call to the backend. Operations that wait for sync end when it
 * comes.
 */
async function disturb(scene: Scene, deed: Deed, others: readonly Deed[], nth: number): Promise<void> {
  const { shop, trial } = scene;
  const begun: Promise<unknown>[] = [];
  let calls = 0;
  const before: Before = async () => {
    if (++calls !== nth) return;
    const all = others.map((other) => tolerated(other(scene, shop.backend)));
    begun.push(...all);
    await Promise.race([Promise.all(all), stoodStill()]);
  };
  const done = tolerated(deed(scene, intercept(shop.backend, before)));
  await Promise.race([done, stoodStill(2)]);
  await trial.startSync();
  await done;
  await Promise.all(begun);
}

interface Step {
  readonly deed: string;
  readonly call: string;
  /** The operation's calls to the backend so far, including this one. */
  readonly nth: number;
}

/** The points of interruption: before each call that is of another kind than the one before. */
async function stepsOf(shop: Shop): Promise<Step[]> {
  const steps: Step[] = [];
  for (const [name, deed] of Object.entries(DEEDS)) {
    const stage = await scene(shop);
    const calls: string[] = [];
    const done = tolerated(
      deed(
        stage,
        intercept(shop.backend, (call) => calls.push(call)),
      ),
    );
    await Promise.race([done, stoodStill(2)]);
    for (const [i, call] of calls.entries()) {
      if (call !== calls[i - 1]) steps.push({ deed: name, call, nth: i + 1 });
    }
    await stage.trial.startSync();
    await done;
    await stage.trial.adopt();
    await stage.trial.end();
  }
  return steps;
}

function stoodStill(times = 1): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, times * STANDS_STILL_MS));
}

/** Errors that are allowed: they only say that the operation must be tried again. */
async function tolerated(deed: Promise<unknown>): Promise<void> {
  await deed.catch((error) => {
    if (!(error instanceof StockadeError)) throw error;
  });
}

async function expectKept({ shop, saleId, bought }: Scene): Promise<void> {
  await until(() => bought.every(({ outcome }) => outcome), { what: 'every purchase is answered' });
  const orders = await ordersOf(shop.databaseUrl, saleId);
  for (const { buyerId, outcome } of bought) {
    const code = outcome!.code;
    expect(['committed', 'accepted', 'paused', 'sold_out', 'unavailable'], buyerId).toContain(code);
    if (code === 'committed' || code === 'accepted') {
      expect(orders.get(outcome!.orderId), code).toMatchObject({ buyerId, status: 'unpaid' });
    }
  }
}

describe.each(['memory', 'redis'] as const)('on %s', (backend) => {
  let shop: Shop;
  let steps: Step[];

  beforeAll(async () => {
    shop = await Shop.open({ backend });
    steps = await stepsOf(shop);
  });
  afterAll(() => shop[Symbol.asyncDispose]());

  it('the books balance for every interleaving of two operations', {
    timeout: 60_000 + RUNS * 10_000,
  }, async () => {
    const others = fc.uniqueArray(fc.constantFrom(...Object.keys(DEEDS)), { minLength: 1, maxLength: 4 });
    const building = steps.filter(({ deed }) => BUILDING.includes(deed));
    const step = fc.oneof(fc.constantFrom(...steps), fc.constantFrom(...building));
    const meeting = fc.record({ step, others }).filter(({ step, others }) => !others.includes(step.deed));
    const property = fc.asyncProperty(meeting, async ({ step: { deed, nth }, others }) => {
      const stage = await scene(shop);
      const { trial } = stage;
      try {
        await disturb(
          stage,
          DEEDS[deed]!,
          others.map((other) => DEEDS[other]!),
          nth,
        );
        await trial.adopt();
        await expectKept(stage);
        await trial.check();
        await trial.sellOut();
      } finally {
        await trial.end();
      }
    });
    await fc.assert(property, { seed: seed(), numRuns: RUNS, endOnFailure: true });
  });
});
