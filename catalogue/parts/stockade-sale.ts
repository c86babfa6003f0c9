/** Does by hand, for D3, what sync and the leases of worker numbers do in production. */

import type { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { parseSale } from '../../src/engine/sale/sale-json.ts';
import { splitEvenly } from '../../src/engine/sale/split-evenly.ts';
import { takeClient } from '../../src/redis/clients.ts';
import type { SaleSpec } from './contract.ts';
import { connected } from './redis-shop.ts';

export const GENERATION = 1;

/** As a rebuild does: every segment, then the record that opens them. */
export async function putUp(backend: RedisBackend, spec: SaleSpec): Promise<void> {
  const perBuyerLimit = 1;
  const parts = splitEvenly(spec.stock, spec.segments);
  for (const ref of segmentsOf(spec)) {
    await backend.sales.loadSegment({ ...ref, left: parts[ref.segment]!, perBuyerLimit, buyers: 'none' });
  }
  const sale = parseSale({ id: spec.id, stock: spec.stock, segments: spec.segments, perBuyerLimit }, 0);
  await backend.sales.publish({ sale, state: 'open', generation: GENERATION });
}

export function segmentsOf({ id, segments }: SaleSpec) {
  return Array.from({ length: segments }, (_, segment) => ({ saleId: id, segment, generation: GENERATION }));
}

/** Nodes lease their numbers from Postgres; here they are counted. */
export async function workerNumber({ url, keyPrefix }: { url: string; keyPrefix: string }): Promise<number> {
  const redis = await connected(takeClient(url));
  try {
    return await redis.incr(`${keyPrefix}workers`);
  } finally {
    redis.disconnect();
  }
}
