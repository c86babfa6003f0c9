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
  /** Places behind the head of its queue: no more than these wait. 0 also if nobody can wait any more. `undefined`: it never had a queue. */
  readonly behindHead?: number | undefined;
  /**
   * Units of offers that are not accepted yet. They are among `committedUnits`, and not among `remaining`. `undefined`: the sale never
   * had a queue, or more offers stand than are counted.
   */
  readonly offeredUnits?: number | undefined;
}

/** Offers of a sale that are counted at most. Above, their units are left out, so that a list costs little. */
export const COUNTED_OPEN_OFFERS = 10_000;

type SoldSale = Pick<
  SaleStatus,
  'stock' | 'movedUnits' | 'remaining' | 'committedUnits' | 'behindHead' | 'offeredUnits'
>;

/** Units that the sale has had in all. */
export const unitsOf = ({ stock, movedUnits }: Pick<SaleStatus, 'stock' | 'movedUnits'>): number =>
  stock + movedUnits;

/**
 * Units that buyers have bought, without those of offers. With a queue that is what Postgres has: only there a unit that is sold differs from
 * one that is offered. `undefined`: it can't be told now.
 */
export function soldUnitsOf(sale: SoldSale): number | undefined {
  const { remaining, committedUnits, behindHead, offeredUnits } = sale;
  if (remaining === undefined) return undefined;
  if (offeredUnits !== undefined) return committedUnits - offeredUnits;
  return behindHead === undefined ? unitsOf(sale) - remaining : undefined;
}

/** Whether no unit is left, and yet some are not sold: they are offered, or their offers are on their way to Postgres. */
export function isInOffers(sale: SoldSale): boolean {
  const { remaining, committedUnits, behindHead, offeredUnits } = sale;
  if (remaining !== 0 || behindHead === undefined) return false;
  return offeredUnits !== 0 || unitsOf(sale) > committedUnits;
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
