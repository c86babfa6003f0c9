import { StockadeError } from '../../engine/errors.ts';
import type { Traffic } from './traffic.ts';

export interface Listener {
  readonly port: number;
  /** Requests that are not answered yet. */
  underWay(): number;
  /**
   * No new connections. Threads that share a port all do this before one of them drains: a client that is told to go comes
   * back at once, and a listener that is then closed would reset it.
   */
  stopListening(): void;
  /** What is under way is answered, for at most `graceMs`; then all connections are closed. */
  drain(graceMs: number): Promise<void>;
}

/** A request may be on its way on a connection that looks idle: it is waited for this long before connections are closed. */
const QUIET_MS = 100;

/** What a server that listens can do. */
export interface Listening {
  readonly port: number;
  /** Called once. */
  stopListening(): void;
  closeConnections(): void;
}

export function listenerOf(server: Listening, traffic: Traffic): Listener {
  let listening = true;
  const stopListening = () => {
    if (listening) server.stopListening();
    listening = false;
  };
  return {
    port: server.port,
    underWay: () => traffic.active,
    stopListening,
    async drain(graceMs) {
      stopListening();
      traffic.draining = true;
      await traffic.quiet(QUIET_MS, graceMs);
      server.closeConnections();
    },
  };
}

export function cannotListen(host: string, port: number, why = 'is something else listening there?') {
  return new StockadeError('port_in_use', `can't listen on ${host}:${port}; ${why}`);
}
