/** Typed clients of both ports, for Node and browsers. Their types are made from docs/openapi.json and docs/openapi-ops.json. */
export * from './buyer-client.ts';
export type { Order, Place, PublicSale } from './generated/buyers-api.ts';
export type {
  Deletion,
  LedgerEntry,
  NewSale,
  Place as QueuePlace,
  QueueChange,
  QueueStatus,
  Recovery,
  Sale,
  SaleChange,
  VerifyReport,
} from './generated/operators-api.ts';
export {
  OperatorClient,
  type OperatorOptions,
  type OrderQuery,
  type PageOptions,
  type PlaceQuery,
  type SaleQuery,
} from './operator-client.ts';
export type { PlaceUpdate, SaleUpdate } from './sale-stream.ts';
export { type CallOptions, type ClientOptions, type HeaderSource, UnexpectedAnswer } from './transport.ts';
