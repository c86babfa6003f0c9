import type { IncomingMessage } from 'node:http';
import type { HttpRequest } from '../http-request.ts';
import { type Route, valuesOf } from './route-table.ts';

const BEYOND_ASCII = /[\x80-\xff]/;

export class NodeRequest implements HttpRequest {
  readonly #message: IncomingMessage;
  readonly #path: string;
  readonly #query: string;
  readonly segments: readonly string[];
  #values: readonly string[] = [];

  constructor(message: IncomingMessage) {
    this.#message = message;
    const url = message.url!;
    const mark = url.indexOf('?');
    this.#path = mark < 0 ? url : url.slice(0, mark);
    this.#query = mark < 0 ? '' : url.slice(mark + 1);
    this.segments = this.#path.split('/');
  }

  /** Must be called once, before a handler sees the request. */
  matched(route: Route): void {
    this.#values = valuesOf(route, this.segments);
  }

  getMethod(): string {
    return this.#message.method!.toLowerCase();
  }

  getUrl(): string {
    return this.#path;
  }

  getQuery(): string {
    return this.#query;
  }

  /** Reads the raw headers, because `message.headers` joins or drops repeated ones, depending on the name. */
  getHeader(name: string): string {
    const { rawHeaders } = this.#message;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const found = rawHeaders[i]!;
      if (found.length === name.length && found.toLowerCase() === name) return textOf(rawHeaders[i + 1]!);
    }
    return '';
  }

  getParameter(index: number): string | undefined {
    return this.#values[index];
  }

  forEach(callback: (name: string, value: string) => void): void {
    const { rawHeaders } = this.#message;
    for (let i = 0; i < rawHeaders.length; i += 2)
      callback(rawHeaders[i]!.toLowerCase(), textOf(rawHeaders[i + 1]!));
  }
}

/** Node decodes headers as Latin-1. Bytes beyond ASCII are read as UTF-8 here, as uWebSockets.js does. */
function textOf(value: string): string {
  return BEYOND_ASCII.test(value) ? Buffer.from(value, 'latin1').toString() : value;
}
