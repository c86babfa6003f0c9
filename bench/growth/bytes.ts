/**
 * The memory that Redis uses for an order. The log entry is removed once the order is in Postgres; the part in the buyer's record
 * stays as long as the sale. Both are differences of the memory that Redis reports, with all its overhead.
 */
import type { Redis } from 'ioredis';
import { Keys } from '../../src/engine/redis/protocol/keys.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { rounded } from '../support/figures.ts';
import type { StoreServers } from '../support/stores.ts';
import { buyAll } from './crowd.ts';
import { BURST_ORDERS, burstsOf, dimensionsOf } from './dimensions.ts';
import { measureCommits } from './legs.ts';
import type { GrowthParameters } from './options.ts';
import { type Stage, setStage } from './stage.ts';

/** Bytes for each: as reported by Redis, and as sent to it. */
export interface Bytes {
  readonly orders: number;
  readonly redisBytesPerOrder: number;
  readonly contentBytesPerOrder: number;
  readonly redisBytesPerBuyer: number;
  readonly contentBytesPerBuyer: number;
}

export async function measureBytes(
  stores: StoreServers,
  parameters: GrowthParameters,
  teardown: Teardown,
): Promise<Bytes> {
  const { setting } = dimensionsOf(parameters).find(({ name }) => name === 'sales')!.points[0]!;
  const stage = await setStage(stores, { ...setting, buyers: 0 }, teardown);
  const bursts = Array.from({ length: burstsOf(parameters) }, () => stage.crowd.nextBurst());
  const orders = bursts.length * BURST_ORDERS;
  const before = await usedMemory(stage.admin);
  stage.sync.hold();
  await buyAll(stage.engine, bursts);
  const taken = await usedMemory(stage.admin);
  const content = await contentOf(stage, setting.segments);
  await measureCommits(stage, orders);
  const committed = await usedMemory(stage.admin);
  const each = (bytes: number) => rounded(bytes / orders, 1);
  return {
    orders,
    redisBytesPerOrder: each(taken - committed),
    contentBytesPerOrder: each(content.log),
    redisBytesPerBuyer: each(committed - before),
    contentBytesPerBuyer: each(content.buyers),
  };
}

async function usedMemory(admin: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await admin.info('memory'))![1]);
}

/** The characters of all field values in the logs, and of all names and records of buyers. */
async function contentOf(
  { admin, saleIds }: Stage,
  segments: number,
): Promise<{ log: number; buyers: number }> {
  const keys = new Keys('');
  let [log, buyers] = [0, 0];
  for (let segment = 0; segment < segments; segment++) {
    const names = keys.segment({ saleId: saleIds[0]!, segment });
    const entries = await admin.xrange(names.log, '-', '+');
    log += lengthOf(entries.flatMap(([, [, previous, , count, , lines]]) => [previous!, count!, lines!]));
    buyers += lengthOf(Object.entries(await admin.hgetall(names.buyers)).flat());
  }
  return { log, buyers };
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
