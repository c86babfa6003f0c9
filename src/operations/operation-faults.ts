/** Errors of operations that were abandoned or failed because of a store or the time limit. */
import { StockadeError } from '../engine/errors.ts';

/** Added to the error of a change whose outcome is unknown. */
const MAY_BE_DONE = 'the change may have been made: check that before you repeat it';

interface Circumstances {
  /** The operation was a change. */
  readonly changes?: boolean;
  readonly cause?: unknown;
}

/** An operation was abandoned or failed, and these stores do not answer. */
export class StoresAway extends StockadeError {
  /** Names of the stores, at least one. */
  readonly stores: readonly string[];

  constructor(stores: readonly string[], { changes, cause }: Circumstances = {}) {
    super('unavailable', changes ? `${notAnswering(stores)}; ${MAY_BE_DONE}` : notAnswering(stores), {
      cause,
    });
    this.stores = stores;
  }
}

/** `Redis does not answer`. */
export function notAnswering(stores: readonly string[]): string {
  return `${stores.join(' and ')} ${stores.length === 1 ? 'does' : 'do'} not answer`;
}

/** An operation was abandoned because it took too long, although every store answers. */
export class OperationTimedOut extends StockadeError {
  constructor(operation: string, deadlineMs: number, { changes }: Circumstances = {}) {
    const what = `${operation} was not done within ${deadlineMs / 1_000} s, although the stores answer`;
    super('unavailable', changes ? `${what}; ${MAY_BE_DONE}` : what);
  }
}

/** A change failed with an error that does not say whether it was made: the connection to a store broke, for example. */
export class ChangeFailed extends StockadeError {
  constructor(cause: unknown) {
    const why = cause instanceof Error ? plainMessage(cause) : String(cause);
    super('unavailable', `${why}; ${MAY_BE_DONE}`, { cause });
  }
}

/** An operation that changes nothing failed because its connection to Postgres broke. */
export class ConnectionBroke extends StockadeError {
  constructor(operation: string, cause: Error) {
    const what = `${operation} failed because the connection to Postgres broke (${plainMessage(cause)})`;
    super('unavailable', `${what}; try again`, { cause });
  }
}

/** An operation failed because its sale was being rebuilt, which is over in a moment. */
export class MetRebuild extends StockadeError {
  constructor(operation: string, { changes, cause }: Circumstances = {}) {
    const what = `${operation} failed because the sale was being rebuilt`;
    super('unavailable', `${what}; ${changes ? MAY_BE_DONE : 'try again'}`, { cause });
  }
}

/** What Postgres' client calls the errors that it got from the server. */
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** The client's own errors while a statement is under way. */
const OF_CLIENT =
  / - (?:Query read timeout|Connection terminated[^-]*|Client has encountered [^-]*|read ECONNRESET|write EPIPE)$/;

/** The message of an error without the statement that knex puts before it: it helps no operator. */
export function plainMessage(error: Error): string {
  const { code = '' } = error as { code?: unknown };
  return SQLSTATE.test(String(code)) || OF_CLIENT.test(error.message)
    ? error.message.replace(/^.* - /s, '')
    : error.message;
}
