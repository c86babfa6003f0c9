/** The HTTP status of each outcome of a purchase, as a node answers it. */
import type { PurchaseOutcome } from '@stockade-engine/stockade';

export const STATUSES: Readonly<Record<PurchaseOutcome['code'], number>> = {
  committed: 201,
  // The order will be stored soon.
  accepted: 202,
  invalid_request: 400,
  not_started: 403,
  ended: 403,
  paused: 403,
  refused: 403,
  offer_required: 403,
  unknown_sale: 404,
  sold_out: 409,
  insufficient_stock: 409,
  limit_reached: 409,
  idempotency_mismatch: 422,
  // Try again.
  busy: 503,
  unavailable: 503,
  // There may be an order: repeat the purchase with the same key.
  unknown: 503,
};

export const statusOf = ({ code }: PurchaseOutcome): number => STATUSES[code];
