/** What the rehearsal tells a thread of its crowd, and what it hears from it. */
import type { BuyerTokens } from '../../command/buyer-token.ts';
import type { Crowding } from './arrivals.ts';

export interface CrowdOrders {
  readonly urls: readonly string[];
  /** Those of nodes that the rehearsal kills: what they refuse is sent to another node, as a gateway does. */
  readonly killed: readonly string[];
  readonly saleId: string;
  readonly crowding: Crowding;
  /** Different buyers of the whole crowd. */
  readonly buyers: number;
  /** Signs the buyers' tokens (HS256); missing: the header `X-Buyer-Id` names them. */
  readonly token?: BuyerTokens;
  /** This thread sends request `part`, `part + parts`, … */
  readonly part: number;
  readonly parts: number;
  readonly seed: number;
  /** When the crowd begins, by `monotonicMs`: the wall clock may step. */
  readonly startAtMs: number;
}

/** The requests that were due in one second of the crowd. Each is counted where it was due, whenever it was answered. */
export interface CrowdSecond {
  /** Requests that were due. */
  due: number;
  /** How they ended, by code, after all repetitions; `no_answer`: they never got a definite one. */
  ended: Record<string, number>;
  /** Answers after which the buyer asked again, by code: see `OPEN_CODES`. */
  repeated: Record<string, number>;
  /** From when they were due to their definite answer, in milliseconds. */
  latencies: number[];
  /** How late the crowd itself was with sending the latest of them, in milliseconds. */
  lateMs: number;
}

/** An answer that names an order. */
export interface ToldOrder {
  readonly orderId: string;
  readonly buyerId: string;
  readonly committed: boolean;
}

export interface CrowdResult {
  readonly seconds: readonly CrowdSecond[];
  readonly told: readonly ToldOrder[];
  /** Buyers with a request that never got a definite answer: it may have been executed. */
  readonly unanswered: readonly string[];
  /** Buyers that were answered `limit_reached`. */
  readonly limited: readonly string[];
  /** Different buyers that asked. */
  readonly buyersAsked: readonly string[];
}

export interface CrowdProgress {
  readonly sent: number;
  readonly ended: number;
  readonly orders: number;
}

export type CrowdMessage =
  | { readonly kind: 'progress'; readonly progress: CrowdProgress }
  | { readonly kind: 'done'; readonly result: CrowdResult };

export const NO_ANSWER = 'no_answer';
/** Codes that leave the purchase open: the buyer asks again with the same key. `broken` stands for a connection or a gateway. */
const OPEN_CODES: readonly string[] = ['busy', 'unknown', 'unavailable', 'internal', 'broken'];
/** Codes that tell what has become of the purchase, also of an earlier request for it. */
const SETTLED_CODES: readonly string[] = [
  'committed',
  'accepted',
  'sold_out',
  'limit_reached',
  'insufficient_stock',
  'not_started',
  'paused',
  'ended',
];

export const isOpen = (code: string): boolean => OPEN_CODES.includes(code);
export const isSettled = (code: string): boolean => SETTLED_CODES.includes(code);

export function emptySecond(): CrowdSecond {
  return { due: 0, ended: {}, repeated: {}, latencies: [], lateMs: 0 };
}

export function add(counts: Record<string, number>, code: string, times = 1): void {
  counts[code] = (counts[code] ?? 0) + times;
}

/** The results of all threads as one. */
export function together(results: readonly CrowdResult[]): CrowdResult {
  const seconds: CrowdSecond[] = [];
  for (const result of results) {
    for (const [at, second] of result.seconds.entries()) {
      seconds[at] ??= emptySecond();
      const sum = seconds[at];
      sum.due += second.due;
      sum.lateMs = Math.max(sum.lateMs, second.lateMs);
      for (const latency of second.latencies) sum.latencies.push(latency);
      for (const [code, times] of Object.entries(second.ended)) add(sum.ended, code, times);
      for (const [code, times] of Object.entries(second.repeated)) add(sum.repeated, code, times);
    }
  }
  return {
    seconds,
    told: results.flatMap(({ told }) => told),
    unanswered: [...new Set(results.flatMap(({ unanswered }) => unanswered))],
    limited: [...new Set(results.flatMap(({ limited }) => limited))],
    buyersAsked: [...new Set(results.flatMap(({ buyersAsked }) => buyersAsked))],
  };
}
