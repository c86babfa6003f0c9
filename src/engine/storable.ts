import { z } from 'zod';

/** Postgres stores neither a NUL nor half of a surrogate pair. */
export const isStorable = (value: string) => Buffer.from(value).toString() === value && !value.includes('\0');

/** Text that Postgres can store. */
export const text = (most: number) =>
  z
    .string({ error: 'must be a string' })
    .max(most, { error: `must have at most ${most} characters` })
    .refine(isStorable, { error: 'must be well-formed text without NUL characters' });
