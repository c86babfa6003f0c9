/**
 * The operators' work on sales. SaleService does it on the stores, OpsClient (cli/command/ops-client.ts) through a node's ops
 * port.
 */

import type { SaleState } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import type { NotedAction, SaleChange } from '../engine/sale/sale-change.ts';
import { counted } from '../lib/counted.ts';
import type { PageQuery } from './checked-input.ts';
import type { DeleteOperations } from './delete-operations.ts';
import type { RebalanceOperations } from './rebalance-operations.ts';
import type { RecoverOperations } from './recover-operations.ts';
import type { SalePage, SaleQuery, SaleStatus } from './sale-list.ts';
import type { VerifyOptions, VerifyReport } from './verify-report.ts';

export type { SaleStatus } from './sale-list.ts';
export type {
  Cause,
  Difference,
  Identity,
  Repair,
  Term,
  VerifyOptions,
  VerifyReport,
} from './verify-report.ts';

/** One entry of a sale's ledger: its creation, a change that an operator has made, or the erasure of a buyer. */
export interface LedgerEntry {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly action: 'create' | NotedAction;
  /** Units added to the initial stock; 0 for the creation. */
  readonly units: number;
  /** The operator; `undefined`: unknown, for a sale from a version that stored no creations. */
  readonly actor: string | undefined;
  readonly reason: string;
  /** Values before and after; for the creation, the initial settings. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** Whether the backend has applied it. */
  readonly applied: boolean;
}

export interface LedgerPage {
  /** The creation, then the changes, the oldest first. */
  readonly ledger: readonly LedgerEntry[];
  /** The next page is after this id. Missing: there is none. */
  readonly next?: string | undefined;
}

export interface SaleOperations extends RebalanceOperations, RecoverOperations, DeleteOperations {
  /** @param input the sale in JSON, with an optional `reason`. @throws InvalidInput, SaleExists, SaleDeleting */
  create(input: unknown, actor: string): Promise<SaleStatus>;
  /** A page, the newest first. */
  list(query?: SaleQuery): Promise<SalePage>;
  /** @throws UnknownSale */
  show(saleId: string): Promise<SaleStatus>;
  /**
   * A change to the present value does nothing. @throws UnknownSale, WrongState, SaleArchived, InvalidInput,
   * InsufficientStock
   */
  change(saleId: string, change: SaleChange, author: Author): Promise<SaleStatus>;
  /** A page, by default of 1,000 entries. @throws UnknownSale */
  ledger(saleId: string, query?: PageQuery): Promise<LedgerPage>;
  /** @throws UnknownSale */
  verify(saleId: string, options?: VerifyOptions): Promise<VerifyReport>;
}

export class UnknownSale extends StockadeError {
  readonly saleId: string;

  constructor(saleId: string) {
    super('unknown_sale', `there is no sale ${saleId}`);
    this.saleId = saleId;
  }
}

export class SaleExists extends StockadeError {
  constructor(saleId: string) {
    super('sale_exists', `there is a sale ${saleId} already; choose another id, or show it`);
  }
}

/** Fewer units are unsold than requested for the withdrawal. Nothing was changed. */
export class InsufficientStock extends StockadeError {
  readonly remaining: number;

  constructor(saleId: string, wanted: number, remaining: number) {
    super(
      'insufficient_stock',
      `sale ${saleId} has ${counted(remaining, 'unsold unit')}, so ${wanted} can't be withdrawn`,
    );
    this.remaining = remaining;
  }
}

/** The sale is in Postgres alone, for good. Nothing was changed. */
export class SaleArchived extends StockadeError {
  constructor(saleId: string) {
    super(
      'archived',
      `sale ${saleId} is archived: its orders can be listed and changed, but nothing can be done with its stock; create a new sale`,
    );
  }
}

export class WrongState extends StockadeError {
  readonly state: SaleState;

  constructor(saleId: string, state: SaleState, wanted: string) {
    super('wrong_state', `sale ${saleId} is ${state}; it can't be ${wanted}`);
    this.state = state;
  }
}
