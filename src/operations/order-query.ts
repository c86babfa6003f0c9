/** A query for orders as operators write it: in the address of a request, as flags, or as an object. */
import { z } from 'zod';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../engine/limits.ts';
import { isOrderId } from '../engine/order-id.ts';
import { NOTE_FIELDS } from '../engine/sale/order-note.ts';
import { urlQuery } from '../lib/url-query.ts';
import {
  checkedInput,
  isInOrder,
  MIXED_UP,
  PAGE_WORDS,
  type PageQuery,
  pageFields,
  pageLimit,
  parsePageQuery,
  queryTime,
} from './checked-input.ts';
import { ORDER_STATUSES } from './order.ts';
import { MAX_PAGE_ORDERS, type OrderFilter, type OrderQuery, type RefundQuery } from './order-list.ts';

const after = z
  .string()
  .refine(isOrderId, { error: 'must be an order id, such as `next` of the page before' });

const limit = pageLimit(1, MAX_PAGE_ORDERS);

const statuses = z
  .union([z.string().transform((text) => text.split(',')), z.array(z.string())], {
    error: 'must be statuses, separated by commas',
  })
  .pipe(z.array(z.enum(ORDER_STATUSES, { error: `must be among ${ORDER_STATUSES.join(', ')}` })).min(1));

const filter = {
  status: statuses.optional(),
  since: queryTime.optional(),
  until: queryTime.optional(),
  buyer: z
    .string()
    .regex(ID_PATTERN, { error: `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces` })
    .optional(),
  reference: NOTE_FIELDS.reference.optional(),
};

const query = z
  .strictObject({
    ...filter,
    after: after.optional(),
    limit: limit.optional(),
    order: z.enum(['newest', 'oldest'], { error: 'must be newest or oldest' }).optional(),
  })
  .refine(isInOrder, MIXED_UP);

const exportQuery = z
  .strictObject({
    ...filter,
    after: after.optional(),
    format: z.enum(['csv', 'ndjson'], { error: 'must be csv or ndjson' }).default('ndjson'),
  })
  .refine(isInOrder, MIXED_UP);

export type ExportFormat = z.output<typeof exportQuery>['format'];

export interface OrderExport extends OrderFilter {
  readonly format: ExportFormat;
  /** The export begins after this order id. */
  readonly after?: string | undefined;
}

/** @param input names with values; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parseOrderQuery(input: Readonly<Record<string, unknown>>): OrderQuery {
  const { buyer, ...rest } = checkedInput(query, input, PAGE_WORDS);
  return { ...rest, buyerId: buyer };
}

/** As `parseOrderQuery`. */
export function parseOrderExport(input: Readonly<Record<string, unknown>>): OrderExport {
  const { buyer, ...rest } = checkedInput(exportQuery, input, PAGE_WORDS);
  return { ...rest, buyerId: buyer };
}

/**
 * Parses a buyer's query for its own orders.
 * @param isCursor whether a text is a cursor of that list. @throws as `parseOrderQuery`
 */
export function parseOwnQuery(
  input: Readonly<Record<string, unknown>>,
  isCursor: (text: string) => boolean = isOrderId,
): PageQuery {
  return parsePageQuery(input, isCursor);
}

const refundsQuery = z.strictObject({ saleId: z.string().optional(), ...pageFields(isOrderId) });

/** Parses a query for the refunds that are due. Without a sale these are those of all sales. @throws as `parseOrderQuery` */
export function parseRefundsQuery(input: Readonly<Record<string, unknown>>): RefundQuery {
  return checkedInput(refundsQuery, input, PAGE_WORDS);
}

/** The query in the form of a URL: with its question mark, or `''` if it is empty. */
export function queryText({
  buyerId,
  reference,
  status,
  since,
  until,
  after,
  limit,
  order,
}: OrderQuery): string {
  const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  return urlQuery({
    after,
    limit,
    order,
    buyer: buyerId,
    reference,
    status: status?.join(),
    since: iso(since),
    until: iso(until),
  });
}
