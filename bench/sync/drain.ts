/** The product's sync, from its start until all that the logs held is committed. */
import type { Backend, LogPosition } from '../../src/engine/contract.ts';
import { readCursors } from '../../src/sync/cursors.ts';
import type { Database } from '../../src/sync/database.ts';
import { PostgresLocks } from '../../src/sync/sale-locks.ts';
import { Sync } from '../../src/sync/sync.ts';
import type { SyncEvents } from '../../src/sync/sync-events.ts';
import { BenchFailure } from '../support/failure.ts';

const DRAIN_LIMIT_MS = 600_000;

export interface DrainTask {
  readonly db: Database;
  readonly databaseUrl: string;
  readonly backend: Backend;
  readonly saleId: string;
  readonly orders: number;
  readonly batchRows: number;
}

export interface DrainRun {
  readonly transactions: number;
}

/**
 * Returns after everything is stopped and was found to be as it should.
 * @param committed called when the last order is committed
 */
export async function drain(task: DrainTask, committed: () => void): Promise<DrainRun> {
  const { db, databaseUrl, backend, saleId, batchRows } = task;
  const locks = new PostgresLocks(databaseUrl);
  const progress = watch(task.orders);
  const sync = new Sync({ db, backend, locks, events: progress.events, batchRows });
  let transactions: number;
  try {
    await sync.start();
    transactions = await progress.finished;
    committed();
  } finally {
    await sync.stop();
    await locks.close();
  }
  await assertAtHeads(db, backend, saleId);
  return { transactions };
}

/** Counts what sync says it has applied; anything that is not normal ends the bench. */
function watch(expected: number): { events: SyncEvents; finished: Promise<number> } {
  let [orders, transactions] = [0, 0];
  let timer: NodeJS.Timeout;
  let events: SyncEvents | undefined;
  const finished = new Promise<number>((resolve, reject) => {
    const refuse = (what: string) => (info: object) =>
      reject(new BenchFailure(`sync ${what}: ${describe(info)}`));
    timer = setTimeout(
      () => reject(new BenchFailure(`${orders} of ${expected} orders within ${DRAIN_LIMIT_MS} ms`)),
      DRAIN_LIMIT_MS,
    );
    events = {
      applied(info) {
        orders += info.orders;
        transactions++;
        if (orders >= expected) resolve(transactions);
      },
      backlog() {},
      rejected: refuse('rejected an order'),
      logBroken: refuse('found a broken log'),
      ordersLost: refuse('has lost orders'),
      rebuilt: refuse('rebuilt the sale'),
      saleFailed: refuse('failed on the sale'),
      crashed: refuse('crashed'),
    };
  });
  return { events: events!, finished: finished.finally(() => clearTimeout(timer)) };
}

function describe(info: object): string {
  const { error } = info as { error?: unknown };
  return error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(info);
}

async function assertAtHeads(db: Database, backend: Backend, saleId: string): Promise<void> {
  const cursors: LogPosition[] = await readCursors(db, saleId);
  for (const { position, head } of await backend.log.readLog(cursors, 0)) {
    if (head?.seq === position.seq && head.tail === position.tail) continue;
    throw new BenchFailure(
      `the cursor of segment ${position.segment} is at ${position.seq}, its log at ${head?.seq}`,
    );
  }
}
