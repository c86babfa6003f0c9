/** What operators can ask for about buyers. */
import { z } from 'zod';
import { InvalidInput } from '../engine/errors.ts';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../engine/limits.ts';
import type { Author } from '../engine/sale/author.ts';
import { reason } from '../engine/sale/author.ts';
import { checkedInput } from './checked-input.ts';

export interface ErasureWish {
  readonly buyerId: string;
  /** Missing: all sales. */
  readonly saleId?: string | undefined;
  /** Also in sales that are not closed: their buyers wait while the sale is rebuilt. */
  readonly running: boolean;
  /** Only finds the buyer. Left out unless it is true: nodes of an older version do not know it, and refuse it. */
  readonly dryRun?: boolean | undefined;
}

interface KnownBuyer {
  readonly saleId: string;
  /** The buyer's orders in this sale, ended ones too. 0: Postgres has only a place, a returned order or a lost one. */
  readonly orders: number;
}

/** A sale that knows the buyer. */
export interface FoundBuyer extends KnownBuyer {
  /** The erasure would wait until the sale is closed. */
  readonly until?: 'closed' | undefined;
}

/** A buyer in a sale. */
export interface Erasure extends KnownBuyer {
  /** What is in the place of the buyer's id. */
  readonly pseudonym: string;
}

export interface ErasureReport {
  readonly erased: readonly Erasure[];
  /** Sales in which the id still is. `until` it is closed, or `until` sync has rebuilt it. */
  readonly waiting: readonly (Erasure & { readonly until: 'closed' | 'rebuilt' })[];
  /** Of a dry run: the sales in which the id is in Postgres. Both other lists are empty then. */
  readonly found?: readonly FoundBuyer[] | undefined;
}

export interface BuyerOperations {
  /**
   * Replaces the buyer's id by a pseudonym, another in each sale. It may be repeated. A dry run changes nothing. The report is empty
   * if no sale knows the buyer. @throws UnknownSale; StockadeError `unavailable`, and nothing was changed, if orders that were
   * accepted before are not in Postgres yet
   */
  erase(wish: ErasureWish, author: Author): Promise<ErasureReport>;
}

/** What makes a word longer: `ann` is not in `anna`, `ann-marie` or `ann@shop.example`. Every other character stands between words. */
const IN_WORD = /[\p{L}\p{M}\p{N}_@+-]/u;

/** Whether the text has the id as a word, or as several: an id may have the characters that stand between words. */
function names(text: string, id: string): boolean {
  for (let at = text.indexOf(id); at >= 0; at = text.indexOf(id, at + 1)) {
    if (!IN_WORD.test(text.charAt(at - 1)) && !IN_WORD.test(text.charAt(at + id.length))) return true;
  }
  return false;
}

const INVALID = 'the erasure is not valid';
const IN_LEDGER = "must not contain the buyer's id, because the ledger keeps it";

/** The reason stays in the ledger, so it must not name the buyer. */
const schema = z
  .strictObject(
    {
      buyerId: z.string({ error: 'must be a text' }).regex(ID_PATTERN, {
        error: `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`,
      }),
      saleId: z.string({ error: 'must be a text' }).optional(),
      running: z.boolean({ error: 'must be true or false' }).default(false),
      dryRun: z.boolean({ error: 'must be true or false' }).optional(),
      reason,
    },
    { error: ({ code }) => (code === 'invalid_type' ? 'must be a JSON object' : undefined) },
  )
  .refine(({ buyerId, reason }) => !names(reason, buyerId), {
    path: ['reason'],
    error: IN_LEDGER,
  });

/**
 * @param actor who erases the buyer. It stays in the ledger too, beside the pseudonym
 * @param field where the actor was given, for the error
 * @throws InvalidInput with all faults of the input at once; none of them repeats the buyer's id
 */
export function parseErasure(
  input: unknown,
  actor: string,
  field = 'X-Operator',
): { readonly wish: ErasureWish; readonly reason: string } {
  const { reason, ...wish } = checkedInput(schema, input, {
    invalid: INVALID,
    whole: 'the body',
    unknown: 'is not a field of an erasure',
  });
  if (names(actor, wish.buyerId)) throw new InvalidInput(INVALID, [{ field, problem: IN_LEDGER }]);
  return { wish, reason };
}
