/**
 * The answer that every purchase must get, derived from the promises alone. The model knows nothing of segments, lanes,
 * batches, refills or epochs: a sale is a number of units, and nothing else decides who gets one.
 */
import { expect } from 'vitest';
import type {
  Outcome,
  OutcomeCode,
  Purchase,
  Rejection,
  Sale,
  SaleState,
  TakeOrder,
} from '../../src/engine/contract.ts';

/** An order that a buyer holds. Any id is accepted until an answer or the log names it; afterwards only that id. */
export interface ModelOrder {
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  id: string | undefined;
  committed: boolean;
}

/** The answer that a purchase must get. */
export interface Answer {
  readonly code: OutcomeCode;
  readonly values: Readonly<Record<string, unknown>>;
  /** The orders that the answer names. */
  readonly orders: readonly ModelOrder[];
}

/** The prediction for a purchase; without an answer the purchase must still be waiting. */
export interface Prediction {
  answer: Answer | undefined;
  /** Nothing is left: a closed board answers `sold_out` before all other checks. */
  readonly orSoldOut: boolean;
}

interface Waiting {
  readonly prediction: Prediction;
  readonly order: ModelOrder;
  readonly deadline: number;
}

export class SaleModel {
  state: SaleState = 'open';
  left: number;
  readonly #sale: Sale;
  readonly #durable: boolean;
  readonly #requestDeadlineMs: number;
  readonly #ids = new Set<string>();
  #orders: ModelOrder[] = [];
  #waiting: Waiting[] = [];

  constructor(sale: Sale, durable: boolean, requestDeadlineMs: number) {
    this.#sale = sale;
    this.#durable = durable;
    this.#requestDeadlineMs = requestDeadlineMs;
    this.left = sale.stock;
  }

  /** @param now the date @param clock milliseconds since the start, for deadlines */
  buy(purchase: Purchase, now: number, clock: number): Prediction {
    const { buyerId, quantity, key } = purchase;
    const { perBuyerLimit: limit, startsAt, endsAt } = this.#sale;
    if (quantity > limit) {
      return said('invalid_request', { detail: `quantity must be a whole number from 1 to ${limit}` });
    }
    const held = this.held(buyerId);
    const known = key === '' ? undefined : held.find((order) => order.key === key);
    if (known && known.quantity !== quantity) {
      return said('idempotency_mismatch', { quantity: known.quantity }, [known]);
    }
    if (known) return this.#follow(known, purchase, clock);

    const orSoldOut = this.left === 0;
    if (this.state === 'closed') return said('ended', { endedAt: endsAt }, [], orSoldOut);
    if (now < startsAt) return said('not_started', { startsAt }, [], orSoldOut);
    if (endsAt !== undefined && now >= endsAt) return said('ended', { endedAt: endsAt }, [], orSoldOut);
    if (this.state === 'paused') return said('paused', {}, [], orSoldOut);
    if (units(held) + quantity > limit) return said('limit_reached', { limit }, held, orSoldOut);
    if (this.left === 0) return said('sold_out');
    if (this.left < quantity) return said('insufficient_stock', { remaining: this.left });

    this.left -= quantity;
    const order = { buyerId, quantity, key, id: undefined, committed: false };
    this.#orders.push(order);
    return this.#follow(order, purchase, clock);
  }

  held(buyerId: string): ModelOrder[] {
    return this.#orders.filter((order) => order.buyerId === buyerId);
  }

  get committed(): ModelOrder[] {
    return this.#orders.filter((order) => order.committed);
  }

  get waits(): boolean {
    return this.#waiting.length > 0;
  }

  #follow(order: ModelOrder, { awaitCommit }: Purchase, clock: number): Prediction {
    if (order.committed) return { answer: placed('committed', order), orSoldOut: false };
    if (this.#durable && !awaitCommit) return { answer: placed('accepted', order), orSoldOut: false };
    const prediction = { answer: undefined, orSoldOut: false };
    this.#waiting.push({ prediction, order, deadline: clock + this.#requestDeadlineMs });
    return prediction;
  }

  /** Sync has reached this order in the log. */
  logged(entry: TakeOrder): ModelOrder {
    const order = this.held(entry.buyerId).find((o) => !o.committed)!;
    expect(entry).toMatchObject({ quantity: order.quantity, key: order.key });
    this.#name(order, entry.orderId);
    return order;
  }

  commit(order: ModelOrder): void {
    order.committed = true;
    this.#settle(
      (waiting) => waiting.order === order,
      () => placed('committed', order),
    );
  }

  /** Postgres rejects the order. If the reason is the limit, its units were taken, and come back. */
  reject(order: ModelOrder, reason: Rejection['reason']): void {
    this.#remove(order);
    if (reason === 'limit') this.left += order.quantity;
    const { perBuyerLimit: limit } = this.#sale;
    this.#settle(
      (waiting) => waiting.order === order,
      () => (reason === 'limit' ? answer('limit_reached', { limit }) : answer('sold_out')),
    );
  }

  giveBack(order: ModelOrder): void {
    this.#remove(order);
    this.left += order.quantity;
  }

  expire(clock: number): void {
    this.#settle(
      ({ deadline }) => deadline <= clock,
      ({ order }) => (this.#durable ? placed('accepted', order) : answer('unknown')),
    );
  }

  /** The node is gone, and its answers are lost. */
  forgetWaiting(): void {
    this.#waiting = [];
  }

  #remove(order: ModelOrder): void {
    this.#orders = this.#orders.filter((other) => other !== order);
  }

  #settle(whose: (waiting: Waiting) => boolean, say: (waiting: Waiting) => Answer): void {
    for (const waiting of this.#waiting.filter(whose)) waiting.prediction.answer = say(waiting);
    this.#waiting = this.#waiting.filter((waiting) => !whose(waiting));
  }

  /** Fails the test if the purchase got another answer. */
  compare(outcome: Outcome, { answer: expected, orSoldOut }: Prediction): void {
    if (orSoldOut && outcome.code === 'sold_out') return;
    const { orderId, orderIds, ...values } = outcome as Partial<Record<string, unknown>>;
    expect(values).toEqual({ code: expected?.code ?? 'waits', ...expected?.values });
    const names = orderId === undefined ? (orderIds ?? []) : [orderId];
    const named = names as string[];
    expect(named).toHaveLength(expected!.orders.length);
    for (const [i, id] of named.entries()) this.#name(expected!.orders[i]!, id);
  }

  #name(order: ModelOrder, id: string): void {
    if (order.id === undefined) {
      expect(this.#ids, 'ids of other orders').not.toContain(id);
      this.#ids.add(id);
      order.id = id;
    }
    expect(id, `the id of ${order.buyerId}'s order`).toBe(order.id);
  }
}

function said(
  code: OutcomeCode,
  values: Record<string, unknown> = {},
  orders: readonly ModelOrder[] = [],
  orSoldOut = false,
): Prediction {
  return { answer: answer(code, values, orders), orSoldOut };
}

function answer(
  code: OutcomeCode,
  values: Record<string, unknown> = {},
  orders: readonly ModelOrder[] = [],
): Answer {
  return { code, values, orders };
}

function placed(code: 'committed' | 'accepted', order: ModelOrder): Answer {
  return answer(code, { quantity: order.quantity }, [order]);
}

export function units(orders: readonly { readonly quantity: number }[]): number {
  return orders.reduce((sum, order) => sum + order.quantity, 0);
}
