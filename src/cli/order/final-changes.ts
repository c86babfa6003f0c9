/** Changes of an order that no other change undoes: what is said before. */
import type { Order, OrderChange } from '../../operations/order-operations.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import { plural } from '../terminal/output.ts';

export type FinalKind = Exclude<OrderChange['kind'], 'pay'>;

/** A payment is not final: a refund takes it back. */
export function isFinal(kind: OrderChange['kind']): kind is FinalKind {
  return kind !== 'pay';
}

type SaleOfOrder = Pick<SaleStatus, 'state' | 'archivedAt'>;

/** Empty if the order's status does not allow the change, or the change was made before. */
export function toldOf(kind: FinalKind, order: Order, sale: SaleOfOrder): readonly string[] {
  const { status, refundDue, buyerId, saleId, quantity } = order;
  const isPossible = status === (kind === 'cancel' ? 'unpaid' : 'paid') || (kind === 'refund' && refundDue);
  if (!isPossible) return [];
  const units = plural(quantity, 'unit');
  return [`Order of ${buyerId} in ${saleId}: ${units}, ${status}.`, ...EFFECTS[kind](units, order, sale)];
}

const EFFECTS: Readonly<Record<FinalKind, (units: string, order: Order, sale: SaleOfOrder) => string[]>> = {
  cancel: (units, _, sale) => [`${freeText(units, sale)} The buyer can't pay this order any more.`],
  redeem: () => ["A redeemed order can't be cancelled or refunded any more."],
  refund: (units, { refundDue }, sale) => [
    refundDue ? `The ${units} went back when the order expired.` : freeText(units, sale),
    'Stockade moves no money: this notes that it was paid back.',
  ],
};

/** Where the units go. */
function freeText(units: string, { state, archivedAt }: SaleOfOrder): string {
  if (state !== 'closed') return `For sale again: ${units}.`;
  const phase = archivedAt === undefined ? state : 'archived';
  return `Going back to the sale: ${units}. It is ${phase}, so it sells nothing more.`;
}
