/** Sales for tests: created with few words, loaded into a backend, and counted afterwards. */
import { expect } from 'vitest';
import {
  type Backend,
  type DraftStamp,
  type HeldOrder,
  type Holding,
  type HoldingsPart,
  type LogPosition,
  NO_ENTRY,
  type RefillReply,
  type Sale,
  type SaleState,
  type SegmentRef,
  type TakeBatch,
  type TakeOrder,
  type TakeReply,
  type Watermark,
} from '../../../src/engine/contract.ts';
import { AFTER_ALL_IDS } from '../../../src/engine/limits.ts';

let salesBuilt = 0;

/** A sale with an id of its own. What the test does not set has the product's defaults. */
export function aSale(spec: Partial<Sale> = {}): Sale {
  return {
    id: `sale-${++salesBuilt}`,
    title: 'Concert tickets',
    stock: 10,
    segments: 1,
    startsAt: Date.UTC(2024, 0, 1),
    endsAt: undefined,
    perBuyerLimit: 1,
    requireToken: false,
    payWithinSeconds: undefined,
    priceMinor: undefined,
    faceValueMinor: undefined,
    currency: undefined,
    shopId: undefined,
    metadata: {},
    ...spec,
  };
}

export interface LoadOptions {
  readonly generation?: number;
  readonly state?: SaleState;
  /** Units of each segment; without it the sale's stock is split evenly. */
  readonly split?: readonly number[];
  /** Orders that buyers hold already, by segment. */
  readonly holdings?: readonly (readonly Holding[])[];
  /** Loads the buyers of this draft too. */
  readonly draft?: DraftStamp;
}

/** Builds the sale as a rebuild does: freezes an older generation, then every segment, its holdings, then the record that opens it. */
export async function loadSale(backend: Backend, sale: Sale, options: LoadOptions = {}): Promise<LoadedSale> {
  const { generation = 1, state = 'open', split = splitEvenly(sale), holdings = [], draft } = options;
  const { id: saleId, perBuyerLimit } = sale;
  if (generation > 1) await backend.sales.freeze(saleId, sale.segments, generation - 1);
  for (let segment = 0; segment < sale.segments; segment++) {
    const ref = { saleId, segment, generation };
    const load = { ...ref, left: split[segment]!, perBuyerLimit };
    const held = holdings[segment];
    await backend.sales.loadSegment(held ? load : { ...load, buyers: draft ?? 'none' });
    if (held) await backend.sales.loadHoldings(ref, allHoldings(held));
  }
  await backend.sales.publish({ sale, state, generation });
  return new LoadedSale(backend, sale, generation);
}

export function allHoldings(holdings: readonly Holding[]): HoldingsPart {
  return { after: '', upTo: AFTER_ALL_IDS, holdings };
}

/** Splits `sale.stock` over `sale.segments`; the first segments get what does not divide. */
function splitEvenly({ stock, segments }: Pick<Sale, 'stock' | 'segments'>): number[] {
  return Array.from(
    { length: segments },
    (_, i) => Math.floor(stock / segments) + (i < stock % segments ? 1 : 0),
  );
}

type BatchOptions = Partial<
  Pick<TakeBatch, 'lane' | 'ticket' | 'generation' | 'answeredTicket' | 'newest' | 'rules'>
>;

/** A sale in a backend, with what a test does to it. Order ids count from 1001, tickets from 1. */
export class LoadedSale {
  readonly backend: Backend;
  readonly sale: Sale;
  readonly generation: number;
  /** Units that compensations have added to the stock. */
  returned = 0;
  #nextOrder = 1001;
  #nextTicket = 1;

  constructor(backend: Backend, sale: Sale, generation: number) {
    this.backend = backend;
    this.sale = sale;
    this.generation = generation;
  }

  ref(segment = 0): SegmentRef {
    return { saleId: this.sale.id, segment, generation: this.generation };
  }

