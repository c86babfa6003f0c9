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
  /** @returns the value of the pattern's `index`th parameter, not decoded; never `''` */
  getParameter(index: number): string | undefined;
  /** Calls `callback` for each header line in order, with the name in lower case. */
  forEach(callback: (name: string, value: string) => void): void;
}
