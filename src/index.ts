/** The entry for programs that embed a shop. `./locks` and `./client` are separate entries, which load nothing of this one. */
export { ConfigError, type ConfigFault } from './config/load-config.ts';
export { open } from './embed/open.ts';
export type { Logger, LogLine, OpenOptions, OrderEventHandler } from './embed/options.ts';
export type {
  ChangeAuthor,
  NewErasure,
  NewOrderExport,
  NewOrderQuery,
  NewPurchase,
  NewSale,
  NewSaleChange,
  PurchaseOutcome,
  Shop,
  ShopBuyers,
  ShopEvents,
  ShopOrders,
  ShopSales,
} from './embed/shop.ts';
export type {
  AcceptanceOutcome,
  BuyersPlace,
  LeftReason,
  LimitReached,
  NewAcceptance,
  NewPlace,
  Offer,
  PlaceHolder,
  PlaceOutcome,
  ShopPlaces,
} from './embed/shop-places.ts';
export { InvalidInput, StockadeError } from './engine/errors.ts';
export type { OrderEvent } from './events/order-event.ts';
export type { Erasure, ErasureReport } from './operations/buyer-operations.ts';
export type { PageQuery } from './operations/checked-input.ts';
export { type Deletion, OrdersDiffer, SaleDeleting } from './operations/delete-operations.ts';
export { type DeadLetter, type DeadLetters, UnknownDeadLetter } from './operations/event-operations.ts';
export { MetRebuild, OperationTimedOut, StoresAway } from './operations/operation-faults.ts';
export type { OrderPage } from './operations/order-list.ts';
export {
  type NotedChange,
  type Order,
  type OrderEdit,
  type OrderOutcome,
  type OrderStatus,
  PAY_TYPES,
  type PayType,
} from './operations/order-operations.ts';
export type { RebalanceOptions, RebalanceReport } from './operations/rebalance-operations.ts';
export type { Recovery, SegmentLosses } from './operations/recover-operations.ts';
export type { SalePage, SaleQuery } from './operations/sale-list.ts';
export {
  InsufficientStock,
  type LedgerEntry,
  SaleArchived,
  SaleExists,
  type SaleStatus,
  UnknownSale,
  type VerifyOptions,
  type VerifyReport,
  WrongState,
} from './operations/sale-operations.ts';
export { ForeignStores } from './shop/foreign-stores.ts';
