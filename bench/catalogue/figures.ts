/** The figures of a row. Rates and latencies are those of the measured time; all other figures cover the whole run. */
import type { Safety } from '../../catalogue/parts/contract.ts';

/** A sale that does not run out, with a new buyer for every request: shows the cost of an order. */
export interface Selling {
  readonly ordersPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Percent of all requests. */
  readonly failedPercent: number;
  readonly redisCommandsPerOrder: number;
  readonly postgresStatementsPerOrder: number;
}

/** A sale that runs out, with buyers that come repeatedly. */
export interface Crowd {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failedPercent: number;
  readonly sold: number;
  readonly oversold: number;
  /** Units left although buyers were answered "sold out"; `null` if the time was over before the first such answer. */
  readonly undersold: number | null;
  /** Buyers with more than one order. */
  readonly buyersAboveLimit: number;
}

export interface RowFigures {
  readonly id: string;
  readonly title: string;
  /** The result of the catalogue's tests for the stock, and for the limit of one order per buyer. */
  readonly stock: Safety;
  readonly limit: Safety | 'not-checked';
  /** Whether units may stay unsold although buyers ask for them. */
  readonly undersells: boolean;
  readonly selling: Selling;
  readonly crowd: Crowd;
}

export interface NamingFigures {
  readonly id: string;
  readonly title: string;
  readonly idsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly redisCommandsPerId: number;
}

export interface Round {
  /** Requests/s of the clients alone, without a store: an upper limit for every row. */
  readonly clientsAlone: number;
  readonly rows: readonly RowFigures[];
  readonly naming: readonly NamingFigures[];
}
