/** A query for orders as operators write it: in the address of a request, as flags, or as an object. */
import { z } from 'zod';
import { InvalidInput } from '../engine/errors.ts';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../engine/limits.ts';
import { isOrderId } from '../engine/order-id.ts';
import { time } from '../engine/sale/sale-json.ts';
import { ORDER_STATUSES } from './order.ts';
import { MAX_PAGE_ORDERS, type OrderFilter, type OrderQuery } from './order-list.ts';

const LIMIT = `must be a whole number from 1 to ${MAX_PAGE_ORDERS}`;

const after = z
  .string()
  .refine(isOrderId, { error: 'must be an order id, such as `next` of the page before' });

const limit = z
  .union(
    [
      z.int(),
      z
        .string()
        .regex(/^\d{1,9}$/)
        .transform(Number),
    ],
    { error: LIMIT },
  )
  .refine((value) => value >= 1 && value <= MAX_PAGE_ORDERS, { error: LIMIT });

const statuses = z
  .union([z.string().transform((text) => text.split(',')), z.array(z.string())], {
    error: 'must be statuses, separated by commas',
  })
  .pipe(z.array(z.enum(ORDER_STATUSES, { error: `must be among ${ORDER_STATUSES.join(', ')}` })).min(1));

const filter = {
  status: statuses.optional(),
  since: time.optional(),
  until: time.optional(),
  buyer: z
    .string()
    .regex(ID_PATTERN, { error: `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces` })
    .optional(),
};

const query = z.strictObject({
  ...filter,
  after: after.optional(),
  limit: limit.optional(),
  order: z.enum(['newest', 'oldest'], { error: 'must be newest or oldest' }).optional(),
});

const exportQuery = z.strictObject({
  ...filter,
  after: after.optional(),
  format: z.enum(['csv', 'ndjson'], { error: 'must be csv or ndjson' }).default('ndjson'),
});

export type ExportFormat = z.output<typeof exportQuery>['format'];

export interface OrderExport extends OrderFilter {
  readonly format: ExportFormat;
  /** The export begins after this order id. */
  readonly after: string | undefined;
}

/** @param input names with values; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parseOrderQuery(input: Readonly<Record<string, unknown>>): OrderQuery {
  const { buyer, ...rest } = checked(query, input);
  return { ...rest, buyerId: buyer };
}

/** As `parseOrderQuery`. */
export function parseOrderExport(input: Readonly<Record<string, unknown>>): OrderExport {
  const { buyer, after, ...rest } = checked(exportQuery, input);
  return { ...rest, after, buyerId: buyer };
}

/**
 * Parses a buyer's query for its own orders.
 * @param isCursor whether a text is a cursor of that list. @throws as `parseOrderQuery`
 */
export function parseOwnQuery(
  input: Readonly<Record<string, unknown>>,
  isCursor: (text: string) => boolean = isOrderId,
): Pick<OrderQuery, 'after' | 'limit'> {
  const cursor = z.string().refine(isCursor, { error: 'must be `next` of the page before' });
  return checked(z.strictObject({ after: cursor.optional(), limit: limit.optional() }), input);
}

/** Splits the query of a URL into names and values, for the functions above. @throws InvalidInput for a repeated name */
export function queryValues(text: string): Readonly<Record<string, string>> {
  const pairs = [...new URLSearchParams(text)];
  const twice = pairs.find(([name], at) => pairs.findIndex((pair) => pair[0] === name) < at);
  if (twice) throw invalid([{ field: twice[0], problem: 'is given twice' }]);
  return Object.fromEntries(pairs);
}

/** The query in the form of a URL: with its question mark, or `''` if it is empty. */
export function queryText({ buyerId, status, since, until, after, limit, order }: OrderQuery): string {
  const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
  const values = {
    after,
    limit,
    order,
    buyer: buyerId,
    status: status?.join(),
    since: iso(since),
    until: iso(until),
  };
  const given = Object.entries(values).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

function checked<T>(schema: z.ZodType<T>, input: object): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw invalid(
    result.error.issues.map((issue) =>
      issue.code === 'unrecognized_keys'
        ? { field: issue.keys.join(', ').slice(0, 80), problem: 'is not a part of this query' }
        : { field: String(issue.path[0] ?? 'the query'), problem: issue.message },
    ),
  );
}

const invalid = (faults: { field: string; problem: string }[]) =>
  new InvalidInput('the query is not valid', faults);
