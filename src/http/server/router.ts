/**
 * Registers the routes of a port, and checks every request before its handler runs: first the number of connections, then the
 * framing, then the gate.
 */
import { type Cors, preflightReply } from './cors.ts';
import type { Exchange, Handler, Observer } from './exchange.ts';
import { misframed } from './framing.ts';
import type { HttpRequest } from './http-request.ts';
import type { HttpServer, ListenOptions, Method, OpenHttpServer } from './http-server.ts';
import type { Listener } from './listener.ts';
import { problem } from './replies/problem.ts';
import type { Reply } from './replies/reply.ts';
import type { Traffic } from './traffic.ts';

/** Runs before any other work is done for a request. @returns the answer to a request that is refused */
export type Gate = (exchange: Exchange, request: HttpRequest) => Reply | undefined;

const BUSY = problem('busy');

/** Registers handlers; nothing else may put a route on a server. */
export class Router {
  readonly #server: HttpServer;
  readonly #traffic: Traffic;
  readonly #gate: Gate | undefined;
  readonly #cors: Cors | undefined;
  readonly #methods = new Map<string, Method[]>();

  /**
   * @param gate runs for every request, also if no route matches it
   * @param cors which pages of other origins may read answers; `undefined`: none
   */
  constructor(open: OpenHttpServer, observer: Observer, traffic: Traffic, gate?: Gate, cors?: Cors) {
    this.#server = open({ observer, traffic });
    this.#traffic = traffic;
    this.#gate = gate;
    this.#cors = cors;
  }

  /** The methods of each registered pattern. */
  get routes(): ReadonlyMap<string, readonly Method[]> {
    return this.#methods;
  }

  route(method: Method, pattern: string, handler: Handler): this {
    return this.#route(method, pattern, handler, false);
  }

  /** A route with very many requests: checks that go through all headers are left out if they are expensive. */
  hotRoute(method: Method, pattern: string, handler: Handler): this {
    return this.#route(method, pattern, handler, true);
  }

  /**
   * Begins to listen. Must be called after the last route: what no route matches is refused from then on.
   * @param port a sentence about the port, for somebody who asks for a route that it does not have: the other port was meant
   */
  listen(options: ListenOptions, port?: string): Promise<Listener> {
    this.#end(port);
    return this.#server.listen(options);
  }

  #end(port: string | undefined): void {
    for (const [pattern, methods] of this.#methods) {
      const allow = methods.join(', ').toUpperCase();
      const detail = port === undefined ? `use ${allow}` : `use ${allow}. ${port}`;
      this.#refuse(pattern, problem('method_not_allowed', { detail }, { allow }), preflightReply(allow));
    }
    this.#refuse('/*', problem('not_found', port === undefined ? {} : { detail: port }));
  }

  /**
   * Runs the gate too. Otherwise a client above its limit could send requests without a route for free.
   * @param preflight the answer to a browser that asks for a page what the route takes
   */
  #refuse(pattern: string, reply: Reply, preflight = reply): void {
    const handler = this.#behindGate((exchange, request) =>
      exchange.reply(this.#cors?.isPreflight(request) ? preflight : reply),
    );
    this.#server.on('any', pattern, (exchange, request) => this.#serve(exchange, request, handler, false));
  }

  #route(method: Method, pattern: string, behind: Handler, isHot: boolean): this {
    const handler = this.#behindGate(behind);
    this.#methods.set(pattern, [...(this.#methods.get(pattern) ?? []), method]);
    const skipsScan = isHot && !this.#server.hasCheapHeaderScan;
    this.#server.on(method, pattern, (exchange, request) =>
      this.#serve(exchange, request, handler, skipsScan),
    );
    return this;
  }

  #behindGate(handler: Handler): Handler {
    const gate = this.#gate;
    if (!gate) return handler;
    const { connections } = this.#traffic;
    return (exchange, request) => {
      const refusal = gate(exchange, request);
      if (!refusal) return handler(exchange, request);
      if (connections.closesRefused(exchange)) exchange.replyLast(refusal);
      else exchange.reply(refusal);
    };
  }

  /**
   * Above the limit of connections, nothing of a request is read: refusing it must cost as little as possible.
   * @param skipsScan as for `misframed`
   */
  #serve(exchange: Exchange, request: HttpRequest, handler: Handler, skipsScan: boolean): void {
    exchange.run(() => {
      if (this.#cors) exchange.addLines(this.#cors.linesTo(request));
      const refusal = this.#traffic.connections.shed(exchange) ? BUSY : misframed(request, skipsScan);
      if (!refusal) return handler(exchange, request);
      exchange.replyLast(refusal);
    });
  }
}
