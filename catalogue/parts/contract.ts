/**
 * What a way of selling stock is, so that all of them can be run side by side.
 *
 * Purpose: each strategy that this field teaches, right or wrong, behind one small interface; tests force each to fail
 * or to hold, and benches compare them.
 * Non-goals: to be of use in a shop. Nothing outside this folder, the tests and the benches imports it.
 *
 * Words are those of src/engine/contract.ts; a node here is one opened strategy, with connections of its own.
 */

/** How an attempt to buy one unit ended. That a store is gone is thrown. */
export type Outcome =
  | { readonly code: 'sold' }
  | { readonly code: 'sold_out' }
  /** The buyer has an order already. */
  | { readonly code: 'limit_reached' }
  /** Nothing was sold, though something may be left: asked again, it might work. */
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
  /** The orders of the sale, whichever node has sold them. */
  sold(): Promise<readonly SoldOrder[]>;
  /** Units left, as the strategy counts them. */
  left(): Promise<number>;
  /** Lets go of the connections, and of nothing else: a lock that is held stays held. */
  close(): Promise<void>;
}

export interface SaleSpec {
  readonly id: string;
  readonly stock: number;
  /** D1 to D3 split the stock into so many. */
  readonly segments: number;
  /** C4 splits the stock over so many nodes. */
  readonly nodes: number;
}

/** Where the stores are. A strategy needs those that its row names. */
export interface Stores {
  /** Put before every key, so that several runs can share one Redis. */
  readonly keyPrefix: string;
  readonly postgres?: string;
  readonly redis?: string;
  /** Redis servers that hold locks and nothing else: B9's primary, B10's quorum. */
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
   * The first node that opens a sale puts up its stock; the others find it. They are opened one after the other.
   * @throws what the stores throw if they can't be reached
   */
  open(stores: Stores, sale: SaleSpec, setting?: Setting): Promise<Strategy>;
}

/** One way of naming orders. */
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

/** What surrounds a strategy: a test puts in its own, to hold a call up at a point, to move time, to stall a check. */
export interface Setting {
  readonly steps: Steps;
  readonly clock: Clock;
  /** The shop's own check of a buyer, which may be slow: C1 makes it while holding its lock, and so do B3 to B12. */
  checkBuyer(buyerId: string): Promise<void>;
}

/** The places where the order of things decides: a call may be held up at each. */
export type Point =
  /** Knows the stock, has not written. */
  | 'read'
  /** Knows how many orders the buyer has, has not written. */
  | 'counted'
  /** Has taken the unit, has not recorded the order. */
  | 'taken'
  /** Has written, has not committed. */
  | 'uncommitted'
  /** Another holds the lock: is about to wait for it. */
  | 'waiting'
  /** Has written, and not let the lock go. */
  | 'written'
  /** Has seen that the lock is its own, has not deleted it. */
  | 'compared';

export interface Steps {
  at(point: Point): Promise<void> | undefined;
}

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Resolves after so long, or when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** @returns a function that ends it */
  every(ms: number, task: () => Promise<void>): () => void;
}
