import type { Outcome, Purchase } from '../../../src/engine/contract.ts';
import { Pending } from '../../../src/engine/purchase/pending.ts';

export function aPurchase(spec: Partial<Purchase> = {}): Purchase {
  return { saleId: 'sale', buyerId: 'anna', quantity: 1, key: '', awaitCommit: true, ...spec };
}

/** A purchase on its way that keeps all that it is told: nothing yet, or one outcome. */
export type ToldPending = Pending & { readonly told: readonly Outcome[] };

export function aPending(spec: Partial<Purchase> = {}, deadline = Number.POSITIVE_INFINITY): ToldPending {
  const told: Outcome[] = [];
  const pending = new Pending(aPurchase(spec), deadline, (outcome) => told.push(outcome));
  return Object.assign(pending, { told });
}

export function codesOf(pendings: readonly ToldPending[]): string[] {
  return pendings.map(({ told }) => told.map((outcome) => outcome.code).join(' then ') || 'waits');
}
