import { inspect } from 'node:util';

/**
 * A value that must be asked for by name: printing, logging or serialising whatever holds it shows only that it is set.
 */
export class Secret {
  readonly #value: string;
  readonly #shown: string;

  constructor(value: string, shown = '(hidden)') {
    this.#value = value;
    this.#shown = shown;
  }

  /** The value itself: for the call that needs it, and never for a message. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return this.#shown;
  }

  toJSON(): string {
    return this.#shown;
  }

  [inspect.custom](): string {
    return this.#shown;
  }
}

/** A URL that may hold a password; it is shown with `***` in its place. */
export class SecretUrl extends Secret {
  constructor(url: string, shown = withoutPassword(url)) {
    super(url, shown);
  }
}

const PASSWORD_PARAMETERS = ['password', 'sslpassword'];
const MASK = '***';

/**
 * The URL with every password in it masked. What is no proper URL is not shown at all, for a password could be anywhere
 * in it: in front of an `@` that came out behind the host because a `#` or `/` in the password was not escaped, say.
 */
export function withoutPassword(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !text.startsWith(`${url.protocol}//`)) return '(not a URL)';
  if (`${url.pathname}${url.search}${url.hash}`.includes('@')) return `${url.protocol}//(hidden)`;
  if (url.password !== '') url.password = MASK;
  for (const name of PASSWORD_PARAMETERS) {
    if (url.searchParams.has(name)) url.searchParams.set(name, MASK);
  }
  return url.href;
}
