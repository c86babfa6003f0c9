/** A sale in words. */
import type { SaleStatus } from '../../sync/operations.ts';
import { columns } from '../output.ts';

export function saleTable(sales: readonly SaleStatus[]): string {
  const rows = sales.map((sale) => [
    sale.id,
    stateOf(sale),
    sale.stock,
    sale.remaining ?? 'not loaded',
    sale.committedOrders,
    sale.startsAt,
    sale.endsAt ?? 'open end',
    sale.title,
  ]);
  return columns(rows, {
    head: ['sale', 'state', 'stock', 'remaining', 'orders', 'starts', 'ends', 'title'],
    align: ['left', 'left', 'right', 'right', 'right', 'left', 'left', 'left'],
  });
}

export function saleSheet(sale: SaleStatus): string {
  const rows: [string, string | number | undefined][] = [
    ['sale', sale.id],
    ['title', sale.title],
    ['state', stateOf(sale)],
    ['stock', `${sale.stock} in ${sale.segments} segments`],
    ['remaining', sale.remaining ?? 'not loaded: no node has sold it since its stock was lost'],
    ['committed', `${sale.committedUnits} units in ${sale.committedOrders} orders`],
    ['limit per buyer', sale.perBuyerLimit],
    ['starts', sale.startsAt],
    ['ends', sale.endsAt ?? 'open end'],
    ['pay within', sale.payWithinSeconds === undefined ? undefined : `${sale.payWithinSeconds} s`],
    ['price', inMinor(sale.priceMinor, sale.currency)],
    ['face value', inMinor(sale.faceValueMinor, sale.currency)],
    ['shop', sale.shopId],
    ['metadata', Object.keys(sale.metadata).length === 0 ? undefined : JSON.stringify(sale.metadata)],
    ['generation', sale.generation],
  ];
  return columns(rows.filter(([, value]) => value !== undefined && value !== ''));
}

function stateOf({ state, soldOut }: SaleStatus): string {
  return state === 'open' && soldOut ? 'open, sold out' : state;
}

/** Minor units as they are: how many of them make a whole depends on the currency. */
function inMinor(amount: number | undefined, currency: string | undefined): string | undefined {
  return amount === undefined ? undefined : `${amount} minor units${currency ? ` of ${currency}` : ''}`;
}
