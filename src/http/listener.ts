import * as uWS from 'uWebSockets.js';
import { StockadeError } from '../engine/errors.ts';

export interface Listener {
  readonly port: number;
  /** No new connections; those that are open go on until `close`. */
  stopListening(): void;
  close(): void;
}

/**
 * @param port 0 for any free one
 * @param shared whether other threads listen on the same port
 * @throws StockadeError `port_in_use`
 */
export function listen(app: uWS.TemplatedApp, host: string, port: number): Promise<Listener> {
  return new Promise((resolve, reject) => {
    app.listen(host, port, (socket) => {
      if (!socket) {
        reject(new StockadeError('port_in_use', `can't listen on ${host}:${port}; is something else listening there?`));
        return;
      }
      let listening = true;
      resolve({
        port: uWS.us_socket_local_port(socket),
        stopListening() {
          if (listening) uWS.us_listen_socket_close(socket);
          listening = false;
        },
        close() {
          listening = false;
          app.close();
        },
      });
    });
  });
}
