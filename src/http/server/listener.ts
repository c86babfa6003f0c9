import * as uWS from 'uWebSockets.js';
import { StockadeError } from '../../engine/errors.ts';
import type { Traffic } from './exchange.ts';

export interface Listener {
  readonly port: number;
  /** Requests that are not answered yet. */
  underWay(): number;
  /**
   * No new connections. Threads that share a port all do this before one of them drains: a client that is told to go comes
   * back at once, and a listener that is then closed would reset him.
   */
  stopListening(): void;
  /** What is under way is answered, for at most `graceMs`; then all connections are closed. */
  drain(graceMs: number): Promise<void>;
}

/** A request may be on its way on a connection that looks idle: it is waited for this long before connections are closed. */
const QUIET_MS = 100;

/**
 * @param port 0 for any free one
 * @throws StockadeError `port_in_use`
 */
export function listen(
  app: uWS.TemplatedApp,
  host: string,
  port: number,
  traffic: Traffic,
): Promise<Listener> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, (socket) => {
      if (!socket) {
        reject(
          new StockadeError(
            'port_in_use',
            `can't listen on ${host}:${port}; is something else listening there?`,
          ),
        );
        return;
      }
      let listening = true;
      const stopListening = () => {
        if (listening) uWS.us_listen_socket_close(socket);
        listening = false;
      };
      resolve({
        port: uWS.us_socket_local_port(socket),
        underWay: () => traffic.active,
        stopListening,
        async drain(graceMs) {
          stopListening();
          traffic.draining = true;
          await traffic.quiet(QUIET_MS, graceMs);
          app.close();
        },
      });
    });
  });
}
