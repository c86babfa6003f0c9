/**
 * What the routes need of the program that speaks HTTP. Two do: uWebSockets.js (uws/), and `node:http` (node-http/) where no
 * binary of it loads. Which of them serves is chosen in node/process/http-server.ts; nothing else may know.
 *
 * Both keep the same promises:
 *
 * - A connection has one request under way at most; one that sends the next before it was answered is closed.
 * - Every head ends in `opened` of a route, in `400`, `431` or `505`, or in a closed connection.
 * - A client that has not sent all of its request after some ten seconds, or is silent for as long, is closed.
 * - Answers that a client does not take are not kept (exchange.ts).
 */
import type { Exchange, Port } from './exchange.ts';
import type { HttpRequest } from './http-request.ts';
import type { Listener } from './listener.ts';

export type Method = 'get' | 'post' | 'patch';

/** Is called within the callback that has read the head. */
export type Serve = (exchange: Exchange, request: HttpRequest) => void;

export interface ListenOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** Other threads listen on the same port, and the kernel spreads connections over them. */
  readonly isShared: boolean;
}

export interface HttpServer {
  /** Whether it costs next to nothing to go through the headers of a request. */
  readonly hasHeadersAtHand: boolean;
  /**
   * @param method `any`: all for which the pattern has no handler of its own
   * @param pattern such as `/v1/sales/:saleId`; `/*` is all that no other pattern matches
   */
  on(method: Method | 'any', pattern: string, serve: Serve): void;
  /** @throws StockadeError `port_in_use` */
  listen(options: ListenOptions): Promise<Listener>;
}

/** @param port what its exchanges report to, and its connections are counted by */
export type OpenHttpServer = (port: Port) => HttpServer;
