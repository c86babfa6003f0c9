import type { SaleRecord } from '../../engine/contract.ts';
import type { LimitReached } from '../held-units.ts';

export type JoinRefusal = EarlyRefusal | LimitReached | { readonly code: 'queue_full' };

/** Told without I/O. */
type EarlyRefusal =
  | { readonly code: 'no_queue' }
  | { readonly code: 'invalid_request'; readonly detail: string }
  /** `endedAt`: in milliseconds since the Unix epoch; absent if the sale was closed without an end. */
  | { readonly code: 'ended'; readonly endedAt?: number };

/** Why no buyer may take a place for this number of units, as far as that can be told without I/O. */
export function joinRefusal({ sale, state }: SaleRecord, quantity: number): EarlyRefusal | undefined {
  if (!sale.queue) return { code: 'no_queue' };
  if (!Number.isSafeInteger(quantity) || quantity < 1 || quantity > sale.perBuyerLimit)
    return {
      code: 'invalid_request',
      detail: `quantity must be a whole number from 1 to ${sale.perBuyerLimit}`,
    };
  const { endsAt } = sale;
  if (state !== 'closed' && (endsAt === undefined || Date.now() < endsAt)) return undefined;
  return { code: 'ended', ...(endsAt !== undefined && { endedAt: endsAt }) };
}
