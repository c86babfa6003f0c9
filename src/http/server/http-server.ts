/**
 * What the routes need of an HTTP server. There are two: uWebSockets.js (uws/), and `node:http` (node-http/) where no binary
 * of uWebSockets.js loads. node/process/http-server.ts chooses one; no other code may know which one serves.
 *
 * Both keep the same promises:
 *
 * - A connection has one request under way at most. A client that sends the next request before the answer loses it.
 * - Every request head that arrives is passed to a route, answered with `400`, `431` or `505`, or its connection is closed.
 * - A client loses its connection if it needs more than some ten seconds for a request, or is silent for as long.
 * - Answers that a client does not read are not kept (exchange.ts).
 */
import type { Exchange, Port } from './exchange.ts';
import type { HttpRequest } from './http-request.ts';
import type { Listener } from './listener.ts';

export type Method = 'get' | 'post' | 'patch' | 'delete';

/** Called as soon as the head of a request is there. */
export type Serve = (exchange: Exchange, request: HttpRequest) => void;

export interface ListenOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other threads listen on the same port; the kernel then spreads connections over them. */
  readonly isShared: boolean;
}

export interface HttpServer {
  /** Whether going through the headers of a request costs next to nothing. */
  readonly hasCheapHeaderScan: boolean;
  /**
   * @param method `any`: all methods for which the pattern has no handler of its own
   * @param pattern such as `/v1/sales/:saleId`; `/*` matches what no other pattern matches
   */
  on(method: Method | 'any', pattern: string, serve: Serve): void;
  /** @throws StockadeError `port_in_use` */
  listen(options: ListenOptions): Promise<Listener>;
}

/** @param port what the exchanges of this server share */
export type OpenHttpServer = (port: Port) => HttpServer;
