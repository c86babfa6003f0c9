/**
 * Ends statements that nobody waits for any more. A client that gives up leaves its statement running in Postgres, so
 * the server is asked to cancel it, by a connection of its own, as the protocol has it.
 *
 * The connection of the statement is not used again: the request may arrive when the statement has ended, and would
 * cancel the next one.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { connect } from 'node:net';
import { StockadeError } from '../engine/errors.ts';

const CANCEL_REQUEST = 80_877_102;
const REQUEST_BYTES = 16;
const CONNECT_TIMEOUT_MS = 5_000;

/** What is known of a connection, as `pg` has it. */
export interface ServerSession {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
}

/** Sends the request, and does not wait. No harm is done if it gets lost: the statement ends by itself. */
export function cancelStatement({ host, port, processID, secretKey }: ServerSession): void {
  if (processID === null || secretKey === null) return;
  const request = Buffer.alloc(REQUEST_BYTES);
  for (const [at, word] of [REQUEST_BYTES, CANCEL_REQUEST, processID, secretKey].entries())
    request.writeInt32BE(word, at * 4);
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.unref();
  socket.setTimeout(CONNECT_TIMEOUT_MS, () => socket.destroy());
  socket.on('error', () => {});
  socket.end(request);
}

class Scope {
  isOver = false;
  /** How to end each statement under way. */
  readonly statements = new Set<() => void>();
}

const scopes = new AsyncLocalStorage<Scope>();

/**
 * Runs work whose statements are ended when the signal comes; statements that it begins later are refused. Not for
 * work that changes something in several steps.
 */
export function endedBy<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const scope = new Scope();
  signal.addEventListener('abort', () => {
    scope.isOver = true;
    for (const end of scope.statements) end();
  });
  // A builder of knex sends its statement when it is awaited.
  return scopes.run(scope, async () => work());
}

/**
 * A statement begins.
 * @param end ends it
 * @returns to be called when it has ended
 * @throws StockadeError `given_up` if its work is over
 */
export function statementBegins(sql: string, end: () => void): () => void {
  const scope = scopes.getStore();
  if (!scope) return () => {};
  if (scope.isOver && !/^rollback/i.test(sql)) {
    throw new StockadeError('given_up', 'the work that this statement is for was given up');
  }
  scope.statements.add(end);
  return () => scope.statements.delete(end);
}
