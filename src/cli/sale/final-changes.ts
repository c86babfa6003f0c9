/** Changes of a sale that no other change undoes: what each is asked about, and what is said before. */
import type { SaleChange } from '../../engine/sale/sale-change.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import { number, plural } from '../terminal/output.ts';

export interface FinalChange {
  /** What is done to the sale: "close". */
  readonly verb: string;
  /** What will happen; empty if nothing will, or it will be refused. */
  tell(sale: SaleStatus): readonly string[];
}

/** The change as one that must be confirmed; `undefined` if another change undoes it. */
export function finalChange(change: SaleChange): FinalChange | undefined {
  switch (change.action) {
    case 'close':
      return { verb: 'close', tell: toldOfClosing };
    case 'archive':
      return { verb: 'archive', tell: toldOfArchiving };
    case 'edit': {
      const { perBuyerLimit } = change;
      if (perBuyerLimit === undefined) return undefined;
      return { verb: 'raise the limit per buyer of', tell: (sale) => toldOfLimit(sale, perBuyerLimit) };
    }
    default:
      return undefined;
  }
}

function toldOfClosing(sale: SaleStatus): string[] {
  const { state, remaining, committedOrders, committedUnits, waitingErasures = 0 } = sale;
  if (state === 'closed') return [];
  return [
    remaining === undefined
      ? 'The units that are left are not sold any more. How many they are is not known now.'
      : `Left: ${plural(remaining, 'unit')}, not sold any more. Buyers are told that the sale has ended.`,
    `Sold: ${plural(committedUnits, 'unit')} in ${plural(committedOrders, 'order')}. Orders stay as they are, and can be paid, cancelled and refunded.`,
    ...(waitingErasures > 0
      ? [`To be erased: ${plural(waitingErasures, 'buyer')}. That is done once the sale is closed.`]
      : []),
    'A closed sale never sells again. To stop a sale for a while, pause it.',
  ];
}

function toldOfArchiving({ state, archivedAt, segments, committedOrders }: SaleStatus): string[] {
  if (state !== 'closed' || archivedAt !== undefined) return [];
  return [
    `${plural(segments, 'segment')} and the records of the buyers leave Redis.`,
    `${plural(committedOrders, 'order')} and the ledger stay in Postgres. To buyers, the sale does not exist any more.`,
    'An archived sale is never opened again, and lists leave it out.',
  ];
}

function toldOfLimit({ state, perBuyerLimit }: SaleStatus, wanted: number): string[] {
  if (state === 'closed' || wanted <= perBuyerLimit) return [];
  return [
    `A buyer may hold ${number(perBuyerLimit)} now, ${number(wanted)} after.`,
    'The limit is never lowered again, because buyers may hold as many units by then.',
  ];
}
