import type { Outcome, Purchase } from '../../../src/engine/contract.ts';
import { LivePurchase } from '../../../src/engine/purchase/purchase.ts';

export function aPurchase(spec: Partial<Purchase> = {}): Purchase {
  return { saleId: 'sale', buyerId: 'anna', quantity: 1, key: '', awaitCommit: true, ...spec };
}

/** A purchase under way that records its outcomes: none yet, or one. */
export type ToldPurchase = LivePurchase & { readonly told: readonly Outcome[] };

export function aLivePurchase(
  spec: Partial<Purchase> = {},
  deadline = Number.POSITIVE_INFINITY,
): ToldPurchase {
  const told: Outcome[] = [];
  const ends = { ended: (purchase: LivePurchase, outcome: Outcome) => purchase.done(outcome) };
  const purchase = new LivePurchase(aPurchase(spec), deadline, ends, (outcome) => told.push(outcome));
  return Object.assign(purchase, { told });
}

export function codesOf(purchases: readonly { readonly told: readonly Outcome[] }[]): string[] {
  return purchases.map(({ told }) => told.map((outcome) => outcome.code).join(' then ') || 'waits');
}
