/** Evening out the segments of a sale (sales/rebalance.ts): what operators ask, and what they are told of it. */
import type { Move } from '../engine/contract.ts';

export interface RebalanceReport {
  readonly saleId: string;
  /** Nothing was moved: `moves` and `after` are what would be if nobody bought meanwhile. */
  readonly dryRun: boolean;
  /** Units left, by segment. */
  readonly before: readonly number[];
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
