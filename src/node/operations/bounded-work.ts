/**
 * Bounds the time of operators' work. Sync may wait for a store for ever, but an operator's request must end. Its error
 * also names the store that does not answer, which the errors of the stores' client libraries seldom do.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATION_DEADLINE_MS, VERIFY_DEADLINE_MS } from '../../config/ops-deadlines.ts';
import { InvalidInput, StaleGeneration, StockadeError } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { OrdersDiffer, SaleDeleting } from '../../operations/delete-operations.ts';
import { UnknownDeadLetter } from '../../operations/event-operations.ts';
import {
  ChangeFailed,
  ConnectionBroke,
  MetRebuild,
  OperationTimedOut,
  StoresAway,
} from '../../operations/operation-faults.ts';
import { WrongQueueState } from '../../operations/queue/queue-operations.ts';
import {
  InsufficientStock,
  SaleArchived,
  SaleExists,
  UnknownSale,
  WrongState,
} from '../../operations/sale-operations.ts';
import { endedBy } from '../../postgres/cancel.ts';
import { isConnectionLost, QUERY_TIMEOUT_MS } from '../../postgres/database.ts';
import type { StoreWatch } from '../stores/store-watch.ts';

/**
 * How often the stock's store is checked while the work goes on, so that an operator does not wait until the deadline for a
 * Redis that hangs. Postgres is not checked: its statements have their own bound, and one may hold PGlite's only session.
 */
const CHECK_EVERY_MS = 5_000;

if (OPERATION_DEADLINE_MS <= QUERY_TIMEOUT_MS) {
  throw new Error(
    `OPERATION_DEADLINE_MS ${OPERATION_DEADLINE_MS} must be above QUERY_TIMEOUT_MS, which is ${QUERY_TIMEOUT_MS}`,
  );
}

/**
 * How long a change may take effect in Postgres, if it can be bounded. Its statement is given up after QUERY_TIMEOUT_MS at the earliest, and
 * a timer may come before its time.
 */
const CHANGE_MS = QUERY_TIMEOUT_MS - 1_000;

/** Errors that answer the operator's request. They say nothing about the stores. */
const ANSWERS = [
  InsufficientStock,
  InvalidInput,
  OrdersDiffer,
  SaleArchived,
  SaleDeleting,
  SaleExists,
  UnknownDeadLetter,
  UnknownSale,
  WrongQueueState,
  WrongState,
];

export type Watch = Pick<StoreWatch, 'away' | 'backendAway'>;

export interface Bounds {
  readonly operationMs: number;
  readonly verifyMs: number;
  readonly checkEveryMs: number;
}

const BOUNDS: Bounds = {
  operationMs: OPERATION_DEADLINE_MS,
  verifyMs: VERIFY_DEADLINE_MS,
  checkEveryMs: CHECK_EVERY_MS,
};

interface Operation {
  readonly name: string;
  readonly deadlineMs: number;
  readonly changes: boolean;
}

export class BoundedWork {
  readonly bounds: Bounds;
  readonly #watch: Watch;

  constructor(watch: Watch, bounds: Bounds = BOUNDS) {
    this.#watch = watch;
    this.bounds = bounds;
  }

  /**
   * The work's result. Abandoned work that changes something continues, and its result is discarded. Other abandoned work
   * stops: its statements in Postgres are cancelled.
   * @param work called with the time, by `monotonicMs`, after which a change may not take effect
   * @param changes the work makes a change; then the error says that the change may have been made
   * @throws what the work throws, StoresAway, OperationTimedOut; MetRebuild for StaleGeneration; ChangeFailed for a change and an error of a
   * store, ConnectionBroke for other work and a broken connection
   */
  async run<T>(
    name: string,
    work: (latestMs: number) => Promise<T>,
    { deadlineMs = this.bounds.operationMs, changes = false } = {},
  ): Promise<T> {
    const latestMs = monotonicMs() + Math.min(deadlineMs, CHANGE_MS);
    const [end, abandoned] = [new AbortController(), new AbortController()];
    const working = changes ? work(latestMs) : endedBy(abandoned.signal, () => work(latestMs));
    try {
      return await Promise.race([working, this.#abandon({ name, deadlineMs, changes }, end.signal)]);
    } catch (error) {
      if (ANSWERS.some((kind) => error instanceof kind) || error instanceof StoresAway) throw error;
      const away = await this.#watch.away();
      if (away.length > 0) throw new StoresAway(away, { changes, cause: error });
      if (error instanceof StaleGeneration) throw new MetRebuild(name, { changes, cause: error });
      if (error instanceof StockadeError) throw error;
      if (changes) throw new ChangeFailed(error);
      throw isConnectionLost(error) ? new ConnectionBroke(name, error as Error) : error;
    } finally {
      end.abort();
      // This has no effect on work that has ended.
      abandoned.abort();
    }
  }

  /** Rejects when the work is abandoned. The signal, sent when the work has ended, stops this check. */
  async #abandon({ name, deadlineMs, changes }: Operation, signal: AbortSignal): Promise<never> {
    const deadline = monotonicMs() + deadlineMs;
    for (;;) {
      await delay(Math.min(this.bounds.checkEveryMs, deadline - monotonicMs()), undefined, { signal });
      const away = await this.#watch.backendAway();
      if (away !== undefined) throw new StoresAway([away], { changes });
      if (monotonicMs() >= deadline) throw new OperationTimedOut(name, deadlineMs, { changes });
    }
  }
}
