/** What operators do with sales. Done in place (SaleService) or through a node's ops port (cli/command/ops-client.ts). */

import type { SaleState } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import type { SaleAction, SaleChange } from '../engine/sale/sale-change.ts';
import type { SaleJson } from '../engine/sale/sale-json.ts';
import type { RebalanceOperations } from './rebalance-operations.ts';
import type { RecoverOperations } from './recover-operations.ts';
import type { VerifyOptions, VerifyReport } from './verify-report.ts';

export type {
  Cause,
  Difference,
  Identity,
  Repair,
  Term,
  VerifyOptions,
  VerifyReport,
} from './verify-report.ts';

export interface SaleStatus extends SaleJson {
  readonly state: SaleState;
  /** Units not yet taken, over all segments; `undefined` if the backend does not hold the sale now. */
  readonly remaining: number | undefined;
  readonly soldOut: boolean;
  readonly generation: number;
  /** Units that operators have added since the sale began, less those that they have withdrawn. */
  readonly movedUnits: number;
  /** Orders and units that are committed in Postgres and neither cancelled nor refunded. */
  readonly committedOrders: number;
  readonly committedUnits: number;
}

/** A sale's creation, or one change that an operator has made to it. */
export interface LedgerEntry {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly action: 'create' | SaleAction;
  /** What it added to the stock that the sale began with: a creation adds nothing. */
  readonly units: number;
  /** Who made it; `undefined`: not known, of a sale from before creations were noted. */
  readonly actor: string | undefined;
  readonly reason: string;
  /** Values before and after; of a creation, what the sale began with. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** Whether the stock that is sold from has followed. */
  readonly applied: boolean;
}

export interface SaleOperations extends RebalanceOperations, RecoverOperations {
  /** @param input the sale in JSON, and a `reason` if there is one. @throws InvalidInput, SaleExists */
  create(input: unknown, actor: string): Promise<SaleStatus>;
  list(): Promise<SaleStatus[]>;
  /** @throws UnknownSale */
  show(saleId: string): Promise<SaleStatus>;
  /** What is so already is no change. @throws UnknownSale, WrongState, InvalidInput, InsufficientStock */
  change(saleId: string, change: SaleChange, author: Author): Promise<SaleStatus>;
  /** The sale's creation, then all changes so far, the newest last. @throws UnknownSale */
  ledger(saleId: string): Promise<LedgerEntry[]>;
  /** @throws UnknownSale */
  verify(saleId: string, options?: VerifyOptions): Promise<VerifyReport>;
}

export class UnknownSale extends StockadeError {
  constructor(saleId: string) {
    super('unknown_sale', `there is no sale ${saleId}`);
  }
}

export class SaleExists extends StockadeError {
  constructor(saleId: string) {
    super('sale_exists', `there is a sale ${saleId} already; choose another id, or show it`);
  }
}

/** Fewer units are unsold than were to be withdrawn. Nothing was changed. */
export class InsufficientStock extends StockadeError {
  readonly remaining: number;

  constructor(saleId: string, wanted: number, remaining: number) {
    super('insufficient_stock', `sale ${saleId} has ${remaining} units unsold; ${wanted} can't be withdrawn`);
    this.remaining = remaining;
  }
}

export class WrongState extends StockadeError {
  readonly state: SaleState;

  constructor(saleId: string, state: SaleState, wanted: string) {
    super('wrong_state', `sale ${saleId} is ${state}; it can't be ${wanted}`);
    this.state = state;
  }
}
