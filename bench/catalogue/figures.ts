/** What is measured of a row. Rates and latencies are of the time that counts, all else of everything that was done. */
import type { Safety } from '../../catalogue/parts/contract.ts';

/** A sale that does not run out, and every request by a new buyer: what an order costs. */
export interface Selling {
  readonly ordersPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all requests, 0 to 100. */
  readonly failedPercent: number;
  readonly redisCommandsPerOrder: number;
  readonly postgresStatementsPerOrder: number;
}

/** A sale that runs out, with buyers who come again and again. */
export interface Crowd {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failedPercent: number;
  readonly sold: number;
  readonly oversold: number;
  /** Units that were not sold though buyers were told "sold out"; `null` if the time was over before anybody was. */
  readonly undersold: number | null;
  /** Buyers with more than one order. */
  readonly buyersAboveLimit: number;
}

export interface RowFigures {
  readonly id: string;
  readonly title: string;
  /** What the catalogue's tests show of the stock, and of one order per buyer. */
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
  /** Requests/s of the clients with nothing behind them: no row can be faster here. */
  readonly clientsAlone: number;
  readonly rows: readonly RowFigures[];
  readonly naming: readonly NamingFigures[];
}
