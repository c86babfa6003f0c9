/**
 * The interface of a way to sell stock, so that all of them can run side by side.
 *
 * Purpose: each strategy that this field teaches, right or wrong, behind one small interface. Tests force each to fail or to hold,
 * and benches compare them.
 * Non-goals: use in a shop. Nothing outside this folder, the tests and the benches imports it.
 *
 * The words are those of src/engine/contract.ts; a node here is one opened strategy, with connections of its own.
 */

/** The outcome of an attempt to buy one unit. If a store is gone, an error is thrown instead. */
export type Outcome =
  | { readonly code: 'sold' }
  | { readonly code: 'sold_out' }
  /** The buyer has an order already. */
  | { readonly code: 'limit_reached' }
  /** Nothing was sold, though something may be left: another attempt might succeed. */
  | { readonly code: 'failed'; readonly why: string };

export const SOLD: Outcome = { code: 'sold' };
export const SOLD_OUT: Outcome = { code: 'sold_out' };
export const LIMIT_REACHED: Outcome = { code: 'limit_reached' };

export function failed(why: string): Outcome {
  return { code: 'failed', why };
}

export type Sell = (buyerId: string, orderId: string) => Promise<Outcome>;

export interface SoldOrder {
  readonly orderId: string;
  readonly buyerId: string;
}

/** One node that sells by one strategy. */
export interface Strategy {
  /** Sells one unit. The order id is new for each call. */
  readonly sell: Sell;
  /** The orders of the sale, by all nodes. */
  sold(): Promise<readonly SoldOrder[]>;
  /** Units left, as the strategy counts them. */
  left(): Promise<number>;
  /** Closes the connections and nothing else: a held lock stays held. */
  close(): Promise<void>;
}

export interface SaleSpec {
  readonly id: string;
  readonly stock: number;
  /** The number of segments into which D1 to D3 split the stock. */
  readonly segments: number;
  /** The number of nodes over which C4 splits the stock. */
  readonly nodes: number;
}

/** The addresses of the stores. A strategy needs those that its row names. */
export interface Stores {
  /** Put before every key, so that several runs can share one Redis. */
  readonly keyPrefix: string;
  readonly postgres?: string;
  readonly redis?: string;
  /** Redis servers that hold only locks: B9's primary, B10's quorum. */
  readonly lockRedis?: readonly string[];
  /** `host:port`, one per server of the ensemble. */
  readonly zookeeper?: readonly string[];
}

export type StoreName = Exclude<keyof Stores, 'keyPrefix'>;

/** @throws Error if the store that a strategy needs was not given */
export function needed<N extends StoreName>(stores: Stores, name: N): NonNullable<Stores[N]> {
  const store = stores[name];
  if (store === undefined)
    throw new Error(`this strategy needs ${name}: name it in the stores it is opened with`);
  return store;
}

/** How far a promise holds: in every case, while one node sells, while no holder outlives its lock, or not at all. */
export type Safety = 'safe' | 'one-node' | 'while-held' | 'unsafe';

interface RowBase {
  /** As in docs/catalogue.md. */
  readonly id: string;
  readonly title: string;
  readonly stores: readonly StoreName[];
}

/** One way of selling. */
export interface SellingRow extends RowBase {
  readonly kind: 'selling';
  /** Never sold above the stock. */
  readonly stock: Safety;
  /** Never two orders for one buyer. */
  readonly limit: Safety | 'not-checked';
  /** Why units may stay unsold although buyers ask for them, `''` if they don't. */
  readonly undersells: string;
  /**
   * The first node that opens a sale creates its stock; the others find it. They are opened one after the other.
   * @throws what the stores throw if they can't be reached
   */
  open(stores: Stores, sale: SaleSpec, setting?: Setting): Promise<Strategy>;
}

/** One way of making order ids. */
export interface NamingRow extends RowBase {
  readonly kind: 'naming';
  readonly guessable: boolean;
  /** Calls of a store for each id. */
  readonly roundTrips: number;
  /** @param node 0 to 4,095, this node's alone */
  open(stores: Stores, node: number, clock?: Pick<Clock, 'now'>): Promise<OrderNames>;
}

export interface OrderNames {
  next(): Promise<string>;
  close(): Promise<void>;
}

export type Row = SellingRow | NamingRow;

/** The surroundings of a strategy: tests replace them to hold a call at a point, to move time, or to delay a check. */
export interface Setting {
  readonly steps: Steps;
  readonly clock: Clock;
  /** The shop's own check of a buyer, which may be slow: C1 makes it while holding its lock, and so do B3 to B12. */
  checkBuyer(buyerId: string): Promise<void>;
}

/** The points at which the order of calls matters: a test may hold a call at each of them. */
export type Point =
  /** Has read the stock, has not written. */
  | 'read'
  /** Has counted the buyer's orders, has not written. */
  | 'counted'
  /** Has taken the unit, has not recorded the order. */
  | 'taken'
  /** Has written, has not committed. */
  | 'uncommitted'
  /** Another holder has the lock: is about to wait for it. */
  | 'waiting'
  /** Has written, has not released the lock. */
  | 'written'
  /** Has seen that the lock is its own, has not deleted it. */
  | 'compared';

export interface Steps {
  at(point: Point): Promise<void> | undefined;
}

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Resolves after this time, or when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** @returns a function that ends it */
  every(ms: number, task: () => Promise<void>): () => void;
}
