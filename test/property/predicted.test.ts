/**
 * A model predicts the answer to every purchase, in random sequences of everything that happens to a sale. The model knows
 * only how many units are left (sale-model.ts), because it must not matter to a buyer in which segment they are.
 */
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Backend, Purchase, Rejection, Sale, SaleState } from '../../src/engine/contract.ts';
import { freezeTime } from '../support/engine/frozen-time.ts';
import { seed } from '../support/fixtures.ts';
import { inTier } from '../support/tier.ts';
import { MEMORY, REDIS } from './backends.ts';
import { type Prediction, SaleModel, units } from './sale-model.ts';
import { type Bought, REQUEST_DEADLINE_MS, Trial } from './trial.ts';

const NOON = Date.UTC(2026, 5, 1, 12);
const HOUR_MS = 3_600_000;
const BUYERS = ['anna', 'ben', 'cleo', 'dora', 'emil'];
const WORKERS = 2;

interface Scenario {
  readonly limit: number;
  readonly split: readonly number[];
  readonly ends: boolean;
  readonly actions: readonly Action[];
}

type Action =
  | { do: 'buy'; worker: number; buyer: string; key: string; more: number; awaitCommit: boolean }
  | { do: 'set state'; state: SaleState }
  | { do: 'commit'; segments: number; entries: number; reject: number; reason: Rejection['reason'] }
  | { do: 'give back'; nth: number }
  | { do: 'tell again' }
  | { do: 'restart' }
  | { do: 'set clock'; hours: number }
  | { do: 'wait'; ms: number };

const ALL_SEGMENTS = 0xff;
const NOBODY = 99;

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 24,
    arbitrary: fc.record({
      do: fc.constant('buy'),
      worker: fc.nat(WORKERS - 1),
      buyer: fc.constantFrom(...BUYERS),
      key: fc.constantFrom('', 'k1', 'k2'),
      /** Units above one, modulo the limit and one more. */
      more: fc.oneof(fc.constant(0), fc.nat(4)),
      awaitCommit: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('commit'),
      segments: fc.oneof(fc.constant(ALL_SEGMENTS), fc.nat(ALL_SEGMENTS)),
      entries: fc.constantFrom(1, 1, 2, 100),
      /** Index among the committed orders of the one that is rejected. */
      reject: fc.oneof({ weight: 3, arbitrary: fc.constant(NOBODY) }, { weight: 1, arbitrary: fc.nat(3) }),
      reason: fc.constantFrom('stock', 'limit'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('give back'), nth: fc.nat(9) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('set state'),
      state: fc.oneof(
        { weight: 12, arbitrary: fc.constant('open') },
        { weight: 6, arbitrary: fc.constant('paused') },
        { weight: 1, arbitrary: fc.constant('closed') },
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('set clock'), hours: fc.constantFrom(-2, 0, 0, 0, 0, 0, 2) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(200, REQUEST_DEADLINE_MS + 5) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('restart', 'tell again') }) },
) as fc.Arbitrary<Action>;

const scenario: fc.Arbitrary<Scenario> = fc.record({
  limit: fc.integer({ min: 1, max: 4 }),
  split: fc
    .array(fc.nat(3), { minLength: 1, maxLength: 8 })
    .filter((split) => split.some((left) => left > 0)),
  ends: fc.boolean(),
  actions: fc.array(action, { maxLength: 120, size: 'max' }),
});

/** Runs the trial and the model side by side. */
class Comparison {
  readonly codes: Set<string>;
  readonly #trial: Trial;
  readonly #model: SaleModel;
  #open: { bought: Bought; prediction: Prediction }[] = [];

  constructor(trial: Trial, codes: Set<string>) {
    this.#trial = trial;
    this.#model = new SaleModel(trial.sale, trial.backend.durable, REQUEST_DEADLINE_MS);
    this.codes = codes;
  }

  async run(actions: readonly Action[]): Promise<void> {
    for (const action of actions) {
      await this.#do(action);
      await this.#compare();
    }
    await this.#sellOut();
  }

  async #do(action: Action): Promise<void> {
    const [trial, model] = [this.#trial, this.#model];
    switch (action.do) {
      case 'buy': {
        const { worker, buyer: buyerId, key, more, awaitCommit } = action;
        const quantity = 1 + (more % (trial.sale.perBuyerLimit + 1));
        return this.#buy(worker, { buyerId, quantity, key, awaitCommit });
      }
      case 'set state':
        if (model.state === 'closed') return;
        model.state = action.state;
        return trial.setState(action.state);
      case 'commit':
        return this.#commit(action);
      case 'give back': {
        const order = model.committed[action.nth % model.committed.length];
        if (!order) return;
        model.giveBack(order);
        await trial.giveBack({ buyerId: order.buyerId, orderId: order.id! }, order.quantity);
        return trial.learn();
      }
      case 'tell again':
        return trial.tellAgain();
      case 'restart':
        model.forgetWaiting();
        this.#open = [];
        return trial.startNode();
      case 'set clock':
        vi.setSystemTime(NOON + action.hours * HOUR_MS);
        return;
      case 'wait':
        return trial.elapse(action.ms);
    }
  }

