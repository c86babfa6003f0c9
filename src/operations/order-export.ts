/**
 * All orders of a sale as text, the oldest first. Orders are read page by page, and the next page is read while one is
 * written, so a slow reader holds no connection to Postgres, and two pages in memory.
 *
 * The last line of NDJSON is `{"end":true,"orders":n}`: without it, the export is not complete. CSV has no such line; a
 * broken export over HTTP ends without the end of the answer. It can be continued behind the order of its last line.
 */
import { monotonicMs } from '../lib/monotonic.ts';
import type { Order } from './order.ts';
import { MAX_PAGE_ORDERS, type OrderFilter, type OrderPage, type OrderQuery } from './order-list.ts';
import type { ExportFormat } from './order-query.ts';

export interface ExportPiece {
  /** Lines. */
  readonly text: string;
  /** Orders in it. */
  readonly orders: number;
  /** The last order so far: the export can be continued behind it. */
  readonly last: string | undefined;
}

/** If a filter finds nothing for this time, NDJSON gets an empty line, for clients and proxies that close a silent connection. */
const SILENCE_MS = 3_000;

/**
 * @param list reads a page of the sale. @throws what it throws
 * @param from the filter; with `after`, a CSV has no line of names: it continues one
 */
export async function* exportOrders(
  list: (query: OrderQuery) => Promise<OrderPage>,
  from: OrderFilter & { readonly after?: string | undefined },
  format: ExportFormat,
): AsyncGenerator<ExportPiece> {
  let [last, total, spokeAtMs] = [from.after, 0, monotonicMs()];
  const piece = (text: string, orders = 0): ExportPiece => ({ text, orders, last });
  if (format === 'csv' && from.after === undefined) yield piece(CSV_HEAD);
  for await (const { orders } of pagesOf(list, from)) {
    if (orders.length > 0) {
      last = orders.at(-1)!.orderId;
      total += orders.length;
      yield piece(orders.map(format === 'csv' ? csvLine : jsonLine).join(''), orders.length);
    } else {
      if (monotonicMs() - spokeAtMs <= SILENCE_MS) continue;
      // Also a CSV, in which no line may be empty: the reader may have gone, and is noticed when it is sent something.
      yield piece(format === 'ndjson' ? '\n' : '');
    }
    spokeAtMs = monotonicMs();
  }
  if (format === 'ndjson') yield piece(`${JSON.stringify({ end: true, orders: total })}\n`);
}

/** The text alone. */
export async function* textOf(pieces: AsyncIterable<ExportPiece>): AsyncGenerator<string> {
  for await (const { text } of pieces) yield text;
}

/** The pages of an export. The next page is read while one is used. */
export async function* pagesOf(
  list: (query: OrderQuery) => Promise<OrderPage>,
  { after, ...filter }: OrderFilter & { readonly after?: string | undefined },
): AsyncGenerator<OrderPage> {
  const read = (from: string | undefined) => {
    const page = list({ ...filter, after: from, order: 'oldest', limit: MAX_PAGE_ORDERS });
    // The reader may have gone when it fails.
    page.catch(() => {});
    return page;
  };
  for (let page = await read(after); ; ) {
    const next = page.next === undefined ? undefined : read(page.next);
    yield page;
    if (!next) return;
    page = await next;
  }
}

const COLUMNS = [
  'orderId',
  'saleId',
  'buyerId',
  'quantity',
  'status',
  'payType',
  'committedAt',
  'expiresAt',
  'paidAt',
  'redeemedAt',
  'cancelledAt',
  'expiredAt',
  'refundedAt',
  'refundDue',
  'retakenBy',
  'reference',
  'metadata',
] as const satisfies readonly (keyof Order)[];

const CSV_HEAD = `${COLUMNS.join()}\r\n`;

const jsonLine = (order: Order) => `${JSON.stringify(order)}\n`;

const csvLine = (order: Order) => `${COLUMNS.map((name) => csvCell(order[name])).join()}\r\n`;

/**
 * Where a spreadsheet could take what follows for a formula: at the beginning, and behind a semicolon. In many countries a
 * spreadsheet splits the lines of a CSV at semicolons, whatever is quoted between commas.
 */
const FORMULA = /(^|;)(?=[\s"]*[=+\-@＝＋－＠]|[\t\r\n])/g;
const TO_BE_QUOTED = /[",\r\n]/;

/**
 * RFC 4180. A spreadsheet would execute what looks like a formula, and a buyer chooses its id: a text gets an apostrophe there.
 * In JSON, the semicolon is written as an escape, which means the same. By hand, because this is all that a library would do here.
 */
export function csvCell(value: unknown): string {
  if (value === undefined) return '';
  const harmless =
    typeof value === 'string'
      ? value.replace(FORMULA, "$1'")
      : JSON.stringify(value).replace(FORMULA, (_, before: string) => before && '\\u003b');
  return TO_BE_QUOTED.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
