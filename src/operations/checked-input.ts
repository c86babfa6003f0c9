import { z } from 'zod';
import { InvalidInput } from '../engine/errors.ts';
import { time } from '../engine/sale/json-values.ts';

/** Of the names that the schema does not have, this many characters are shown: a client may send any. */
const SHOWN_NAMES_CHARACTERS = 80;

interface Words {
  /** The message of the error. */
  readonly invalid: string;
  /** What a fault names that is not about a single field, such as `the body`. */
  readonly whole: string;
  /** The problem of a field that the schema does not have. */
  readonly unknown: string;
  /** A field is named by the first name of its path, not by all: it is a parameter, and not an object. */
  readonly isFlat?: boolean;
}

/** @throws InvalidInput with all faults at once */
export function checkedInput<T>(schema: z.ZodType<T>, input: unknown, words: Words): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const faults = result.error.issues.map((issue) =>
    issue.code === 'unrecognized_keys'
      ? { field: issue.keys.join(', ').slice(0, SHOWN_NAMES_CHARACTERS), problem: words.unknown }
      : {
          field: issue.path.slice(0, words.isFlat ? 1 : undefined).join('.') || words.whole,
          problem: issue.message,
        },
  );
  throw new InvalidInput(words.invalid, faults);
}

/** Entries in a page of any list at most. */
export const MAX_PAGE = 1_000;

/** Which page of a list that has no filters. */
export interface PageQuery {
  /** The page begins after this entry: `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 to MAX_PAGE. */
  readonly limit?: number | undefined;
}

/** The fields of a `PageQuery`, as a schema. @param isCursor whether a text is an `after` of that list */
export function pageFields(isCursor: (text: string) => boolean) {
  const after = z.string().refine(isCursor, { error: 'must be `next` of the page before' });
  return { after: after.optional(), limit: pageLimit(1, MAX_PAGE).optional() };
}

/** @param input names with values; an undefined value is missing. @throws InvalidInput with all faults at once */
export function parsePageQuery(
  input: Readonly<Record<string, unknown>>,
  isCursor: (text: string) => boolean,
): PageQuery {
  return checkedInput(z.strictObject(pageFields(isCursor)), input, PAGE_WORDS);
}

/** For `checkedInput` of a query. */
export const PAGE_WORDS: Words = {
  invalid: 'the query is not valid',
  whole: 'the query',
  unknown: 'is not a part of this query',
  isFlat: true,
};

/** In the address of a request, the `+` of a zone that was not escaped arrives as a space. */
export const queryTime = z.preprocess(
  (value) => (typeof value === 'string' ? value.replace(/ (?=\d\d:\d\d$)/, '+') : value),
  time,
);

interface Times {
  /** ISO 8601, or milliseconds since the Unix epoch. */
  readonly since?: string | number | undefined;
  readonly until?: string | number | undefined;
}

/** For `refine` of a query. Times that were mixed up would find nothing, as if there were nothing. */
export const isInOrder = ({ since, until }: Times) =>
  since === undefined || until === undefined || new Date(since) < new Date(until);

export const MIXED_UP = {
  path: ['until'],
  error: ({ input }: { readonly input?: unknown }) => {
    const { since, until } = input as { since: string | number; until: string | number };
    return `must be after \`since\`, which is ${new Date(since).toISOString()}; it is ${new Date(until).toISOString()}`;
  },
};

const MAX_ROW_ID = 2n ** 63n - 1n;

/** Whether the text may be the id of a row that Postgres has numbered. */
export function isRowId(text: string): boolean {
  return /^\d{1,19}$/.test(text) && BigInt(text) <= MAX_ROW_ID;
}

/** The first `limit` of the rows that were read, one more than that. @returns also `next`, if there was one more */
export function pageOf<T>(
  found: readonly T[],
  limit: number,
  idOf: (entry: T) => string,
): { page: T[]; next: string | undefined } {
  const page = found.slice(0, limit);
  return { page, next: found.length > limit ? idOf(page.at(-1)!) : undefined };
}

/** A number of entries, as a number or as digits: `0x10` and an empty text are numbers for JavaScript, but nobody means them. */
export function pageLimit(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  const digits = z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number);
  return z.union([z.int(), digits], { error }).refine((value) => value >= least && value <= most, { error });
}
