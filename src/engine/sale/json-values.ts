/** Schemas of values in the JSON of sales and their changes. */
import { z } from 'zod';

/** @param what the value, for the message if it is missing */
export const whole = (least: number, most: number, what = 'a whole number') =>
  z
    .int({
      error: ({ input }) =>
        input === undefined
          ? `is required: ${what}, from ${least} to ${most}`
          : `must be a whole number from ${least} to ${most}`,
    })
    .min(least, { error: `must be at least ${least}` })
    .max(most, { error: `must be at most ${most}` });

const FIRST_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** The zone may lead out of the years that ISO 8601 writes with four digits. Nobody could read such a time back. */
export const time = z.iso
  .datetime({
    offset: true,
    error: 'must be a time in ISO 8601 with zone, such as 2026-11-27T20:00:00+01:00',
  })
  .transform((text) => Date.parse(text))
  .refine((ms) => ms >= FIRST_MS && ms <= LAST_MS, { error: 'must be in the years 1 to 9999, in UTC' });
