/** A node with two workers forgets a sale that is gone for good, and gives its slot on the board to the next one. */
import { expect, test } from 'vitest';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { BY } from '../../support/author.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { query } from '../../support/shop/truth.ts';

type Stores = Awaited<ReturnType<typeof redisAndPostgres>>;

const SEGMENTS = 2;
const STOCK = 10;

/** As if the sale was archived and deleted: Postgres first, so that nothing builds it again. */
async function remove(stores: Stores, saleId: string): Promise<void> {
  await query(
    asAdmin(stores.databaseUrl),
    `DO $$ BEGIN SET LOCAL session_replication_role = replica; DELETE FROM sales WHERE id = '${saleId}'; END $$`,
  );
  await using keys = new RedisKeys(stores);
  const ofSegments = Array.from({ length: SEGMENTS }, (_, i) => Object.values(keys.of(saleId, i))).flat();
  await keys.redis.del(keys.sale(saleId), ...ofSegments);
  await keys.redis.incr(new Keys(stores.keyPrefix).changes);
}

async function archive({ ops }: TestNode, saleId: string): Promise<void> {
  await ops.change(saleId, { action: 'close' }, BY);
  // Sync may still hold the sale.
  await until(() => ops.change(saleId, { action: 'archive' }, BY), { what: 'the sale is archived' });
}

async function sellOut(node: TestNode, saleId: string): Promise<void> {
  const crowd = Array.from({ length: 3 * STOCK }, (_, i) => node.buy(saleId, `buyer-${i}`));
  const codes = (await Promise.all(crowd)).map(({ code }) => code);
  expect(codes.filter((code) => code === 'committed')).toHaveLength(STOCK);
  expect(codes.filter((code) => code === 'sold_out')).toHaveLength(2 * STOCK);
}

test.each([
  ['both stores have lost', (_: TestNode, stores: Stores, saleId: string) => remove(stores, saleId)],
  ['is archived', (node: TestNode, _: Stores, saleId: string) => archive(node, saleId)],
])(
  'the next sale gets the slot of one that %s, and is sold out and open again as any other',
  async (_, end) => {
    const stores = await redisAndPostgres();
    await using node = await startTestNode({ ...stores, env: { WORKERS: '2' } });
    const slotsUsed = () => metric(node, 'stockade_board_slots_used');
    const gone = await makeSale(node, { stock: STOCK, segments: SEGMENTS });
    await sellOut(node, gone);
    expect(await slotsUsed()).toBe(1);

    await end(node, stores, gone);
    await until(async () => (await slotsUsed()) === 0, { what: 'both workers have let go of the slot' });
    expect((await node.buy(gone, 'late')).status).toBe(404);
    expect(await metric(node, 'stockade_lane_depth')).toBe(0);

    const next = await makeSale(node, { stock: STOCK, segments: SEGMENTS });
    // The epoch at which the other sale was sold out says nothing about this one.
    expect((await node.buy(next, 'early')).code).toBe('committed');
    expect(await slotsUsed()).toBe(1);
    await node.ops.change(next, { action: 'top-up', units: 1 }, BY);
    await sellOut(node, next);
    await node.ops.change(next, { action: 'top-up', units: 1 }, BY);
    await until(async () => (await node.buy(next, 'patient', { key: 'until-sold' })).code === 'committed', {
      what: 'it sells again',
    });
    expect((await node.buy(gone, 'late')).status).toBe(404);
  },
);