  order(buyerId: string, { quantity = 1, key = '' }: Partial<TakeOrder> = {}): TakeOrder {
    return { orderId: String(this.#nextOrder++), buyerId, quantity, key };
  }

  /** One order of one unit for each of `count` buyers. */
  crowd(count: number): TakeOrder[] {
    return Array.from({ length: count }, () => this.order(`buyer-${this.#nextOrder}`));
  }

  batch(orders: readonly TakeOrder[], segment = 0, options: BatchOptions = {}): TakeBatch {
    return {
      ...this.ref(segment),
      lane: 1,
      ticket: this.#nextTicket++,
      answeredTicket: 0,
      newest: NO_ENTRY,
      orders,
      ...options,
    };
  }

  take(orders: readonly TakeOrder[], segment = 0, options: BatchOptions = {}): Promise<TakeReply> {
    return this.backend.takes.take(this.batch(orders, segment, options));
  }

  refillAndTake(orders: readonly TakeOrder[], segment = 0, options: BatchOptions = {}): Promise<RefillReply> {
    return this.backend.takes.refillAndTake(this.batch(orders, segment, options), this.sale.segments);
  }

  /** Sells the whole sale, in batches. */
  async sellEach(count: number, segment = 0): Promise<TakeOrder[]> {
    const orders = this.crowd(count);
    for (const order of orders) served(await this.take([order], segment));
    return orders;
  }

  async compensate({ buyerId, orderId, quantity }: TakeOrder, segment = 0): Promise<void> {
    const held = await this.held(buyerId, segment);
    await this.backend.log.compensate({ ...this.ref(segment), buyerId, orderId, units: quantity });
    if (held.some((order) => order.orderId === orderId)) this.returned += quantity;
  }

  freeze(): Promise<void> {
    return this.backend.sales.freeze(this.sale.id, this.sale.segments, this.generation);
  }

  position(seq = 0, tail = '', segment = 0): LogPosition {
    return { ...this.ref(segment), seq, tail };
  }

  watermark(seq: number, orders: number, segment = 0): Watermark {
    return { ...this.ref(segment), seq, orders, rejected: [] };
  }

  async held(buyerId: string, segment = 0): Promise<readonly HeldOrder[]> {
    const { holdings } = await this.backend.sales.recall(this.ref(segment), [buyerId]);
    return holdings[0]!.orders;
  }

  /** The counters of every segment. A missing segment fails the test. */
  async counters() {
    const segments = await this.backend.sales.snapshot(this.sale.id, this.sale.segments, this.generation);
    return segments.map(({ segment, counters }) => {
      if (!counters) throw new Error(`segment ${segment} of ${this.sale.id} is missing`);
      return counters;
    });
  }

  async left(): Promise<number[]> {
    return (await this.counters()).map(({ left }) => left);
  }

  async epoch(): Promise<number> {
    const [version] = await this.backend.sales.versions([this.sale.id]);
    return version!.epoch;
  }

  /** Expects that every unit is in a segment or in an order. */
  async expectConserved(): Promise<void> {
    const counters = await this.counters();
    const units = counters.reduce((sum, { left, taken }) => sum + left + taken, 0);
    expect(units, `units of ${this.sale.id}, left and taken`).toBe(this.sale.stock + this.returned);
    for (const { left, taken, supplied } of counters) {
      expect(left).toBeGreaterThanOrEqual(0);
      expect(supplied, 'units supplied to a segment are left or taken').toBe(left + taken);
    }
  }
}

/** The reply of a take, which must be `served`. */
export function served(reply: TakeReply): Extract<TakeReply, { status: 'served' }> {
  if (reply.status !== 'served') throw new Error(`the take was answered ${reply.status}`);
  return reply;
}

/** The kind of each result, in order. */
export function kinds(reply: TakeReply): string[] {
  return served(reply).results.map((result) => result.kind);
}

/** The reply of a refill, which must be `refilled`. */
export function refilled(reply: RefillReply): Extract<RefillReply, { status: 'refilled' }> {
  if (reply.status !== 'refilled') throw new Error(`the refill was answered ${reply.status}`);
  return reply;
}
