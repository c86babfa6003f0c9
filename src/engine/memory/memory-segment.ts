import { monotonicMs } from '../../lib/monotonic.ts';
import type {
  HeldOrder,
  Holding,
  HoldingsPart,
  LogEntry,
  SaleState,
  SegmentLoad,
  TakeBatch,
  TakeOrder,
  TakeReply,
  TakeResult,
} from '../contract.ts';
import { AFTER_ALL_IDS, MAX_TOLD_ORDERS } from '../limits.ts';
import { NO_RULES } from '../sale/rules.ts';

const TAKEN: TakeResult = { kind: 'taken' };
const SHORT: TakeResult = { kind: 'short' };

/** One segment in memory. It does what redis/lua/purchase/take.lua and the other scripts do, in the same order. */
export class MemorySegment {
  readonly generation: number;
  perBuyerLimit: number;
  /** loaded: waits for its publication. frozen: waits for the next load. Both answer `stale`. */
  state: SaleState | 'loaded' | 'frozen' = 'loaded';
  /** The segment refuses takes that name other rules (engine/sale/rules.ts). */
  rules = NO_RULES;
  left: number;
  /** Units put in minus units moved out: left plus taken. */
  supplied: number;
  /** Parts of `supplied`, as in `SegmentCounts`. */
  returned = 0;
  credited = 0;
  withdrawn = 0;
  seq = 0;
  tail = '';
  committed = 0;
  committedOrders = 0;
  orders = 0;
  taken = 0;
  log: LogEntry[] = [];
  readonly buyers = new Map<string, HeldOrder[]>();
  /** See `SaleStore.loadedUpTo`. */
  loadedUpTo = '';
  /** The last withdrawal, as in `SegmentSnapshot`. */
  withdrawal = { movement: '', units: 0 };
  /** The newest movement that was credited. */
  #lastCredited = 0n;
  /** The newest movement whose withdrawal was undone. */
  #lastGivenBack = 0n;
  readonly #tickets = new Map<number, number>();

  constructor(load: SegmentLoad) {
    this.generation = load.generation;
    this.perBuyerLimit = load.perBuyerLimit;
    this.left = load.left;
    this.supplied = load.left;
  }

  get isPublished(): boolean {
    return this.state !== 'loaded' && this.state !== 'frozen';
  }

  /** Whether it waits for its publication, and has all of its buyers. */
  get isPublishable(): boolean {
    return this.state === 'loaded' && this.loadedUpTo === AFTER_ALL_IDS;
  }

  take(batch: TakeBatch, maxLogOrders: number): TakeReply {
    if (this.state === 'loaded' || this.state === 'frozen') return { status: 'stale' };
    if ((this.#tickets.get(batch.lane) ?? 0) >= batch.ticket) return { status: 'superseded' };
    const refusal = this.#refusal(batch, maxLogOrders);
    if (refusal !== 'late') this.#tickets.set(batch.lane, batch.ticket);
    if (refusal) return { status: refusal };

    const seq = this.seq + 1;
    const taken: TakeOrder[] = [];
    const results = batch.orders.map((order) => {
      const result = this.#examine(order);
      if (result.kind === 'taken') {
        const { orderId, buyerId, quantity, key, note } = order;
        this.#record(order, seq);
        // A copy, because the caller's object may have more members, and may change.
        taken.push({ orderId, buyerId, quantity, key, ...(note && { note }) });
      }
      return result;
    });
    if (taken.length > 0) this.#append(taken, seq);
    return {
      status: 'served',
      results,
      seq,
      committed: this.committed,
      left: this.left,
      orders: this.orders,
      returned: this.returned,
    };
  }

  #refusal({ rules, orders }: TakeBatch, maxLogOrders: number) {
    if (this.state !== 'open') return this.state as 'paused' | 'closed';
    if (rules && rules !== this.rules) return 'outdated';
    const nowMs = monotonicMs();
    if (orders.some(({ deadline = nowMs }) => deadline < nowMs)) return 'late';
    return this.orders - this.committedOrders + orders.length > maxLogOrders ? 'busy' : undefined;
  }

  #examine(order: TakeOrder): TakeResult {
    let units = 0;
    const held = this.buyers.get(order.buyerId) ?? [];
    for (const { orderId, quantity, key, seq } of held) {
      if (orderId === order.orderId || (order.key !== '' && key === order.key)) {
        if (quantity !== order.quantity) return { kind: 'mismatch', orderId, quantity };
        return { kind: 'replay', orderId, quantity, seq };
      }
      units += quantity;
    }
    if (units + order.quantity > this.perBuyerLimit)
      return { kind: 'limit', orderIds: held.slice(0, MAX_TOLD_ORDERS).map((o) => o.orderId) };
    return order.quantity > this.left ? SHORT : TAKEN;
  }

