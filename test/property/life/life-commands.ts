/** Everything that can happen to a sale and its orders, one step at a time, each with its effect on the model. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import type { OrderChange } from '../../../src/operations/order-operations.ts';
import { Expiry } from '../../../src/orders/expiry.ts';
import type { OrderService } from '../../../src/orders/order-service.ts';
import { applyReturns } from '../../../src/orders/returns.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { finishMovements } from '../../../src/sales/movements.ts';
import { rebalanceSale } from '../../../src/sales/rebalance.ts';
import { BY } from '../../support/author.ts';
import { type Before, breaker, intercept } from '../../support/engine/intercept.ts';
import { aged } from '../../support/shop/orders.ts';
import { watched } from '../watched-backend.ts';
import { type LifeModel, type LifeOrder, units } from './life-model.ts';
import { BEGUN, BUYERS, type LifeTrial } from './life-trial.ts';

type LifeCommand = fc.AsyncCommand<LifeModel, LifeTrial>;

interface Doing<A> {
  /** Whether the step is possible now. */
  readonly when?: (model: LifeModel, args: A) => boolean;
  readonly run: (trial: LifeTrial, args: A) => Promise<void>;
}

const YEAR_MS = 365 * 86_400_000;
const WINDOWS = {
  open: { startsAt: BEGUN, endsAt: null },
  not_started: { startsAt: Date.UTC(2200, 0, 1), endsAt: null },
  ended: { startsAt: BEGUN, endsAt: BEGUN + YEAR_MS },
} as const;

function command<A>(
  weight: number,
  name: string,
  args: fc.Arbitrary<A>,
  { when = () => true, run }: Doing<A>,
): fc.WeightedArbitrary<LifeCommand> {
  const arbitrary = args.map((given) => ({
    check: (model: Readonly<LifeModel>) => when(model as LifeModel, given),
    run: async (_: LifeModel, trial: LifeTrial) => {
      await run(trial, given);
      await trial.check();
    },
    toString: () => `${name} ${JSON.stringify(given)}`,
  }));
  return { weight, arbitrary };
}

const NOTHING = fc.constant(undefined);
const rarely = fc.oneof(
  { weight: 4, arbitrary: fc.constant(false) },
  { weight: 1, arbitrary: fc.constant(true) },
);

const wish = fc.record({
  node: fc.nat(1),
  buyerId: fc.constantFrom(...BUYERS),
  quantity: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 4 })),
  key: fc.constantFrom('', '', 'k1', 'k2'),
  awaitCommit: fc.boolean(),
});

const buy = command(16, 'buy', fc.array(wish, { minLength: 1, maxLength: 4 }), {
  when: (model) => model.isBuilt,
  run: (trial, wishes) => trial.buy(wishes),
});

const change: fc.Arbitrary<OrderChange> = fc.oneof(
  fc.record({ kind: fc.constant('pay'), payType: fc.constantFrom('card', 'wechat') }),
  fc.record({ kind: fc.constantFrom('cancel', 'cancel', 'redeem', 'refund') }),
) as fc.Arbitrary<OrderChange>;

/** An order, and whether the process that changes it dies before the units are returned. */
const picked = fc.record({ nth: fc.nat(20), dies: rarely });

const changeOrder = command(14, 'change', fc.record({ picked, change }), {
  when: (model, { picked }) => model.orders.size > 0 && !(model.isSyncOn && picked.dies),
  run: async (trial, { picked: { nth, dies }, change }) => {
    const order = trial.model.nth(nth)!;
    const isLate = isLatePayment(order, change);
    // A late payment waits for the commit of the retake.
    if (isLate && !trial.model.isSyncOn) return;
    // An operator's change would wait for the logs, which are not read while sync is off.
    const by = order.status === 'logged' ? order.buyerId : BY;
    const outcome = await ordersOf(trial, dies).changeOrder(order.id, change, by);
    if (isLate) return paidLate(trial, order, change, outcome);
    expect(outcome.code, `${change.kind} of ${JSON.stringify(order)}`).toBe(
      trial.model.change(order, change),
    );
    if (!trial.model.isBuilt || dies || outcome.code !== 'done') return;
    // The answer does not wait for a slow return, which goes on.
    await trial.returned(order.id);
    trial.model.applyReturns([order]);
  },
});

function isLatePayment({ status, overdue, retakenBy, refundDue }: LifeOrder, { kind }: OrderChange): boolean {
  const isOver = status === 'expired' || (status === 'unpaid' && overdue);
  return kind === 'pay' && isOver && retakenBy === undefined && !refundDue;
}

