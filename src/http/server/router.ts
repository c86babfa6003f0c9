/** Which handler answers a request, and what stands in front of all: the bound on connections, the framing, then the gate. */
import type { HttpRequest, TemplatedApp } from 'uWebSockets.js';
import { Exchange, type Handler, type Method, type Observer, type Port, type Traffic } from './exchange.ts';
import { misframed } from './framing.ts';
import { problem, type Reply } from './problem.ts';

/** @returns the answer to who may not ask now. Called before anything else is done for a request. */
export type Gate = (exchange: Exchange, request: HttpRequest) => Reply | undefined;

const BUSY = problem('busy');

/** Registers handlers; nothing else may put a route on an app. */
export class Router {
  readonly #app: TemplatedApp;
  readonly #port: Port;
  readonly #gate: Gate | undefined;
  readonly #methods = new Map<string, Method[]>();

  /** @param gate in front of all routes, and of what no route has */
  constructor(app: TemplatedApp, observer: Observer, traffic: Traffic, gate?: Gate) {
    this.#app = app;
    traffic.connections.watch(app);
    this.#port = { observer, traffic };
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

  /** Answers what no route has: to be called after the last one. */
  end(): void {
    for (const [pattern, methods] of this.#methods) {
      const allow = methods.join(', ').toUpperCase();
      this.#refuse(pattern, problem('method_not_allowed', { detail: `use ${allow}` }, { allow }));
    }
    this.#refuse('/*', problem('not_found'));
  }

  /** Behind the gate too: else who has asked too much would go on asking for nothing. */
  #refuse(pattern: string, reply: Reply): void {
    const handler = this.#behindGate((exchange) => exchange.reply(reply));
    this.#app.any(pattern, (response, request) => {
      const exchange = new Exchange(response, this.#port, request.getMethod() === 'head');
      this.#serve(exchange, request, handler, false);
    });
  }

  #route(method: Method, pattern: string, behind: Handler, isHot: boolean): this {
    const handler = this.#behindGate(behind);
    this.#methods.set(pattern, [...(this.#methods.get(pattern) ?? []), method]);
    this.#app[method](pattern, (response, request) => {
      this.#serve(new Exchange(response, this.#port), request, handler, isHot);
    });
    return this;
  }

  #behindGate(handler: Handler): Handler {
    const gate = this.#gate;
    if (!gate) return handler;
    const { connections } = this.#port.traffic;
    return (exchange, request) => {
      const refusal = gate(exchange, request);
      if (!refusal) return handler(exchange, request);
      if (connections.goesRefused(exchange)) exchange.replyLast(refusal);
      else exchange.reply(refusal);
    };
  }

  /** Of a request that is one too many nothing is read: it must cost as little as can be. */
  #serve(exchange: Exchange, request: HttpRequest, handler: Handler, isHot: boolean): void {
    exchange.run(() => {
      const refusal = this.#port.traffic.connections.shed(exchange) ? BUSY : misframed(request, isHot);
      if (!refusal) return handler(exchange, request);
      exchange.replyLast(refusal);
    });
  }
}
