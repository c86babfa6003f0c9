/** Base class of the engine's errors. "Sold out" is an outcome, a value; errors are thrown. */
export class StockadeError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** The backend did nothing: it could not be reached, or refused the command before its first write. */
export class NotExecuted extends StockadeError {
  constructor(message: string, cause?: unknown) {
    super('not_executed', message, { cause });
  }
}

/** Too many requests wait already. Nothing was done. */
export class Busy extends StockadeError {
  constructor(message: string) {
    super('busy', message);
  }
}

/** An error from another thread keeps its code but loses its class. */
export function isBusy(error: unknown): boolean {
  return error instanceof StockadeError && error.code === 'busy';
}

/** The command was sent and its reply is lost: it may have been executed. Repeat it with the same order ids. */
export class OutcomeUnknown extends StockadeError {
  constructor(message: string, cause?: unknown) {
    super('outcome_unknown', message, { cause });
  }
}

/** Invalid input. `faults` names each field and what it must be. Nothing was changed. */
export class InvalidInput extends StockadeError {
  readonly faults: readonly { readonly field: string; readonly problem: string }[];

  constructor(what: string, faults: readonly { field: string; problem: string }[]) {
    super('invalid_request', `${what}: ${faults.map((f) => `${f.field} ${f.problem}`).join('; ')}`);
    this.faults = faults;
  }
}

/** The backend holds data that this version did not write, or a script broke its own rules. */
export class BackendCorrupt extends StockadeError {
  constructor(message: string) {
    super('backend_corrupt', message);
  }
}

/** The segment or sale is of a later generation, missing, or frozen: the caller's view of it is out of date. */
export class StaleGeneration extends StockadeError {
  constructor(saleId: string, generation: number) {
    super('stale_generation', `sale ${saleId} is missing, frozen or no longer in generation ${generation}`);
  }
}

/**
 * Whether the error concerns one sale's keys (`ReplyError`, of Redis' client), and not a connection or the database, which fails for
 * all sales.
 */
export function isOneSalesFault(error: unknown): boolean {
  if (error instanceof BackendCorrupt || error instanceof StaleGeneration) return true;
  return error instanceof Error && error.name === 'ReplyError';
}
