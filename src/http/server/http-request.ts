/**
 * A request's head, as routes see it, whichever program has read it. Valid only within the call that hands it over:
 * uWebSockets.js reuses the object.
 */
export interface HttpRequest {
  /** In lower case. */
  getMethod(): string;
  /** The path as it was sent: not decoded, without the query. */
  getUrl(): string;
  /** What stands behind the question mark, not decoded; `''` if there is none. */
  getQuery(): string;
  /** @param name in lower case @returns the first value; `''` if there is none */
  getHeader(name: string): string;
  /** @returns what stands in the path where the pattern has its `index`th parameter, not decoded; never `''` */
  getParameter(index: number): string | undefined;
  /** Goes through all header lines as they came, with names in lower case. */
  forEach(callback: (name: string, value: string) => void): void;
}