  async #buy(worker: number, purchase: Omit<Purchase, 'saleId'>): Promise<void> {
    const bought = this.#trial.buy(worker, purchase);
    const prediction = this.#model.buy(bought.purchase, Date.now(), this.#trial.clock);
    this.#open.push({ bought, prediction });
    await this.#trial.quiet();
  }

  async #commit({ segments, entries, reject, reason }: Action & { do: 'commit' }): Promise<void> {
    const [trial, model] = [this.#trial, this.#model];
    const chosen = Array.from({ length: trial.sale.segments }, (_, i) => i).filter(
      (i) => segments & (1 << i),
    );
    await trial.commit(chosen, entries, (entry, nth) => {
      const order = model.logged(entry);
      if (nth !== reject) {
        model.commit(order);
        return undefined;
      }
      model.reject(order, reason);
      return reason;
    });
    await trial.messages(() =>
      this.#open.every(({ bought, prediction }) => bought.outcome || !prediction.answer),
    );
    await trial.learn();
  }

  /** Every purchase has the answer that the model predicts, and the units are where the model has them. */
  async #compare(): Promise<void> {
    this.#model.expire(this.#trial.clock);
    for (const { bought, prediction } of this.#open) {
      const { purchase, outcome } = bought;
      if (!outcome) {
        expect(prediction.answer, `the answer that ${JSON.stringify(purchase)} should have`).toBeUndefined();
      } else {
        this.codes.add(outcome.code);
        this.#model.compare(outcome, prediction);
      }
    }
    this.#open = this.#open.filter(({ bought }) => !bought.outcome);
    await this.#expectConserved();
  }

  async #expectConserved(): Promise<void> {
    expect(await this.#trial.left()).toBe(this.#model.left);
    for (const buyerId of BUYERS) {
      const held = this.#model.held(buyerId);
      const record = await this.#trial.held(buyerId);
      expect(record).toMatchObject(held.map(({ quantity, key }) => ({ quantity, key })));
      expect(units(record)).toBeLessThanOrEqual(this.#trial.sale.perBuyerLimit);
    }
  }

  /** While a unit is left in any segment, a buyer that asks gets it. */
  async #sellOut(): Promise<void> {
    if (this.#model.state === 'closed') return;
    await this.#do({ do: 'set clock', hours: 0 });
    await this.#do({ do: 'set state', state: 'open' });
    for (let last = false, nth = 0; !last; nth++) {
      last = this.#model.left === 0;
      await this.#buy(nth % WORKERS, {
        buyerId: `late-${nth}`,
        quantity: 1,
        key: '',
        awaitCommit: nth % 2 === 0,
      });
      await this.#compare();
    }
    await this.#trial.commitAll();
  }
}

const BUY: Action = { do: 'buy', worker: 0, buyer: 'anna', key: '', more: 0, awaitCommit: true };

/** One for each refusal that few random scenarios may miss. */
const RARE: readonly Scenario[] = [
  { limit: 2, split: [1], ends: false, actions: [{ ...BUY, more: 1 }] },
  { limit: 1, split: [1], ends: false, actions: [{ ...BUY, more: 1 }] },
  { limit: 2, split: [3], ends: false, actions: [BUY, BUY, BUY] },
  {
    ...{ limit: 2, split: [3], ends: false },
    actions: [
      { ...BUY, key: 'k1' },
      { ...BUY, key: 'k1', more: 1 },
    ],
  },
  { limit: 1, split: [1], ends: false, actions: [{ do: 'set state', state: 'paused' }, BUY] },
  { limit: 1, split: [1], ends: false, actions: [{ do: 'set clock', hours: -2 }, BUY] },
  { limit: 1, split: [1], ends: true, actions: [{ do: 'set clock', hours: 2 }, BUY] },
];

describe.each([
  { ...MEMORY, runs: inTier({ test: 50, release: 400 }) },
  { ...REDIS, runs: inTier({ test: 20, release: 120 }) },
])('on $name', ({ runs, open }) => {
  let backend: Backend;

  beforeAll(async () => {
    backend = await open();
  });
  afterAll(() => backend.close());
  beforeEach(() => freezeTime(NOON));
  afterEach(() => vi.useRealTimers());

  it('every purchase is answered as the model predicts', async () => {
    const codes = new Set<string>();
    const property = fc.asyncProperty(scenario, async ({ limit, split, ends, actions }) => {
      vi.setSystemTime(NOON);
      const sale: Partial<Sale> = {
        perBuyerLimit: limit,
        startsAt: NOON - HOUR_MS,
        endsAt: ends ? NOON + HOUR_MS : undefined,
      };
      const trial = await Trial.begin(backend, { sale, split, workers: WORKERS });
      try {
        await new Comparison(trial, codes).run(actions);
      } finally {
        await trial.end();
      }
    });
    await fc.assert(property, { seed: seed(), numRuns: runs, examples: RARE.map((one) => [one]) });
    expect([...codes].sort()).toEqual(everyCode(backend.durable));
  });
});

/** The outcomes that the workload must reach to be worth its time. */
function everyCode(durable: boolean): string[] {
  const inEither = [
    'committed',
    'ended',
    'idempotency_mismatch',
    'insufficient_stock',
    'invalid_request',
    'limit_reached',
    'not_started',
    'paused',
    'sold_out',
  ];
  return [...inEither, durable ? 'accepted' : 'unknown'].sort();
}