type Outcome = Awaited<ReturnType<OrderService['changeOrder']>>;

function paidLate({ model }: LifeTrial, late: LifeOrder, change: OrderChange, outcome: Outcome): void {
  late.status = 'expired';
  if (model.state === 'paused') {
    expect(outcome).toEqual({ code: 'wrong_state', state: 'paused' });
    model.applyReturns([late]);
    return;
  }
  late.payType = change.kind === 'pay' ? change.payType : undefined;
  model.applyReturns([late]);
  const { buyerId, quantity, id } = late;
  const held = units(model.recordOf(buyerId));
  const fits = model.state === 'open' && model.left >= quantity && held + quantity <= model.limit;
  if (!fits) {
    expect(outcome).toEqual({ code: 'expired', refundDue: true });
    late.refundDue = true;
    return;
  }
  expect(outcome).toMatchObject({ code: 'done', replaces: id, order: { buyerId, quantity, status: 'paid' } });
  if (outcome.code !== 'done') return;
  late.retakenBy = outcome.order.orderId;
  const purchase = { saleId: '', buyerId, quantity, key: `retake:${id}`, awaitCommit: true, onBehalf: true };
  const taken = model.take(late.retakenBy, purchase);
  taken.status = 'unpaid';
  model.change(taken, change);
}

function ordersOf({ shop, tills }: LifeTrial, dies: boolean): OrderService {
  const backend = dies ? intercept(shop.backend, breaker('log.compensate').before) : shop.backend;
  return shop.orders(tills[0]!.take, backend);
}

const age = command(5, 'age', fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }), {
  when: (model) => model.orders.size > 0,
  run: async ({ model, shop }, picks) => {
    const due = picks.map((nth) => model.nth(nth)!).filter(({ status }) => status !== 'logged');
    for (const order of due) order.overdue = true;
    await aged(
      shop,
      due.map(({ id }) => id),
    );
  },
});

const expire = command(4, 'expire', rarely, {
  when: (model, dies) => !(model.isSyncOn && dies),
  run: async ({ model, shop }, dies) => {
    const failures: unknown[] = [];
    const events = { expired() {}, failed: ({ error }: { error: unknown }) => failures.push(error) };
    const backend = dies ? intercept(shop.backend, breaker('log.compensate').before) : shop.backend;
    const expiry = new Expiry({ db: shop.db, backend, events });
    expiry.start();
    await expiry.stop();
    const expired = model.expire();
    if (!dies) expect(failures).toEqual([]);
    if (!dies && model.isBuilt) model.applyReturns(expired);
  },
});

const giveBack = command(3, 'apply returns, twice', NOTHING, {
  when: (model) => model.isBuilt,
  run: async ({ model, shop, saleId, segments, ref }) => {
    const { db, backend } = shop;
    await Promise.all([applyReturns(db, backend, saleId), applyReturns(db, backend, saleId)]);
    model.applyReturns();
    for (const { id, buyerId, quantity } of model.where((order) => !order.recorded)) {
      const segment = homeSegment(buyerId, segments);
      await backend.log.compensate({ ...ref, segment, buyerId, orderId: id, units: quantity });
    }
  },
});

const sync = command(8, 'sync', fc.constantFrom('on', 'off'), {
  when: ({ isSyncOn }, to) => isSyncOn !== (to === 'on'),
  run: (trial, to) => (to === 'on' ? trial.startSync() : trial.stopSync()),
});

const hear = command(1, 'hear', fc.boolean(), {
  run: async (trial, on) => trial.setHearing(on),
});

/** Makes an operator's change of the sale. If the sale is not built, the change stays open until it is. */
async function operate(trial: LifeTrial, change: SaleChange, before?: Before): Promise<unknown> {
  try {
    await trial.change(change, before);
    return undefined;
  } catch (error) {
    return error;
  }
}

function expectFollowed({ model }: LifeTrial, error: unknown): void {
  if (model.isBuilt) expect(error).toBeUndefined();
  else expect(error).toBeInstanceOf(StaleGeneration);
  if (!model.isBuilt) return;
  // Changes that others left open are completed too.
  if (model.uncredited > 0) model.uncredited = 0;
  model.owesEpoch = false;
}

