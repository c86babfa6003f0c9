/**
 * The state that a sale and its orders must have, derived from the promises alone: who holds what, what is left, what the
 * ledger says. The model knows nothing of segments, generations and stores. It knows of units in transit only where the test
 * has interrupted an operation.
 */
import { expect } from 'vitest';
import type { Outcome, Purchase, SaleState } from '../../../src/engine/contract.ts';
import type {
  OrderChange,
  OrderOutcome,
  OrderStatus,
  PayType,
} from '../../../src/operations/order-operations.ts';

/** `logged`: taken, and not in Postgres yet. */
export type LifeStatus = OrderStatus | 'logged';

export interface LifeOrder {
  readonly id: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  status: LifeStatus;
  /** Whether the buyer's record holds the order: then its units are not for sale and count towards the limit. */
  recorded: boolean;
  /** Whether the time to pay is over. */
  overdue: boolean;
  payType: PayType | undefined;
  /** Changes made so far, because a repeated change must be answered the same. */
  readonly done: Set<OrderChange['kind']>;
  refundDue: boolean;
  retakenBy: string | undefined;
}

export type Window = 'open' | 'not_started' | 'ended';

export interface LedgerRow {
  readonly action: string;
  readonly units: number;
}

/** An order in Postgres. */
export interface OrderTruth {
  readonly id: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: OrderStatus;
  readonly refundDue: boolean;
  readonly retakenBy: string | null;
}

/** A purchase that was answered. */
export interface Concluded {
  readonly purchase: Purchase;
  readonly outcome: Outcome;
}

interface Before {
  /** Units left. */
  readonly left: number;
  readonly orders: ReadonlySet<string>;
}

const LIVE: readonly LifeStatus[] = ['logged', 'unpaid', 'paid', 'redeemed'];

export class LifeModel {
  readonly stock: number;
  limit: number;
  readonly orders = new Map<string, LifeOrder>();
  readonly ledger: LedgerRow[] = [];
  state: SaleState = 'open';
  window: Window = 'open';
  isSyncOn = false;
  /** False: the segments sell nothing until the sale is rebuilt. */
  isBuilt = true;
  /** Units of a top-up that have not reached their segments yet. */
  uncredited = 0;
  /** Units taken out of the segments for a withdrawal that has not ended. */
  withdrawing: number | undefined;
  /** Units came back and the nodes were not notified: a board that is still closed is correct by what it knows. */
  owesEpoch = false;
  /** The backend has lost its data, including orders that were not in Postgres. */
  mayLose = false;
  /** Orders lost with the backend's data before they were in Postgres. */
  lost = 0;

  constructor({ stock, limit }: { stock: number; limit: number }) {
    this.stock = stock;
    this.limit = limit;
  }

  /** All units, sold or not. */
  get total(): number {
    return this.stock + this.ledger.reduce((sum, { units }) => sum + units, 0);
  }

  /** Units for sale now. */
  get left(): number {
    return this.total - units(this.where((o) => o.recorded)) - this.uncredited - (this.withdrawing ?? 0);
  }

  get logged(): LifeOrder[] {
    return this.where((order) => order.status === 'logged');
  }

  get live(): LifeOrder[] {
    return this.where(isLive);
  }

  /** Orders returned in Postgres and still in the backend's records. */
  get returning(): LifeOrder[] {
    return this.where((order) => order.recorded && !isLive(order));
  }

  where(which: (order: LifeOrder) => boolean): LifeOrder[] {
    return [...this.orders.values()].filter(which);
  }

  recordOf(buyerId: string): LifeOrder[] {
    return this.where((order) => order.buyerId === buyerId && order.recorded);
  }

  nth(index: number): LifeOrder | undefined {
    const all = [...this.orders.values()];
    return all[index % all.length];
  }

  /** An order in Postgres, if nothing of it is in transit. */
  adopt({ id, buyerId, quantity, status, refundDue, retakenBy }: OrderTruth): void {
    const order = fresh({ id, buyerId, quantity, key: '' });
    const what = { status, refundDue, retakenBy: retakenBy ?? undefined };
    this.orders.set(id, Object.assign(order, what, { recorded: LIVE.includes(status) }));
  }

  take(id: string, { buyerId, quantity, key, onBehalf }: Purchase): LifeOrder {
    const order = fresh({ id, buyerId, quantity, key });
    expect(this.isBuilt, 'the sale is built').toBe(true);
    expect([this.state, onBehalf || this.window], `${buyerId} buys`).toEqual(['open', onBehalf || 'open']);
    this.orders.set(id, order);
    expect(units(this.recordOf(buyerId)), `units of ${buyerId}`).toBeLessThanOrEqual(this.limit);
    expect(this.left, `units left after ${buyerId}'s purchase`).toBeGreaterThanOrEqual(0);
    return order;
  }

