/**
 * Cancels statements whose results are no longer needed. A client that abandons a statement leaves it running in Postgres.
 * So the server is asked to cancel it, over a separate connection, as the protocol requires.
 *
 * The connection of the statement is not used again: the request may arrive after the statement has ended, and would then
 * cancel the next one.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { connect } from 'node:net';
import { StockadeError } from '../engine/errors.ts';

const CANCEL_REQUEST = 80_877_102;
const REQUEST_BYTES = 16;
const CONNECT_TIMEOUT_MS = 5_000;

/** The data of a connection, as `pg` keeps it. */
export interface ServerSession {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
}

/** Sends the request and does not wait. If the request gets lost, the statement runs to its end, which does no harm. */
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
  /** A function for each statement under way that cancels it. */
  readonly statements = new Set<() => void>();
}

const scopes = new AsyncLocalStorage<Scope>();

/**
 * Runs work whose statements are cancelled when the signal aborts; statements that it begins later are refused. Don't use it
 * for work that makes changes in several steps.
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
 * Call it when a statement begins.
 * @param end cancels the statement
 * @returns a function to call when the statement has ended; `undefined`: nobody can abandon it
 * @throws StockadeError `given_up` if the work of the statement was abandoned
 */
export function statementBegins(sql: string, end: () => void): (() => void) | undefined {
  const scope = scopes.getStore();
  if (!scope) return undefined;
  if (scope.isOver && !/^rollback/i.test(sql)) {
    throw new StockadeError('given_up', 'the work that this statement is for was given up');
  }
  scope.statements.add(end);
  return () => scope.statements.delete(end);
}
