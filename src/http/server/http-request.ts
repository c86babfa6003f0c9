/**
 * The head of a request as routes see it, over either HTTP server. Valid only within the call that passes it, because
 * uWebSockets.js reuses the object.
 */
export interface HttpRequest {
  /** In lower case. */
  getMethod(): string;
  /** The path as it was sent: not decoded, without the query. */
  getUrl(): string;
  /** What follows the question mark, not decoded; `''` if there is none. */
  getQuery(): string;
  /** @param name in lower case @returns the first value; `''` if there is none */
  getHeader(name: string): string;
  /** @returns the value of the pattern's `index`th parameter, not decoded; never `''`. For ids see `pathIdOf` */
  getParameter(index: number): string | undefined;
  /** Calls `callback` for each header line in order, with the name in lower case. */
  forEach(callback: (name: string, value: string) => void): void;
}

/** What every id of a path is made of (RFC 3986, 2.3), each in its percent-encoding: letters, digits, `-`, `.`, `_`, `~`. */
const ENCODED = /%(2[de]|3\d|[46][1-9a-f]|[57][\da]|5f|7e)/gi;

/**
 * The id in a path: the first parameter of the pattern, `''` if it has none. Characters that need no encoding mean the same with it
 * and without it (RFC 3986, 6.2.2.2), and only these are decoded: so no id gets a slash, a control character or a second meaning.
 */
export function pathIdOf(request: HttpRequest): string {
  const id = request.getParameter(0) ?? '';
  return id.includes('%')
    ? id.replace(ENCODED, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    : id;
}