  #record({ buyerId, orderId, quantity, key }: TakeOrder, seq: number): void {
    this.left -= quantity;
    this.taken += quantity;
    const held = this.buyers.get(buyerId);
    const order = { orderId, quantity, key, seq };
    if (held) held.push(order);
    else this.buyers.set(buyerId, [order]);
  }

  #append(orders: TakeOrder[], seq: number): void {
    const previous = this.tail;
    this.seq = seq;
    this.tail = orders[0]!.orderId;
    this.orders += orders.length;
    this.log.push({ seq, previous, tail: this.tail, ordersSoFar: this.orders, orders });
  }

  /**
   * Entries with a higher sequence number than `seq`. The log has no gaps, so their index follows from the number.
   */
  entriesAfter(seq: number, maxEntries: number): readonly LogEntry[] {
    const first = this.log[0];
    if (!first) return [];
    const from = Math.max(0, seq - first.seq + 1);
    return this.log.slice(from, from + maxEntries);
  }

  advance(seq: number, orders: number): void {
    if (seq <= this.committed) return;
    this.committed = seq;
    this.committedOrders = orders;
    this.log = this.log.filter((entry) => entry.seq > seq);
  }

  compensate(buyerId: string, orderId: string, units: number): void {
    const held = this.buyers.get(buyerId) ?? [];
    const kept = held.filter((order) => order.orderId !== orderId);
    if (kept.length === held.length) return;
    if (kept.length > 0) this.buyers.set(buyerId, kept);
    else this.buyers.delete(buyerId);
    this.supply(units);
    this.returned += units;
  }

  /** @param units negative: removes unsold units */
  supply(units: number): void {
    this.left += units;
    this.supplied += units;
  }

  credit(movement: string, units: number): void {
    if (BigInt(movement) <= this.#lastCredited) return;
    this.#lastCredited = BigInt(movement);
    this.supply(units);
    this.credited += units;
  }

  /** @param most units in all for this movement. @returns the units that are out for it */
  withdraw(movement: string, most: number): number {
    const id = BigInt(movement);
    if (id <= this.#lastGivenBack || id < BigInt(this.withdrawal.movement || 0)) return 0;
    const out = this.withdrawal.movement === movement ? this.withdrawal.units : 0;
    const more = Math.max(0, Math.min(this.left, most - out));
    this.#takeOut(more);
    this.withdrawal = { movement, units: out + more };
    return out + more;
  }

  giveBack(movement: string): void {
    if (BigInt(movement) < BigInt(this.withdrawal.movement || 0)) return;
    if (this.withdrawal.movement === movement) this.#takeOut(-this.withdrawal.units);
    this.withdrawal = { movement, units: 0 };
    this.#lastGivenBack = BigInt(movement);
  }

  /** @param units negative: puts units back */
  #takeOut(units: number): void {
    this.supply(-units);
    this.withdrawn += units;
  }

  /** @returns false, and nothing was loaded, if buyers before these are missing */
  load({ after, upTo, holdings }: HoldingsPart): boolean {
    if (this.loadedUpTo < after) return false;
    for (const holding of holdings) this.setHolding(holding);
    if (this.loadedUpTo < upTo) this.loadedUpTo = upTo;
    return true;
  }

  setHolding({ buyerId, orders }: Holding): void {
    this.buyers.set(buyerId, [...orders]);
  }

  holding(buyerId: string): Holding {
    return { buyerId, orders: [...(this.buyers.get(buyerId) ?? [])] };
  }
}
