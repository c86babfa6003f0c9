/** A leave that Postgres could not make. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { rows } from '../../../src/postgres/database.ts';
import type { BuyersQueue } from '../../../src/queue/buyers/buyers-queue.ts';
import { until } from '../../support/fixtures.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { buyersQueueOf, QUEUE, queued, states } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

function buyersQueue(): BuyersQueue {
  const queue = buyersQueueOf(shop);
  onTestFinished(() => queue.stop());
  return queue;
}

test.each([0, 60])(
  'leaves one person fewer ahead, also while nobody counts as absent (presenceSeconds %i)',
  async (presenceSeconds) => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds });
    const queue = buyersQueue();
    const record = (await shop.backend.sales.read(id))!;
    for (const buyerId of ['anna', 'bert', 'carl'])
      await queue.join(record, { buyerId, quantity: 1 }, monotonicMs() + 5_000);
    const ahead = async () => (await queue.look(record, 'carl', { number: 3, quantity: 1 }))?.ahead;
    expect(await ahead()).toBe(2);
    await queue.leave(record, 'bert');
    await until(async () => (await ahead()) === 1, { what: 'carl has one person ahead' });
  },
);

/** A queue in which anna waits. */
async function queueOfAnna() {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, ['anna']);
  const queue = buyersQueue();
  const record = (await shop.backend.sales.read(id))!;
  return { id, leave: () => queue.leave(record, 'anna') };
}

test('because its place changed before each attempt is answered busy, and may be repeated', async () => {
  const { id, leave } = await queueOfAnna();
  // Each attempt finds the place as it was, and no row to change.
  const admin = asAdmin(shop.databaseUrl);
  const misses = "CREATE FUNCTION misses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'";
  const trigger = 'CREATE TRIGGER misses BEFORE UPDATE ON places FOR EACH ROW EXECUTE FUNCTION misses()';
  await query(admin, `${misses}; ${trigger}`);
  await expect(leave()).rejects.toMatchObject({ code: 'busy' });
  await query(admin, 'DROP TRIGGER misses ON places');
  expect(await states(shop, id)).toEqual({ anna: 'waiting' });
  expect(await leave()).toMatchObject({ number: 1, state: 'left' });
});

test('because the offer is no longer there to be given back is answered busy', async () => {
  const { id, leave } = await queueOfAnna();
  await rows(shop.db, "UPDATE places SET state = 'offered' WHERE sale_id = ?", [id]);
  await expect(leave()).rejects.toMatchObject({ code: 'busy' });
  expect(await states(shop, id)).toEqual({ anna: 'offered' });
});
