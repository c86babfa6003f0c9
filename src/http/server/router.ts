/** Which handler answers a request, and what stands in front of all: the bound on connections, the framing, then the gate. */
import type { Exchange, Handler, Observer } from './exchange.ts';
import { misframed } from './framing.ts';
import type { HttpRequest } from './http-request.ts';
import type { HttpServer, ListenOptions, Method, OpenHttpServer } from './http-server.ts';
import type { Listener } from './listener.ts';
import { problem, type Reply } from './problem.ts';
import type { Traffic } from './traffic.ts';

/** @returns the answer to who may not ask now. Called before anything else is done for a request. */
export type Gate = (exchange: Exchange, request: HttpRequest) => Reply | undefined;

const BUSY = problem('busy');

/** Registers handlers; nothing else may put a route on a server. */
export class Router {
  readonly #server: HttpServer;
  readonly #traffic: Traffic;
  readonly #gate: Gate | undefined;
  readonly #methods = new Map<string, Method[]>();

  /** @param gate in front of all routes, and of what no route has */
  constructor(open: OpenHttpServer, observer: Observer, traffic: Traffic, gate?: Gate) {
    this.#server = open({ observer, traffic });
    this.#traffic = traffic;
    this.#gate = gate;
  }

  /** All that were put on it, by their patterns. */
  get routes(): ReadonlyMap<string, readonly Method[]> {
    return this.#methods;
  }

  route(method: Method, pattern: string, handler: Handler): this {
    return this.#route(method, pattern, handler, false);
  }

  /** A route that the crowd asks: what stands in front of it looks at no more than it must. */
  hotRoute(method: Method, pattern: string, handler: Handler): this {
    return this.#route(method, pattern, handler, true);
  }

  /** Answers what no route has, and begins to listen: to be called after the last route. */
  listen(options: ListenOptions): Promise<Listener> {
    this.#end();
    return this.#server.listen(options);
  }

  #end(): void {
    for (const [pattern, methods] of this.#methods) {
      const allow = methods.join(', ').toUpperCase();
      this.#refuse(pattern, problem('method_not_allowed', { detail: `use ${allow}` }, { allow }));
    }
    this.#refuse('/*', problem('not_found'));
  }

  /** Behind the gate too: else who has asked too much would go on asking for nothing. */
  #refuse(pattern: string, reply: Reply): void {
    const handler = this.#behindGate((exchange) => exchange.reply(reply));
    this.#server.on('any', pattern, (exchange, request) => this.#serve(exchange, request, handler, false));
  }

  #route(method: Method, pattern: string, behind: Handler, isHot: boolean): this {
    const handler = this.#behindGate(behind);
    this.#methods.set(pattern, [...(this.#methods.get(pattern) ?? []), method]);
    const isThrifty = isHot && !this.#server.hasHeadersAtHand;
    this.#server.on(method, pattern, (exchange, request) =>
      this.#serve(exchange, request, handler, isThrifty),
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
      if (connections.goesRefused(exchange)) exchange.replyLast(refusal);
      else exchange.reply(refusal);
    };
  }

  /**
   * Of a request that is one too many nothing is read: it must cost as little as can be.
   * @param isThrifty headers are not gone through
   */
  #serve(exchange: Exchange, request: HttpRequest, handler: Handler, isThrifty: boolean): void {
    exchange.run(() => {
      const refusal = this.#traffic.connections.shed(exchange) ? BUSY : misframed(request, isThrifty);
      if (!refusal) return handler(exchange, request);
      exchange.replyLast(refusal);
    });
  }
}
