/** What the operators' console shows while it is open: a picture of a node, and of some sales of its shop, each second. */
import { z } from 'zod';
import { StockadeError } from '../../engine/errors.ts';
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { checkedInput, isInOrder, MIXED_UP, pageLimit } from '../checked-input.ts';
import { type SaleQuery, type SaleStatus, saleQueryFields } from '../sale-list.ts';

/** Consoles that one node serves at a time. */
export const MAX_CONSOLES = 50;
/** Sales that a picture has at most, so that it stays small however many sales the shop has. */
export const MAX_SHOWN_SALES = 100;
export const DEFAULT_SHOWN_SALES = 50;

export interface ConsoleQuery extends Omit<SaleQuery, 'limit'> {
  /** 0 to MAX_SHOWN_SALES; 0: no list of sales. */
  readonly limit: number;
  /** The sale to show with its segments. */
  readonly saleId?: string | undefined;
}

/** A part of a picture. A part that can't be read now keeps its last value. */
export interface Sampled<T> {
  /** Missing: it has never been read. */
  readonly value?: T;
  /** Age of the value in milliseconds. */
  readonly ageMs?: number;
  /** Why the last reading failed. */
  readonly problem?: string;
}

/** Purchases that this node has answered, per second. */
export interface PurchaseRates {
  readonly purchases: number;
  readonly orders: number;
  /** Refused because of the sale, the buyer or the request. */
  readonly refusals: number;
  /** Not served because of the node or its stores. */
  readonly failures: number;
  /** By the code of the answer; only codes that were answered since the picture before. */
  readonly byCode: Readonly<Record<string, number>>;
}

/** Answers of this node to those who want or have a place in a queue, per second. */
export interface PlaceRates {
  readonly joins: number;
  /** Buyers who asked how their places stand. */
  readonly polls: number;
  /** Not served because of the node or its stores, on every route of places. */
  readonly failures: number;
}

export interface NodePicture {
  /** Missing in the first picture: a rate needs two readings. */
  readonly perSecond?: PurchaseRates | undefined;
  /** Missing: nobody has asked this node for a place since it started. */
  readonly queue?:
    | {
        /** Missing in the first picture. */
        readonly perSecond?: PlaceRates | undefined;
        /** Open streams that tell buyers how their places stand. */
        readonly streams: number;
      }
    | undefined;
  /** Open connections to the buyers' port. */
  readonly connections: number;
  /** Purchases in the lanes. */
  readonly queued: number;
  /** Purchases that wait for their commit in Postgres. */
  readonly waiting: number;
  /** Missing: this process runs no sync. */
  readonly sync?: { readonly lagOrders: number; readonly lagSeconds: number } | undefined;
  /** Dead letters, if this process relays order events. */
  readonly deadLetters?: number | undefined;
  /** As `/readyz`: why the node can't sell now. */
  readonly notReady?: string | undefined;
}

/** A process of the shop, and the shared settings in which it differs from the node that serves the console. */
export interface OtherProcess {
  readonly process: string;
  readonly version: string;
  readonly differs: readonly string[];
}

/** The sales of one state that are neither archived nor being deleted. */
export interface StateTotal {
  readonly state: SaleStatus['state'];
  readonly sales: number;
  /** Units that are not sold, as Postgres counts them. */
  readonly unsold: number;
}

export type ShownSale = Pick<
  SaleStatus,
  | 'id'
  | 'title'
  | 'state'
  | 'archivedAt'
  | 'startsAt'
  | 'endsAt'
  | 'stock'
  | 'movedUnits'
  | 'segments'
  | 'perBuyerLimit'
  | 'remaining'
  | 'generation'
  | 'committedOrders'
  | 'committedUnits'
  | 'waitingErasures'
  | 'behindHead'
  | 'offeredUnits'
>;

export interface ShownSales {
  readonly sales: readonly ShownSale[];
  /** `after` of the next page. Missing: there is none. */
  readonly next?: string | undefined;
}

export interface ShownSegment {
  readonly segment: number;
  /** Missing: the segment is not in the backend now. */
  readonly left?: number | undefined;
  readonly taken?: number | undefined;
  readonly inTransit?: number | undefined;
}

export interface SalePicture {
  readonly sale: ShownSale;
  /** Empty for an archived sale. */
  readonly segments: readonly ShownSegment[];
}

export interface ConsolePicture {
  /** ISO 8601. */
  readonly at: string;
  readonly process: string;
  readonly version: string;
  readonly others: readonly OtherProcess[];
  readonly node: Sampled<NodePicture>;
  readonly totals: Sampled<readonly StateTotal[]>;
  readonly list?: Sampled<ShownSales> | undefined;
  readonly detail?: Sampled<SalePicture> | undefined;
}

export interface ConsoleOperations {
  /**
   * Pictures for one console, the first at once and then one a second. A reader that is slow gets fewer, never older ones.
   * @throws TooManyConsoles
   */
  watch(query: ConsoleQuery): AsyncIterable<ConsolePicture>;
}

export class TooManyConsoles extends StockadeError {
  constructor() {
    super(
      'busy',
      `${MAX_CONSOLES} consoles are open at this node: close one, or open the console of another node`,
    );
  }
}

const query = z
  .strictObject({
    ...saleQueryFields,
    limit: pageLimit(0, MAX_SHOWN_SALES).default(DEFAULT_SHOWN_SALES),
    saleId: z.string().regex(SALE_ID_PATTERN, { error: 'must be the id of a sale' }).optional(),
  })
  .refine(isInOrder, MIXED_UP);

/** @param input names with values; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parseConsoleQuery(input: object): ConsoleQuery {
  return checkedInput(query, input, {
    invalid: 'the query is not valid',
    whole: 'the query',
    unknown: 'is not known here',
    isFlat: true,
  });
}
