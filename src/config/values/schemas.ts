/**
 * Schemas of the settings. The environment and the command line give strings; callers in this process may give the value
 * itself. Both pass the same schema. A message is the end of a sentence that begins with `PORT is "abc", but `.
 */
import { z } from 'zod';
import { Secret, SecretUrl } from './secret.ts';

export function whole(least: number, most: number) {
  const error = `must be a whole number from ${least} to ${most}`;
  const number = (value: unknown) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return z.preprocess(number, z.int({ error }).min(least, { error }).max(most, { error }));
}

/** A share, 0 to 1. */
export function fraction() {
  const error = 'must be a number from 0 to 1';
  const number = (value: unknown) =>
    typeof value === 'string' && /^(\d{1,3}|\d{0,3}\.\d{1,15})$/.test(value) ? Number(value) : value;
  return z.preprocess(number, z.number({ error }).min(0, { error }).max(1, { error }));
}

/** A boolean as two words, such as `on` and `off`, or as `true` and `false`. */
export function either(yes: string, no: string) {
  const word = (value: unknown) => (value === yes || value === true ? true : value === no ? false : value);
  return z.preprocess(word, z.boolean({ error: `must be ${yes} or ${no}` }));
}

export function oneOf<const T extends readonly string[]>(...words: T) {
  return z.enum(words, { error: `must be one of ${words.join(', ')}` });
}

export function url(...protocols: readonly string[]) {
  const starts = protocols.map((protocol) => `${protocol}//`).join(' or ');
  return z
    .string({ error: `must be a URL that begins with ${starts}` })
    .refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), {
      error: `must be a URL that begins with ${starts}`,
    })
    .transform((text) => new SecretUrl(text));
}

/** A URL without user and password, which would not be sent. */
export function plainUrl(shown?: (text: string) => string) {
  return url('https:', 'http:')
    .refine((secretUrl) => !hasUser(secretUrl.reveal()), {
      error: 'must hold no user and no password: neither is sent',
      abort: true,
    })
    .transform((secretUrl) => new SecretUrl(secretUrl.reveal(), shown?.(secretUrl.reveal())));
}

function hasUser(text: string): boolean {
  const { username, password } = new URL(text);
  return username !== '' || password !== '';
}

export function secret(leastCharacters: number) {
  return z
    .string({ error: `must have at least ${leastCharacters} characters` })
    .min(leastCharacters, { error: `must have at least ${leastCharacters} characters`, abort: true })
    .refine((text) => text.trim().length >= leastCharacters, {
      error: `must have at least ${leastCharacters} characters, without the white space at its ends`,
    })
    .transform((text) => new Secret(text));
}

/** A secret that is sent in an HTTP header. A line break at its end, from a file, would not arrive: then nobody has the right token. */
export function headerSecret(leastCharacters: number) {
  return secret(leastCharacters).refine((value) => IN_HEADER.test(value.reveal()), {
    error:
      'must be visible ASCII characters, with spaces only between them: no line break, also not at its end',
  });
}

const IN_HEADER = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

export function matching(pattern: RegExp, error: string) {
  return z.string({ error }).regex(pattern, { error });
}

/** Text that `parse` accepts. The setting keeps the text itself. */
export function readable(parse: (text: string) => unknown, error: string) {
  return z.string({ error }).refine((text) => parse(text) !== undefined, { error });
}

export const text = matching(/\S/, 'must not be empty');

export const host = matching(
  /^[A-Za-z0-9._:%-]+$/,
  'must be an IP address or a host name, without port and without brackets',
);
