/** Sales as operators see them: one of them, and the list, page by page, the newest first. */
import { z } from 'zod';
import type { SaleState } from '../engine/contract.ts';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import type { SaleJson } from '../engine/sale/sale-json.ts';
import { urlQuery } from '../lib/url-query.ts';
import { checkedInput, isInOrder, MIXED_UP, pageLimit, queryTime } from './checked-input.ts';

/** A sale's settings, and how far it has sold. */
export interface SaleStatus extends SaleJson {
  readonly state: SaleState;
  /** When the sale was archived, ISO 8601; `undefined`: it is not. */
  readonly archivedAt?: string | undefined;
  /** Units left, of an archived sale in Postgres, of others in all segments; `undefined` if the backend lacks the sale now. */
  readonly remaining: number | undefined;
  readonly soldOut: boolean;
  readonly generation: number;
  /** Units that operators have added since the sale's creation, minus units that they have withdrawn. */
  readonly movedUnits: number;
  /** Live orders in Postgres, and their units: those that are not cancelled, expired, refunded or rejected. */
  readonly committedOrders: number;
  readonly committedUnits: number;
  /** Buyers of this sale who are to be erased, and are not yet; `undefined`: none. */
  readonly waitingErasures?: number | undefined;
}

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
  /** The window of the sale begins at this time or later: ISO 8601 with zone. */
  readonly since?: string | undefined;
  /** The window begins before this time. */
  readonly until?: string | undefined;
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

const startTime = queryTime.transform((ms) => new Date(ms).toISOString()).optional();

/** The fields of a query for sales that say which ones, as a schema. */
export const saleQueryFields = {
  state: z.enum(SALE_STATES, { error: `must be one of ${SALE_STATES.join(', ')}` }).optional(),
  archived: z.enum(ARCHIVED_FILTERS, { error: `must be one of ${ARCHIVED_FILTERS.join(', ')}` }).optional(),
  since: startTime,
  until: startTime,
  after: z
    .string()
    .refine((text) => parseSaleCursor(text) !== undefined, { error: 'must be `next` of the page before' })
    .optional(),
};

const query = z
  .strictObject({ ...saleQueryFields, limit: pageLimit(1, MAX_PAGE_SALES).optional() })
  .refine(isInOrder, MIXED_UP);

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
export function saleQueryText({ state, archived, since, until, after, limit }: SaleQuery): string {
  return urlQuery({ state, archived, since, until, after, limit });
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

/** Whether there is any archived sale: a list leaves them out by default. */
export async function hasArchived(list: (query: SaleQuery) => Promise<SalePage>): Promise<boolean> {
  return (await list({ archived: 'only', limit: 1 })).sales.length > 0;
}
