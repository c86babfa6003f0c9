/** What sync and the leases of worker numbers do for Stockade in earnest, done by hand for D3. */
import type { Sale } from '../../engine/contract.ts';
import { takeClient } from '../../engine/redis/clients.ts';
import type { RedisBackend } from '../../engine/redis/redis-backend.ts';
import type { SaleSpec } from '../contract.ts';
import { connected } from './redis-shop.ts';
import { shares } from './shares.ts';

export const GENERATION = 1;

/** As a rebuild does: every segment, then the record that opens them. */
export async function putUp(backend: RedisBackend, spec: SaleSpec): Promise<void> {
  const perBuyerLimit = 1;
  const parts = shares(spec.stock, spec.segments);
  for (const ref of segmentsOf(spec)) {
    await backend.sales.loadSegment({ ...ref, left: parts[ref.segment]!, perBuyerLimit });
  }
  const sale: Sale = {
    id: spec.id,
    title: '',
    stock: spec.stock,
    segments: spec.segments,
    startsAt: 0,
    endsAt: undefined,
    perBuyerLimit,
    payWithinSeconds: undefined,
    priceMinor: undefined,
    faceValueMinor: undefined,
    currency: undefined,
    shopId: undefined,
    metadata: {},
  };
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
