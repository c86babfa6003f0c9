/** A sale as operators see it: its settings, and how far it has sold. */
import type { SaleState } from '../engine/contract.ts';
import type { SaleJson } from '../engine/sale/sale-json.ts';

export interface SaleStatus extends SaleJson {
  readonly state: SaleState;
  /** When the sale was archived, ISO 8601; `undefined`: it is not. */
  readonly archivedAt?: string | undefined;
  /** Units left, of an archived sale in Postgres, of others in all segments; `undefined` if the backend lacks the sale now. */
  readonly remaining: number | undefined;
  readonly soldOut: boolean;
  readonly generation: number;
  /** Units that operators have added since the sale's creation, minus units that they have withdrawn. */
  readonly movedUnits: number;
  /** Orders and units that are committed in Postgres and neither cancelled nor refunded. */
  readonly committedOrders: number;
  readonly committedUnits: number;
}
