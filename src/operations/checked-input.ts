import { z } from 'zod';
import { InvalidInput } from '../engine/errors.ts';

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

/** A number of entries, as a number or as digits: `0x10` and an empty text are numbers for JavaScript, but nobody means them. */
export function pageLimit(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  const digits = z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number);
  return z.union([z.int(), digits], { error }).refine((value) => value >= least && value <= most, { error });
}
