/** Requests and reports of deletions of sales. */

import { z } from 'zod';
import { StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { counted } from '../lib/counted.ts';
import { checkedInput } from './checked-input.ts';

interface Begun {
  readonly saleId: string;
  /** Orders of the sale when the deletion began. */
  readonly orders: number;
  /** Orders of these that are deleted. */
  readonly done: number;
  readonly actor: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly begunAt: string;
}

/** `none`: no sale with this id was ever deleted. */
export type Deletion =
  | { readonly saleId: string; readonly state: 'none' }
  | (Begun & { readonly state: 'deleting' })
  | (Begun & {
      readonly state: 'deleted';
      /** ISO 8601. */
      readonly deletedAt: string;
    });

export interface DeleteOperations {
  /**
   * Begins to delete an archived sale with all its orders, and does not wait for the end. A sale that is being deleted
   * goes on being deleted.
   * @param orders how many orders the sale has, so that none is deleted that the caller does not know of
   * @throws UnknownSale, WrongState unless it is archived, OrdersDiffer, InvalidInput; StockadeError `unavailable` while
   * the backend still holds the sale. Then nothing was changed.
   */
  delete(saleId: string, orders: number, author: Author): Promise<Deletion>;
  /** The newest deletion of a sale with this id. */
  deletion(saleId: string): Promise<Deletion>;
}

const ORDERS = 'must be a whole number of at least 0';

const query = z.strictObject({
  orders: z
    .string(ORDERS)
    .regex(/^\d{1,15}$/, ORDERS)
    .default('0')
    .transform(Number),
  reason: z.string().optional(),
});

/** @param input names with values; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parseDeleteQuery(input: object): { orders: number; reason?: string | undefined } {
  return checkedInput(query, input, {
    invalid: 'the query is not valid',
    whole: 'the query',
    unknown: 'is not known here',
    isFlat: true,
  });
}

/** The sale has another number of orders than the request to delete it names. Nothing was changed. */
export class OrdersDiffer extends StockadeError {
  readonly orders: number;

  constructor(saleId: string, orders: number, named: number) {
    const them = orders === 1 ? 'it' : 'them';
    const were = named === 1 ? 'was' : 'were';
    const problem =
      named === 0
        ? `: export ${them}, and then delete the sale with ${them}`
        : `, and ${named} ${were} to be deleted: export ${them} again`;
    super('orders_differ', `sale ${saleId} has ${counted(orders, 'order')}${problem}`);
    this.orders = orders;
  }
}

/** A sale can't be created while another one with its id is being deleted. Nothing was changed. */
export class SaleDeleting extends StockadeError {
  constructor(saleId: string) {
    super('deleting', `a sale ${saleId} is being deleted: create this one when that has ended`);
  }
}
