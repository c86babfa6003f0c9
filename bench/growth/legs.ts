/**
 * The parts of an order's way, each measured by itself: processor time and wall time.
 *
 * - take: from the engine's `buy` to the answer `accepted`. Stock and the buyers' record are in Redis.
 * - commit: the same orders from the logs into Postgres, from the release of sync to the last commit.
 * - idle: a node with nothing to do except its polls and sync's sweeps. Its cost is per second and not per order.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Purchase } from '../../src/engine/contract.ts';
import type { Cost } from '../support/meter.ts';
import { buyAll } from './crowd.ts';
import type { Stage } from './stage.ts';

export async function measureTakes(
  { engine, meter, sync }: Stage,
  bursts: readonly (readonly Purchase[])[],
): Promise<Cost> {
  sync.hold();
  const end = await meter.begin();
  await buyAll(engine, bursts);
  return end();
}

export async function measureCommits({ db, meter, sync }: Stage, orders: number): Promise<Cost> {
  // Flushes earlier writes now, so that they don't count.
  await db.raw('CHECKPOINT');
  const end = await meter.begin();
  const waitedMs = await sync.release(orders);
  const cost = await end();
  return { ...cost, wall: cost.wall - waitedMs * 1_000 };
}

export async function measureIdle({ meter, sync }: Stage, seconds: number): Promise<Cost> {
  const end = await meter.begin();
  await delay(seconds * 1_000);
  sync.watch.assertSound();
  return end();
}