  /**
   * For purchases made at the same time; the model does not predict who is first.
   * @param before the units that were there when they began
   */
  conclude(batch: readonly Concluded[], before: Before): void {
    for (const { purchase, outcome } of batch) {
      if (outcome.code !== 'committed' && outcome.code !== 'accepted') continue;
      const order = this.orders.get(outcome.orderId) ?? this.take(outcome.orderId, purchase);
      const { buyerId, quantity, key } = purchase;
      expect(order, 'the order that a buyer was answered').toMatchObject({ buyerId, quantity, key });
      expect(order.recorded, `${order.id} stands`).toBe(true);
      expect(outcome.quantity).toBe(quantity);
    }
    for (const told of batch) expect(this.mayTell(told, before), JSON.stringify(told)).toBe(true);
  }

  /** Whether the answer is true, now that all purchases of the batch have theirs. */
  mayTell({ purchase, outcome }: Concluded, before: Before): boolean {
    const { buyerId, quantity, key } = purchase;
    const held = this.recordOf(buyerId);
    const known = key === '' ? undefined : held.find((order) => order.key === key);
    switch (outcome.code) {
      case 'committed':
      case 'accepted':
        return true;
      case 'invalid_request':
        return quantity > this.limit;
      case 'idempotency_mismatch':
        return outcome.orderId === known?.id && quantity !== known.quantity;
    }
    if (known && before.orders.has(known.id)) return false;
    switch (outcome.code) {
      case 'not_started':
      case 'ended':
        return this.window === outcome.code;
      case 'paused':
        return this.state === 'paused';
      case 'limit_reached':
        return units(held) + quantity > this.limit;
      case 'sold_out':
        return this.left === 0 || this.owesEpoch;
      case 'insufficient_stock':
        return (
          this.left < quantity &&
          outcome.remaining >= Math.max(1, this.left) &&
          outcome.remaining <= before.left
        );
      default:
        return false;
    }
  }

  /** The answer that the change of an order must get, and its effect. `settleLate` handles late payments. */
  change(order: LifeOrder, change: OrderChange): OrderOutcome['code'] | 'late' {
    const { kind } = change;
    const payType = change.kind === 'pay' ? change.payType : undefined;
    if (order.status === 'logged') return 'unknown_order';
    if (order.done.has(kind) && (kind !== 'pay' || payType === order.payType)) return 'done';
    if (kind === 'pay' && order.retakenBy !== undefined) {
      return payType === order.payType ? 'done' : 'wrong_status';
    }
    if (kind === 'pay' && order.refundDue) return payType === order.payType ? 'expired' : 'wrong_status';
    if (kind === 'pay' && (order.status === 'expired' || (order.status === 'unpaid' && order.overdue))) {
      return 'late';
    }
    if (kind === 'refund' && order.refundDue) {
      order.done.add(kind);
      return 'done';
    }
    if (order.status !== (kind === 'pay' || kind === 'cancel' ? 'unpaid' : 'paid')) return 'wrong_status';
    order.status = ({ pay: 'paid', cancel: 'cancelled', redeem: 'redeemed', refund: 'refunded' } as const)[
      kind
    ];
    order.payType ??= payType;
    order.done.add(kind);
    return 'done';
  }

  /** @returns the orders that have expired */
  expire(): LifeOrder[] {
    const due = this.where((order) => order.status === 'unpaid' && order.overdue);
    for (const order of due) order.status = 'expired';
    return due;
  }

  /** Makes the units of these orders available again, if the orders have ended. */
  applyReturns(orders: readonly LifeOrder[] = this.returning): void {
    for (const order of orders) if (!isLive(order)) order.recorded = false;
  }

  /**
   * Everything in transit has arrived: sync has caught up, or a rebuild has begun a new generation.
   * @param inPostgres the orders that are in Postgres: others may be lost with the backend's data
   */
  arrive(inPostgres: ReadonlySet<string>): void {
    for (const order of this.logged) {
      if (inPostgres.has(order.id)) order.status = 'unpaid';
      else {
        expect(this.mayLose, `order ${order.id} may be lost`).toBe(true);
        this.orders.delete(order.id);
        this.lost++;
      }
    }
    this.applyReturns();
    this.uncredited = 0;
    this.withdrawing = undefined;
    this.owesEpoch = false;
    this.mayLose = false;
  }
}

function fresh(order: Pick<LifeOrder, 'id' | 'buyerId' | 'quantity' | 'key'>): LifeOrder {
  return {
    ...order,
    ...{ status: 'logged', recorded: true, overdue: false },
    ...{ payType: undefined, done: new Set(), refundDue: false, retakenBy: undefined },
  };
}

export function isLive({ status }: LifeOrder): boolean {
  return LIVE.includes(status);
}

export function units(orders: readonly { readonly quantity: number }[]): number {
  return orders.reduce((sum, { quantity }) => sum + quantity, 0);
}
