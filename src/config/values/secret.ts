import { inspect } from 'node:util';

/**
 * A value that must be asked for by name: printing, logging or serialising whatever holds it shows only that it is set.
 */
export class Secret {
  readonly #value: string;
  readonly #shown: string;

  constructor(value: string, shown = HIDDEN) {
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

/** A URL that may hold secrets; it is shown with `***` in their place. */
export class SecretUrl extends Secret {
  /** Whether there is one in it that shows as such: user, password, parameter. A path may be one without anybody knowing. */
  readonly holdsSecret: boolean;

  constructor(url: string, shown = withoutSecrets(url)) {
    super(url, shown);
    this.holdsSecret = [MASK, HIDDEN].some((mark) =>
      (URL.canParse(url) ? withoutSecrets(url) : shown).includes(mark),
    );
  }
}

/** Parameters that say how a store is reached. Any other may be a key: `?token=…`. */
const KNOWN_PARAMETERS = new Set(['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey']);
const MASK = '***';
const HIDDEN = '(hidden)';

/** Where it leads, and no more: the path of a webhook is a key for many receivers. */
export function originOnly(text: string): string {
  const shown = withoutSecrets(text);
  if (!URL.canParse(shown)) return shown;
  const { protocol, host, pathname, search } = new URL(shown);
  return `${protocol}//${host}${pathname === '/' && search === '' ? '' : `/${HIDDEN}`}`;
}

/**
 * The URL with everything masked that lets somebody in: passwords, values of parameters, what is behind a `#`, and in HTTP
 * the user, who may be a token. What is no proper URL is not shown at all, for a password could be anywhere
 * in it: in front of an `@` that came out behind the host because a `#` or `/` in the password was not escaped, say.
 */
export function withoutSecrets(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !text.startsWith(`${url.protocol}//`)) return '(not a URL)';
  if (`${url.pathname}${url.search}${url.hash}`.includes('@')) return `${url.protocol}//${HIDDEN}`;
  if (url.password !== '') url.password = MASK;
  if (url.username !== '' && url.protocol.startsWith('http')) url.username = MASK;
  for (const name of new Set(url.searchParams.keys())) {
    if (!KNOWN_PARAMETERS.has(name)) url.searchParams.set(name, MASK);
  }
  if (url.hash !== '') url.hash = MASK;
  return url.href;
}
