/** Prints sales. */
import { isInOffers } from '../../operations/sale-list.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import { ORDERS, settingRows } from '../queue/setting-rows.ts';
import { columns, number, plural } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';

export const SALE_COLUMNS: readonly Column<SaleStatus>[] = [
  { head: 'sale', of: ({ id }) => id, isId: true },
  { head: 'state', of: stateOf },
  { head: 'stock', of: stockText, align: 'right' },
  {
    head: 'remaining',
    of: ({ remaining }) => (remaining === undefined ? 'not loaded' : number(remaining)),
    align: 'right',
  },
  { head: 'orders', of: ({ committedOrders }) => number(committedOrders), align: 'right', spare: 4 },
  { head: 'starts', of: ({ startsAt }) => startsAt, spare: 3 },
  { head: 'ends', of: (sale) => endText(sale) ?? '', spare: 1 },
  { head: 'title', of: ({ title }) => title, isText: true, spare: 2 },
];

/** @param commitment of the draw of its queue, if it is to be shown */
export function saleSheet(sale: SaleStatus, commitment?: string): string {
  const rows: [string, string | undefined][] = [
    ['sale', sale.id],
    ['title', sale.title],
    ['state', stateOf(sale)],
    ['stock', `${number(sale.stock)} in ${plural(sale.segments, 'segment')}`],
    ['added since', sale.movedUnits > 0 ? plural(sale.movedUnits, 'unit') : undefined],
    ['withdrawn since', sale.movedUnits < 0 ? plural(-sale.movedUnits, 'unit') : undefined],
    [
      'remaining',
      sale.remaining === undefined ? 'not loaded: the sale must be rebuilt first' : number(sale.remaining),
    ],
    ['committed', `${plural(sale.committedUnits, 'unit')} in ${plural(sale.committedOrders, 'order')}`],
    ['in offers', sale.offeredUnits ? `${number(sale.offeredUnits)} of these units` : undefined],
    ['waiting', sale.behindHead ? `${number(sale.behindHead)} at most` : undefined],
    ['to be erased', sale.waitingErasures ? plural(sale.waitingErasures, 'buyer') : undefined],
    ['limit per buyer', number(sale.perBuyerLimit)],
    ['purchase token', sale.requireToken ? 'required' : undefined],
    ...queueRows(sale),
    ['commitment', commitment],
    ['starts', sale.startsAt],
    ['ends', endText(sale)],
    ['pay within', sale.payWithinSeconds === undefined ? undefined : `${number(sale.payWithinSeconds)} s`],
    ['price', inMinor(sale.priceMinor, sale.currency)],
    ['face value', inMinor(sale.faceValueMinor, sale.currency)],
    ['currency', hasAmount(sale) ? undefined : sale.currency],
    ['shop', sale.shopId],
    ['metadata', Object.keys(sale.metadata).length === 0 ? undefined : JSON.stringify(sale.metadata)],
    ['archived', sale.archivedAt],
    ['generation', number(sale.generation)],
  ];
  return columns(rows.filter(([, value]) => value !== undefined && value !== ''));
}

function queueRows({ queue, ...settings }: SaleStatus): [string, string][] {
  if (queue === undefined || queue === 'off') return [];
  return [['queue', ORDERS[queue]], ...settingRows(settings)];
}

/** `undefined` if the sale was closed before the end of its window: nobody waits for that any more. */
function endText({ state, endsAt }: SaleStatus): string | undefined {
  const isOver = endsAt !== undefined && Date.parse(endsAt) <= Date.now();
  return state === 'closed' && !isOver ? undefined : (endsAt ?? 'open end');
}

/** The units that the sale began with, and those that operators added or withdrew: `100 + 20`. */
function stockText({ stock, movedUnits }: SaleStatus): string {
  if (movedUnits === 0) return number(stock);
  return `${number(stock)} ${movedUnits > 0 ? '+' : '-'} ${number(Math.abs(movedUnits))}`;
}

function phaseOf(
  { state, archivedAt, startsAt, endsAt }: SaleStatus,
  now: number,
): 'running' | 'not started' | 'ended' | 'closed' | 'archived' {
  if (archivedAt !== undefined) return 'archived';
  if (state === 'closed') return 'closed';
  if (endsAt !== undefined && Date.parse(endsAt) <= now) return 'ended';
  return Date.parse(startsAt) > now ? 'not started' : 'running';
}

/** The state, and what else prevents purchases: `open, sold out`, `open, in offers`, `paused, not started`. */
function stateOf(sale: SaleStatus): string {
  const phase = phaseOf(sale, Date.now());
  if (phase === 'closed' || phase === 'archived') return phase;
  if (phase !== 'running') return `${sale.state}, ${phase}`;
  if (isInOffers(sale)) return `${sale.state}, in offers`;
  return sale.soldOut ? `${sale.state}, sold out` : sale.state;
}

/** Amounts are shown with their currency. */
const hasAmount = ({ priceMinor, faceValueMinor }: SaleStatus): boolean =>
  priceMinor !== undefined || faceValueMinor !== undefined;

/** The amount in minor units, because how many of them make a whole depends on the currency. */
function inMinor(amount: number | undefined, currency: string | undefined): string | undefined {
  return amount === undefined
    ? undefined
    : `${plural(amount, 'minor unit')}${currency ? ` of ${currency}` : ''}`;
}
