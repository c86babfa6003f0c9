import * as uWS from 'uWebSockets.js';
import { StockadeError } from '../engine/errors.ts';
import type { Traffic } from './exchange.ts';

export interface Listener {
  readonly port: number;
  /** No new connections; what is under way is answered, for at most `graceMs`; then all connections are closed. */
  drain(graceMs: number): Promise<void>;
}

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
      resolve({
        port: uWS.us_socket_local_port(socket),
        async drain(graceMs) {
          uWS.us_listen_socket_close(socket);
          traffic.draining = true;
          await traffic.idle(graceMs);
          app.close();
        },
      });
    });
  });
}
