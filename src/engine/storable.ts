import { z } from 'zod';

/** Postgres stores neither a NUL nor half of a surrogate pair. */
export const isStorable = (value: string) => Buffer.from(value).toString() === value && !value.includes('\0');

/**
 * One line. Rows of older versions may hold more, and stay readable. Marks of writing direction are allowed: some
 * languages need them.
 */
const isLine = (value: string) => isStorable(value) && !/[\p{Cc}\u2028\u2029]/u.test(value);

/** Text that people read in lists and on terminals, of at most `most` characters. */
export const text = (most: number) =>
  z
    .string({ error: 'must be a string' })
    .max(most, { error: `must have at most ${most} characters` })
    .refine(isLine, { error: 'must be one line of well-formed text without control characters' });