const pause = command(3, 'set state', fc.constantFrom('pause' as const, 'resume' as const), {
  run: async (trial, action) => {
    const to = action === 'pause' ? 'paused' : 'open';
    const error = await operate(trial, { action });
    if (trial.model.state !== to) trial.model.ledger.push({ action, units: 0 });
    trial.model.state = to;
    if (error !== undefined || trial.model.isBuilt) expectFollowed(trial, error);
  },
});

const setWindow = command(
  2,
  'set window',
  fc.constantFrom('open' as const, 'open' as const, 'ended' as const, 'not_started' as const),
  {
    run: async (trial, to) => {
      const error = await operate(trial, { action: 'window', ...WINDOWS[to] });
      if (trial.model.window !== to) trial.model.ledger.push({ action: 'window', units: 0 });
      trial.model.window = to;
      if (error !== undefined || trial.model.isBuilt) expectFollowed(trial, error);
    },
  },
);

const raiseLimit = command(2, 'raise the limit', fc.integer({ min: 1, max: 2 }), {
  when: ({ limit }) => limit < 4,
  run: async (trial, more) => {
    const { model } = trial;
    model.limit += more;
    const error = await operate(trial, { action: 'edit', perBuyerLimit: model.limit });
    model.ledger.push({ action: 'edit', units: 0 });
    expectFollowed(trial, error);
  },
});

const topUp = command(4, 'top up', fc.integer({ min: 1, max: 5 }), {
  run: async (trial, units) => {
    const error = await operate(trial, { action: 'top-up', units });
    trial.model.ledger.push({ action: 'top-up', units });
    if (!trial.model.isBuilt) trial.model.uncredited += units;
    expectFollowed(trial, error);
  },
});

/** The process that makes the change dies at this call. */
const dieAt = fc.record({ units: fc.integer({ min: 1, max: 5 }), at: fc.nat(4) });

const brokenTopUp = command(2, 'top up, and die', dieAt, {
  when: (model) => model.isBuilt && !model.isSyncOn && model.uncredited === 0 && !model.owesEpoch,
  run: async (trial, { units, at }) => {
    let missing = 0;
    const segment = at % (trial.segments + 1);
    const error = await operate(trial, { action: 'top-up', units }, (call, [share]) => {
      const isFatal =
        segment === trial.segments
          ? call === 'sales.reopen'
          : call === 'sales.credit' && (share as { segment: number }).segment === segment;
      if (!isFatal) return;
      missing = call === 'sales.credit' ? (share as { units: number }).units : 0;
      throw new Error('killed by the test');
    });
    expect(error).toMatchObject({ message: /as the test wants it/ });
    const { model } = trial;
    model.ledger.push({ action: 'top-up', units });
    model.uncredited = missing;
    model.owesEpoch = true;
  },
});

const withdraw = command(4, 'withdraw', fc.integer({ min: 1, max: 6 }), {
  run: async (trial, wanted) => {
    const error = await operate(trial, { action: 'withdraw', units: wanted });
    withdrawn(trial, wanted, error);
  },
});

function withdrawn({ model }: LifeTrial, wanted: number, error: unknown): void {
  const stock = model.total - units(model.live.filter(({ status }) => status !== 'logged'));
  if (model.withdrawing !== undefined || stock < wanted) {
    const code = model.withdrawing === undefined ? 'insufficient_stock' : 'busy';
    expect(error).toMatchObject({ code });
    return;
  }
  const isDone = model.isBuilt ? model.left >= wanted : error === undefined;
  if (isDone) {
    expect(error).toBeUndefined();
    model.ledger.push({ action: 'withdraw', units: -wanted });
    return;
  }
  if (model.isBuilt) expect(error).toMatchObject({ code: 'insufficient_stock', remaining: model.left });
  else {
    expect(error).toBeInstanceOf(StaleGeneration);
    model.withdrawing = 0;
  }
  model.ledger.push({ action: 'withdraw', units: 0 });
}

const brokenWithdrawal = command(2, 'withdraw, and die', dieAt, {
  when: (model, args) =>
    model.isBuilt && !model.isSyncOn && model.withdrawing === undefined && model.left >= args.units,
  run: async (trial, { units, at }) => {
    let looks = 0;
    const error = await operate(trial, { action: 'withdraw', units }, (call, [share]) => {
      const isFatal =
        at === 0
          ? call === 'sales.snapshot' && ++looks === 2
          : call === 'sales.withdraw' && (share as { segment: number }).segment === (at - 1) % trial.segments;
      if (isFatal) throw new Error('killed by the test');
    });
    const { model } = trial;
    model.ledger.push({ action: 'withdraw', units: error ? 0 : -units });
    if (error) model.withdrawing = await trial.withdrawn();
  },
});

