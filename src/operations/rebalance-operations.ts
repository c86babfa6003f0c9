/** Requests and reports of rebalancing a sale's segments (sales/rebalance.ts). */
import type { Move } from '../engine/contract.ts';

export interface RebalanceReport {
  readonly saleId: string;
  /** Nothing was moved: `moves` and `after` show the result if no purchases came meanwhile. */
  readonly dryRun: boolean;
  /** Units left before the moves, by segment. */
  readonly before: readonly number[];
  /** Units left after the moves, by segment. */
  readonly after: readonly number[];
  readonly moves: readonly Move[];
}

export interface RebalanceOptions {
  readonly dryRun: boolean;
}

export interface RebalanceOperations {
  /** @throws UnknownSale */
  rebalance(saleId: string, options: RebalanceOptions): Promise<RebalanceReport>;
}
