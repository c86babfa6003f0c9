/** What operators do with sales. Done in place (SaleService) or through a node's ops port (cli/ops-client.ts). */
import type { SaleState } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import type { SaleJson } from '../engine/sale-json.ts';

export interface SaleStatus extends SaleJson {
  readonly state: SaleState;
  /** Units not yet taken, over all segments; `undefined` if the backend does not hold the sale now. */
  readonly remaining: number | undefined;
  readonly soldOut: boolean;
  readonly generation: number;
  /** Orders and units that are committed in Postgres and neither cancelled nor refunded. */
  readonly committedOrders: number;
  readonly committedUnits: number;
}

/** One side of an equation that must hold, term by term. */
export interface Identity {
  readonly name: string;
  readonly left: readonly Term[];
  readonly right: readonly Term[];
  /** Left minus right: 0 where it holds. */
  readonly difference: number;
}

export interface Term {
  readonly name: string;
  readonly units: number;
}

/** What `verify` found of one sale. */
export interface VerifyReport {
  readonly saleId: string;
  readonly ok: boolean;
  readonly identities: readonly Identity[];
  /** Things that must not be: buyers above their limit, broken log chains, missing segments. Empty if `ok`. */
  readonly findings: readonly string[];
  /** Orders that the guard of the truth rejected, which is no fault of the identity but never normal. */
  readonly rejectedOrders: number;
  readonly committedOrders: number;
  readonly distinctBuyers: number;
}

export interface SaleOperations {
  /** @throws InvalidInput, SaleExists */
  create(input: unknown): Promise<SaleStatus>;
  list(): Promise<SaleStatus[]>;
  /** @throws UnknownSale */
  show(saleId: string): Promise<SaleStatus>;
  /** @throws UnknownSale, WrongState */
  pause(saleId: string): Promise<SaleStatus>;
  resume(saleId: string): Promise<SaleStatus>;
  /** Final. */
  close(saleId: string): Promise<SaleStatus>;
  /** @throws UnknownSale */
  verify(saleId: string): Promise<VerifyReport>;
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

export class WrongState extends StockadeError {
  readonly state: SaleState;

  constructor(saleId: string, state: SaleState, wanted: string) {
    super('wrong_state', `sale ${saleId} is ${state}; it can't be ${wanted}`);
    this.state = state;
  }
}