const followUp = command(3, 'follow up', NOTHING, {
  when: (model) => model.isBuilt && !model.isSyncOn,
  run: async (trial) => {
    const { model, shop, saleId } = trial;
    // A young withdrawal counts as under way.
    await shop.db.raw("UPDATE stock_movements SET moved_at = now() - interval '1 minute' WHERE sale_id = ?", [
      saleId,
    ]);
    await Promise.all([1, 2].map(() => finishMovements(shop.db, shop.backend, saleId)));
    model.uncredited = 0;
    model.withdrawing = undefined;
    model.owesEpoch = false;
  },
});

const transfer = command(
  4,
  'transfer',
  fc.record({ from: fc.nat(4), to: fc.nat(4), units: fc.integer({ min: 1, max: 5 }) }),
  {
    when: (model) => model.isBuilt,
    run: async ({ shop, ref, segments }, { from, to, units }) => {
      const move = { from: from % segments, to: to % segments, units };
      if (move.from !== move.to) await shop.backend.transfers.transfer(ref, move);
    },
  },
);

const rebalance = command(2, 'rebalance', NOTHING, {
  when: (model) => model.isBuilt,
  run: async ({ shop, saleId, model }) => {
    const { after } = await rebalanceSale(shop.db, shop.backend, saleId, { dryRun: false });
    expect(after.reduce((sum, left) => sum + left, 0)).toBe(model.left);
  },
});

const resize = command(2, 'resize', fc.integer({ min: 1, max: 5 }), {
  when: (model) => model.isBuilt,
  run: async (trial, segments) => {
    const { model } = trial;
    const before = trial.segments;
    expectFollowed(trial, await operate(trial, { action: 'resize', segments }));
    if (before === segments) return;
    model.ledger.push({ action: 'resize', units: 0 });
    expect(await trial.shop.service.show(trial.saleId)).toMatchObject({ segments });
  },
});

const rebuild = command(2, 'rebuild', fc.integer({ min: 1, max: 2 }), {
  when: (model) => !model.isSyncOn,
  run: async ({ shop, saleId, model }, times) => {
    const ends = await Promise.allSettled(
      Array.from({ length: times }, () => rebuildSale(shop.db, shop.backend, saleId)),
    );
    expect(ends.some(({ status }) => status === 'fulfilled')).toBe(true);
    for (const end of ends) if (end.status === 'rejected') expect(end.reason).toBeInstanceOf(StaleGeneration);
    model.isBuilt = true;
  },
});

const STEPS = [
  'sales.freeze',
  'log.readLog',
  'sales.loadSegment',
  'sales.loadHoldings',
  'sales.removeSegments',
  'sales.publish',
];

const brokenRebuild = command(
  3,
  'rebuild, and die',
  fc.record({ step: fc.constantFrom(...STEPS), nth: fc.integer({ min: 1, max: 3 }) }),
  {
    when: (model) => !model.isSyncOn,
    run: async ({ shop, saleId, model }, { step, nth }) => {
      let calls = 0;
      const backend = watched(
        intercept(shop.backend, (call) => {
          if (call === step && ++calls >= nth) throw new Error('killed by the test');
        }),
      );
      const [end] = await Promise.allSettled([rebuildSale(shop.db, backend, saleId)]);
      await backend.quiet();
      if (end!.status === 'fulfilled') model.isBuilt = true;
      // A rebuild freezes first.
      else if (step !== 'sales.freeze') model.isBuilt = false;
      if (end!.status === 'rejected') expect(end!.reason.message).toMatch(/killed by the test/);
    },
  },
);

const wipe = command(1, 'lose all', NOTHING, {
  run: async (trial) => {
    await trial.wipe();
    trial.model.mayLose = true;
    trial.model.isBuilt = false;
  },
});

const anywhere = [
  ...[buy, changeOrder, age, expire, giveBack, sync, hear, pause, setWindow, raiseLimit],
  ...[topUp, brokenTopUp, withdraw, brokenWithdrawal, followUp],
  ...[transfer, rebalance, resize, rebuild, brokenRebuild],
];

/** @param size the most steps of a run */
export function lifeCommands(backend: 'memory' | 'redis', size: number) {
  const drawn = fc.oneof(...anywhere, ...(backend === 'redis' ? [wipe] : []));
  return fc.commands([drawn], { maxCommands: size, size: 'max' });
}
