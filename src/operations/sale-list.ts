/** The list of sales, page by page, the newest first. */
import { z } from 'zod';
import type { SaleState } from '../engine/contract.ts';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import { urlQuery } from '../lib/url-query.ts';
import { checkedInput } from './checked-input.ts';
import type { SaleStatus } from './sale-status.ts';

/** Sales in a page, unless the query asks for fewer or more. */
export const DEFAULT_PAGE_SALES = 100;
export const MAX_PAGE_SALES = 1_000;

export const SALE_STATES = ['open', 'paused', 'closed'] as const satisfies readonly SaleState[];

/** Whether a list leaves archived sales out, has them too, or has nothing else. */
export const ARCHIVED_FILTERS = ['exclude', 'include', 'only'] as const;
export type ArchivedFilter = (typeof ARCHIVED_FILTERS)[number];

export interface SaleQuery {
  /** Missing: every state. */
  readonly state?: SaleState | undefined;
  /** Default `exclude`. */
  readonly archived?: ArchivedFilter | undefined;
  /** The page begins after this cursor: `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 to MAX_PAGE_SALES. Default: DEFAULT_PAGE_SALES. */
  readonly limit?: number | undefined;
}

export interface SalePage {
  readonly sales: readonly SaleStatus[];
  /** `after` of the next page. Missing: there is none. */
  readonly next?: string | undefined;
}

const LIMIT = `must be a whole number from 1 to ${MAX_PAGE_SALES}`;

const query = z.strictObject({
  state: z.enum(SALE_STATES, { error: `must be ${SALE_STATES.join(', ')}` }).optional(),
  archived: z.enum(ARCHIVED_FILTERS, { error: `must be ${ARCHIVED_FILTERS.join(', ')}` }).optional(),
  after: z
    .string()
    .refine((text) => parseSaleCursor(text) !== undefined, { error: 'must be `next` of the page before' })
    .optional(),
  limit: z.coerce.number({ error: LIMIT }).int(LIMIT).min(1, LIMIT).max(MAX_PAGE_SALES, LIMIT).optional(),
});

/** @param input names with values; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parseSaleQuery(input: object): SaleQuery {
  return checkedInput(query, input, {
    invalid: 'the query is not valid',
    whole: 'the query',
    unknown: 'is not known here',
    isFlat: true,
  });
}

/** A cursor is the time of a sale's creation in microseconds since the Unix epoch, and the sale's id. */
export function parseSaleCursor(text: string): { created: string; saleId: string } | undefined {
  const [, created, saleId] = /^(\d{1,16})\.(.+)$/.exec(text) ?? [];
  return saleId !== undefined && SALE_ID_PATTERN.test(saleId) ? { created: created!, saleId } : undefined;
}

/** The query in the form of a URL: with its question mark, or `''` if it is empty. */
export function saleQueryText({ state, archived, after, limit }: SaleQuery): string {
  return urlQuery({ state, archived, after, limit });
}

/** All pages, beginning with the one that is asked for. */
export async function* salePages(
  list: (query: SaleQuery) => Promise<SalePage>,
  query: SaleQuery = {},
): AsyncGenerator<SalePage> {
  let page = await list(query);
  yield page;
  while (page.next !== undefined) {
    page = await list({ ...query, after: page.next });
    yield page;
  }
}
