import type {
  LogHint,
  RefillReply,
  TakeBatch,
  TakeOrder,
  TakeReply,
  TakeResult,
  TakeServer,
  TakeStore,
} from '../../../src/engine/contract.ts';
import { NotExecuted, OutcomeUnknown } from '../../../src/engine/errors.ts';
import { settledTurns } from './frozen-time.ts';

type Refused = Exclude<TakeReply['status'], 'served'>;
type Answer = TakeReply | RefillReply;

interface Segment {
  seq: number;
  committed: number;
  left: number;
  orders: number;
  returned: number;
  /** Units of the whole sale, after a refill. */
  total: number;
  epoch: number;
}

export const TAKEN: TakeResult = { kind: 'taken' };
export const SHORT: TakeResult = { kind: 'short' };

/** A server that is the same as itself only. */
export function aServer(): TakeServer {
  const server: TakeServer = { isSame: (other) => other === server };
  return server;
}

/** One call that waits for the test to answer it. */
export class Ask {
  readonly batch: Omit<TakeBatch, 'orders'>;
  /** A copy from the time of the call. */
  readonly orders: readonly TakeOrder[];
  readonly deadlines: readonly (number | undefined)[];
  /** The segments to refill from; `undefined`: a take without a refill. */
  readonly refill: number | undefined;
  readonly answered: Promise<Answer>;
  readonly #batch: TakeBatch;
  #resolve!: (answer: Answer) => void;
  #reject!: (error: Error) => void;

  constructor(whole: TakeBatch, refill?: number) {
    const { orders, ...batch } = whole;
    this.#batch = whole;
    this.batch = batch;
    this.orders = orders.map(({ orderId, buyerId, quantity, key }) => ({ orderId, buyerId, quantity, key }));
    this.deadlines = orders.map(({ deadline }) => deadline);
    this.refill = refill;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get buyers(): string[] {
    return this.orders.map((order) => order.buyerId);
  }

  get orderIds(): string[] {
    return this.orders.map((order) => order.orderId);
  }

  /** The store sends the batch to this server. @param buyers whose orders it sends; default: all */
  send(server: TakeServer, buyers: readonly string[] = this.buyers): void {
    const sent = this.#batch.orders.filter(({ buyerId }) => buyers.includes(buyerId));
    this.#batch.sending?.(sent, server);
  }

  /** One result for each order, or a single one for all. */
  serve(results: readonly TakeResult[], segment: Partial<Segment> = {}): Promise<void> {
    const { seq = 1, committed = 0, left = 0, orders = 0, returned = 0, total = 0, epoch = 1 } = segment;
    const all = results.length === 1 ? this.orders.map(() => results[0]!) : results;
    const reply = { status: 'served', results: all, seq, committed, left, orders, returned } as const;
    return this.#answer(reply, { total, epoch });
  }

  refuse(status: Refused): Promise<void> {
    return this.#answer({ status }, { total: 1, epoch: 1 });
  }

  /** The segments of a refill do not know the generation. */
  refuseRefill(): Promise<void> {
    this.#resolve({ status: 'stale' });
    return settledTurns();
  }

  notExecuted(): Promise<void> {
    return this.fail(new NotExecuted('the store is away'));
  }

  loseReply(): Promise<void> {
    return this.fail(new OutcomeUnknown('the reply is lost'));
  }

  fail(error: Error): Promise<void> {
    this.#reject(error);
    return settledTurns();
  }

  #answer(take: TakeReply, stock: { total: number; epoch: number }): Promise<void> {
    this.#resolve(this.refill === undefined ? take : { status: 'refilled', take, ...stock });
    return settledTurns();
  }
}

/** A store that answers when and as the test says, so that the test decides what happens in which order. */
export class ScriptedTakes implements TakeStore {
  ready = true;
  /** Set another one to play a restart. */
  server = aServer();
  /** Delays the store: nothing is sent before the test calls the batch's `sending`. */
  isDelayed = false;
  /** All calls so far. */
  readonly asks: Ask[] = [];
  readonly hints: LogHint[] = [];
  #seen = 0;
  #whenReady: (() => void)[] = [];

  take(batch: TakeBatch): Promise<TakeReply> {
    return this.#ask(new Ask(batch)) as Promise<TakeReply>;
  }

  refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    return this.#ask(new Ask(batch, segments)) as Promise<RefillReply>;
  }

  hint(hint: LogHint): void {
    this.hints.push(hint);
  }

  whenReady(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#whenReady.push(resolve);
      setTimeout(resolve, timeoutMs);
    });
  }

  becomeReady(): Promise<void> {
    this.ready = true;
    for (const resolve of this.#whenReady.splice(0)) resolve();
    return settledTurns();
  }

  /** The next call that the test has not looked at. */
  async next(): Promise<Ask> {
    await settledTurns();
    const ask = this.asks[this.#seen++];
    if (!ask) throw new Error(`the store was asked ${this.asks.length} times, and not again`);
    return ask;
  }

  #ask(ask: Ask): Promise<Answer> {
    if (!this.isDelayed) ask.send(this.server);
    this.asks.push(ask);
    return ask.answered;
  }
}
