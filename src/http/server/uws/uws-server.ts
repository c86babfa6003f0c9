import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import type { Port } from '../exchange.ts';
import type { HttpServer, ListenOptions, Method, OpenHttpServer, Serve } from '../http-server.ts';
import { cannotListen, type Listener, listenerOf } from '../listener.ts';
import { UwsExchange } from './uws-exchange.ts';

export type Uws = typeof import('uWebSockets.js');

/** @param uws not imported here, because it does not load on every system (node/process/http-server.ts) */
export function uwsServer(uws: Uws): OpenHttpServer {
  return (port) => new UwsServer(uws, port);
}

class UwsServer implements HttpServer {
  /** Each header costs 75 ns, for a callback into JavaScript. */
  readonly hasCheapHeaderScan = false;
  readonly #uws: Uws;
  readonly #app: TemplatedApp;
  readonly #port: Port;

  constructor(uws: Uws, port: Port) {
    this.#uws = uws;
    this.#app = uws.App();
    this.#port = port;
    const { connections } = port.traffic;
    const changed = (response: HttpResponse, change: number) => {
      if (change < 0) connections.closed();
      else if (!connections.opened(() => new Uint8Array(response.getRemoteAddress()))) response.close();
    };
    this.#app.filter(changed);
  }

  on(method: Method | 'any', pattern: string, serve: Serve): void {
    if (method === 'any')
      this.#app.any(pattern, (response, request) =>
        serve(new UwsExchange(response, this.#port, request.getMethod() === 'head'), request),
      );
    else
      this.#app[method === 'delete' ? 'del' : method](pattern, (response, request) =>
        serve(new UwsExchange(response, this.#port), request),
      );
  }

  /** Ports are always shared, because uWebSockets.js always sets the option (node/process/ports.ts). */
  listen({ host, port }: ListenOptions): Promise<Listener> {
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, (socket) => {
        if (!socket) return reject(cannotListen(host, port));
        const listening = {
          port: this.#uws.us_socket_local_port(socket),
          stopListening: () => this.#uws.us_listen_socket_close(socket),
          closeConnections: () => this.#app.close(),
        };
        resolve(listenerOf(listening, this.#port.traffic));
      });
    });
  }
}
