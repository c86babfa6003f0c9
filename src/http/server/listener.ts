import { StockadeError } from '../../engine/errors.ts';
import type { Traffic } from './traffic.ts';

export interface Listener {
  readonly port: number;
  /** Requests that are not answered yet. */
  underWay(): number;
  /**
   * Accepts no more connections. Threads that share a port must all do this before any of them drains: a client whose
   * connection is closed connects again at once, perhaps to a thread whose listener is about to close and would reset it.
   */
  stopListening(): void;
  /** Waits at most `graceMs` until all requests under way are answered, then closes all connections. */
  drain(graceMs: number): Promise<void>;
}

/**
 * Connections are closed only after this time without a request: one may be on its way on a connection that looks idle. It is as long as
 * a request from another continent takes, or one of a busy client.
 */
const QUIET_MS = 250;

/** A server that listens, as `listenerOf` needs it. */
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

export function cannotListen(
  host: string,
  port: number,
  why = 'another program may listen there',
  cause?: Error,
): StockadeError {
  return new StockadeError('port_in_use', `can't listen on ${host}:${port}: ${why}`, { cause });
}
