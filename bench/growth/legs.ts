/**
 * The legs of an order that are measured apart, each from the outside: what processes and the clock have spent.
 *
 * - take: from the engine's `buy` to the answer `accepted`, with no sync running. Stock and the buyers' record are Redis'.
 * - commit: the same orders from the logs into Postgres, by a sync that has looked at all sales already. It ends when the
 *   last order is committed.
 * - idle: a node with nothing to do but its polls and sync's sweeps. It costs time per second and not per order.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { settings } from '../../src/config/settings.ts';
import type { Purchase } from '../../src/engine/contract.ts';
import { PostgresLocks } from '../../src/sync/sale-locks.ts';
import { Sync } from '../../src/sync/sync.ts';
import { SyncWatch } from '../support/sync-watch.ts';
import { buyAll } from './crowd.ts';
import type { Cost } from './meter.ts';
import type { Stage } from './stage.ts';

export async function measureTakes({ engine, meter }: Stage, bursts: readonly Purchase[][]): Promise<Cost> {
  const end = await meter.begin();
  await buyAll(engine, bursts);
  return end();
}

export async function measureCommits(stage: Stage, orders: number): Promise<Cost> {
  // What was written before is flushed now, so that it is not flushed at the cost of what comes.
  await stage.db.raw('CHECKPOINT');
  let isHeldBack = true;
  return withSync(
    stage,
    async (watch) => {
      const end = await stage.meter.begin();
      isHeldBack = false;
      stage.backend.takes.hint({ saleId: stage.saleIds[0]!, segments: [], awaited: true });
      await watch.applied(orders);
      return end();
    },
    () => isHeldBack,
  );
}

export async function measureIdle(stage: Stage, seconds: number): Promise<Cost> {
  return withSync(stage, async (watch) => {
    const end = await stage.meter.begin();
    await delay(seconds * 1_000);
    watch.assertSound();
    return end();
  });
}

/** Works beside a sync that is through with its first sweep. @param isCrowded true: it leaves the logs alone */
async function withSync<T>(
  { db, databaseUrl, backend }: Stage,
  work: (watch: SyncWatch) => Promise<T>,
  isCrowded: () => boolean = () => false,
): Promise<T> {
  const locks = new PostgresLocks(databaseUrl);
  const watch = new SyncWatch();
  const sync = new Sync({
    db,
    backend,
    locks,
    events: watch.events,
    batchRows: Number(settings.syncBatchRows.fallback),
    yielding: { isCrowded, maxMs: Number.POSITIVE_INFINITY },
  });
  try {
    await sync.start();
    await sync.ready;
    return await work(watch);
  } finally {
    await sync.stop();
    await locks.close();
  }
}
