/** Runs the product's sync, from its start until everything in the logs is committed. */
import type { Backend, LogPosition } from '../../src/engine/contract.ts';
import { EventRelay } from '../../src/events/relay.ts';
import type { RelayEvents } from '../../src/events/relay-events.ts';
import { readCursors } from '../../src/postgres/cursors.ts';
import type { Database } from '../../src/postgres/database.ts';
import { PostgresLocks, type SaleLocks } from '../../src/postgres/sale-locks.ts';
import { Sync } from '../../src/sync/sync.ts';
import { BenchFailure } from '../support/failure.ts';
import { SyncWatch } from '../support/sync-watch.ts';

export interface DrainTask {
  readonly db: Database;
  readonly databaseUrl: string;
  readonly backend: Backend;
  readonly saleId: string;
  readonly orders: number;
  readonly batchRows: number;
  readonly eventsStreamMax: number;
  readonly eventsYieldMs: number;
}

export interface DrainRun {
  readonly transactions: number;
}

/**
 * Returns after everything is stopped and the result is checked.
 * @param committed called when the last order is committed
 */
export async function drain(task: DrainTask, committed: () => void): Promise<DrainRun> {
  const { db, databaseUrl, backend, saleId, batchRows } = task;
  const locks = new PostgresLocks(databaseUrl);
  const watch = new SyncWatch();
  const sync = new Sync({ db, backend, locks, events: watch.events, batchRows });
  const relayWatch = new RelayWatch();
  const relay = relayBeside(sync, locks, relayWatch, task);
  let transactions: number;
  try {
    await sync.start();
    relay?.start();
    transactions = await watch.applied(task.orders);
    committed();
  } finally {
    await relay?.stop();
    await sync.stop();
    await locks.close();
  }
  if (relayWatch.crashes.length > 0) throw new BenchFailure(`the relay failed: ${relayWatch.crashes[0]}`);
  await assertAtHeads(db, backend, saleId);
  return { transactions };
}

/** The relay of order events, as a node has it. */
function relayBeside(
  sync: Sync,
  locks: SaleLocks,
  events: RelayEvents,
  task: DrainTask,
): EventRelay | undefined {
  const { db, backend, eventsStreamMax: maxEvents, eventsYieldMs: maxMs } = task;
  if (!backend.events || maxEvents === 0) return undefined;
  return new EventRelay({
    db,
    locks,
    stream: { events: backend.events, maxEvents },
    backpressure: { isLoadHigh: () => sync.isBehind, maxMs },
    events,
  });
}

class RelayWatch implements RelayEvents {
  readonly crashes: unknown[] = [];

  displaced(): void {}
  streamed(): void {}
  posted(): void {}
  postFailed(): void {}
  gaveUp(): void {}
  waiting(): void {}
  crashed({ error }: Parameters<RelayEvents['crashed']>[0]): void {
    this.crashes.push(error);
  }
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
