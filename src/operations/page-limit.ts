import { z } from 'zod';

/** A number of entries, as a number or as digits: `0x10` and an empty text are numbers for JavaScript, but nobody means them. */
export function pageLimit(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  const digits = z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number);
  return z.union([z.int(), digits], { error }).refine((value) => value >= least && value <= most, { error });
}
