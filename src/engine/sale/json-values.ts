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

const TIME_FORM = 'must be a time in ISO 8601 with zone, such as 2026-11-27T20:00:00+01:00';
/** Of a text that is no time, this many characters are shown: a client may send any. */
const SHOWN_CHARACTERS = 40;
/** Texts that somebody may have meant as such a time: day, what parts it from the time of day, time of day, zone. */
const LIKE_TIME = /^(\d{4}-\d\d-\d\d)(?:(T| +)(\d\d:\d\d(?::\d\d(?:\.\d+)?)?))? *(\S.*)?$/i;
const CLOCK = /^([01]\d|2[0-3])(:[0-5]\d){1,2}(\.\d+)?$/;
const ZONE = /^(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

const LIST = new Intl.ListFormat('en');

/** Says what the text lacks, or what is wrong with it. */
function wrongTime({ input }: { readonly input?: unknown }): string {
  if (typeof input !== 'string') return TIME_FORM;
  const shown = input.length > SHOWN_CHARACTERS ? `${input.slice(0, SHOWN_CHARACTERS)}…` : input;
  return `${TIME_FORM}; ${JSON.stringify(shown)} ${LIST.format(faultsOf(input)) || 'is none'}`;
}

function faultsOf(text: string): string[] {
  const [, day, parting, clock, zone] = LIKE_TIME.exec(text) ?? [];
  if (day === undefined) return [];
  return [
    ...(isDay(day) ? [] : ['names a day that does not exist']),
    ...(clock === undefined ? ['has no time of day'] : []),
    ...(clock === undefined || CLOCK.test(clock) ? [] : ['names a time of day that does not exist']),
    ...(parting === undefined || parting === 'T' ? [] : ['has no T before the time of day']),
    ...(zone === undefined ? ['has no zone: add Z for UTC, or an offset such as +01:00'] : []),
    ...(zone === undefined || ZONE.test(zone) ? [] : ['has no zone in the form Z or +01:00']),
  ];
}

/** JavaScript takes 30 February for a day in March. */
function isDay(text: string): boolean {
  const midnight = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(text);
}

/** The zone may lead out of the years that ISO 8601 writes with four digits. Nobody could read such a time back. */
export const time = z.iso
  .datetime({ offset: true, error: wrongTime })
  .transform((text) => Date.parse(text))
  .refine((ms) => ms >= FIRST_MS && ms <= LAST_MS, { error: 'must be in the years 1 to 9999, in UTC' });
