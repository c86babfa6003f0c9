import { inspect } from 'node:util';

/**
 * A value that only `reveal` returns. Printing, logging or serialising an object that holds it shows only that it is set.
 */
export class Secret {
  readonly #value: string;
  readonly #shown: string;

  constructor(value: string, shown = HIDDEN) {
    this.#value = value;
    this.#shown = shown;
  }

  /** The value itself. Use it only for the call that needs it, never in a message. */
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
  /** Whether the URL has a user, a password or an unknown parameter. A path may be a secret too, but nothing marks it as one. */
  readonly holdsSecret: boolean;

  constructor(url: string, shown = withoutSecrets(url)) {
    super(url, shown);
    this.holdsSecret = [MASK, HIDDEN].some((mark) =>
      (URL.canParse(url) ? withoutSecrets(url) : shown).includes(mark),
    );
  }
}

/** Parameters that say how to connect to a store. Any other may be a secret, such as `?token=…`. */
const KNOWN_PARAMETERS = new Set(['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey']);
const MASK = '***';
const HIDDEN = '(hidden)';

/** The URL without its path, because for many receivers the path of a webhook is a secret. */
export function originOnly(text: string): string {
  const shown = withoutSecrets(text);
  if (!URL.canParse(shown)) return shown;
  const { protocol, host, pathname, search } = new URL(shown);
  return `${protocol}//${host}${pathname === '/' && search === '' ? '' : `/${HIDDEN}`}`;
}

/**
 * The URL with everything masked that may be a secret: passwords, values of parameters, the part after a `#`, and for HTTP the
 * user, which may be a token. Text that is not a proper URL is not shown at all, because a password could be anywhere in it. For
 * example, if a `#` or `/` in a password is not escaped, the rest of the password seems to follow the host.
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
