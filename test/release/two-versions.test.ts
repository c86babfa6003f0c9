/** What nodes of the release before and of this version do to the same sales, beyond selling (test/integration/node/two-versions.test.ts). */
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { until } from '../support/fixtures.ts';
import {
  changeSale,
  createSale,
  expectSound,
  Fleet,
  NO_RELEASE,
  sellAtEach,
  sellOut,
  unlessPossible,
} from '../support/nodes/fleet.ts';
import type { TestNode } from '../support/nodes/node.ts';

const NO_SYNC = { SYNC: 'off' };

/** Redis loses one segment of a sale. */
async function loseSegment({ stores }: Fleet, saleId: string): Promise<void> {
  const redis = new Redis(stores.redisUrl);
  try {
    const base = `${stores.keyPrefix}{${saleId}:0}`;
    expect(await redis.del(`${base}:segment`, `${base}:buyers`, `${base}:log`)).toBeGreaterThan(0);
  } finally {
    redis.disconnect();
  }
}

const generationOf = async (node: TestNode, saleId: string): Promise<number> =>
  (await node.opsRequest(`/v1/sales/${saleId}`)).body.generation;

describe.skipIf(NO_RELEASE)(`two versions${unlessPossible}`, () => {
  test.each(['old', 'new'])(
    'the %s sync applies what both have sold, and rebuilds a sale',
    async (syncing) => {
      const fleet = await Fleet.open();
      await using old = await fleet.startOld(syncing === 'old' ? {} : NO_SYNC);
      await using fresh = await fleet.startNew(syncing === 'new' ? {} : NO_SYNC);
      const both = { old, new: fresh };
      await createSale(old, { id: 'of-old', stock: 60, segments: 2, perBuyerLimit: 2 });
      await createSale(fresh, { id: 'of-new', stock: 60, segments: 2, perBuyerLimit: 2 });
      for (const saleId of ['of-old', 'of-new']) {
        await sellAtEach(both, saleId, { buyers: 'first', each: 10 });
        const before = await generationOf(fresh, saleId);
        await loseSegment(fleet, saleId);
        await until(async () => (await generationOf(fresh, saleId)) > before, {
          what: `${saleId} is rebuilt`,
        });
        // Until a node of the release has read of the rebuild, it answers `unavailable`.
        for (const [name, node] of Object.entries(both)) {
          const again = async () => (await node.buy(saleId, `again-${name}`, { key: 'a' })).code;
          await until(async () => (await again()) === 'committed', { what: `the ${name} node sells again` });
        }
        await sellAtEach(both, saleId, { buyers: 'second', each: 5 });
        for (const node of [old, fresh])
          expect((await node.buy(saleId, 'first-old-0', { quantity: 2 })).code).toBe('limit_reached');
      }
      await old.stop();
      await fresh.stop();
      await using later = await fleet.startNew();
      for (const saleId of ['of-old', 'of-new']) {
        await expectSound(later, saleId, 32);
        await sellOut(later, saleId);
        await expectSound(later, saleId, 60);
      }
    },
  );

  test('units that the old node moved between segments are where the new one expects them', async () => {
    const fleet = await Fleet.open();
    await using fresh = await fleet.startNew();
    await using old = await fleet.startOld();
    await createSale(fresh, { id: 'few', stock: 12, segments: 6 });
    await sellOut(old, 'few');
    await old.stop();
    // Its refills move units without counting them. The repair counts them, and brings back none.
    await until(async () => (await fresh.ops.verify('few')).committedOrders === 12, { what: 'all commits' });
    expect(await fresh.ops.verify('few')).toMatchObject({ ok: false });
    expect(await fresh.ops.verify('few', { repair: true })).toMatchObject({ ok: true });
    expect((await fresh.buy('few', 'late')).code).toBe('sold_out');
    await expectSound(fresh, 'few', 12);
  });

  test('a resize that is asked for beside an old sync is carried out when that has left', async () => {
    const fleet = await Fleet.open();
    await using old = await fleet.startOld();
    await createSale(old, { id: 'sale', stock: 100, segments: 2 });
    await using fresh = await fleet.startNew();
    const asked = changeSale(fresh, 'sale', { action: 'resize', segments: 5 });
    await sellAtEach({ old, new: fresh }, 'sale', { buyers: 'early', each: 10 });
    await old.stop();
    expect(await asked).toMatchObject({ status: 200, body: { segments: 5 } });
    await sellOut(fresh, 'sale');
    await expectSound(fresh, 'sale', 100);
  });

  test('an erasure beside an old sync is carried out when that has left', async () => {
    const fleet = await Fleet.open();
    await using old = await fleet.startOld();
    await createSale(old, { id: 'sale', stock: 100, segments: 2 });
    await using fresh = await fleet.startNew();
    await sellAtEach({ old, new: fresh }, 'sale', { buyers: 'early', each: 10 });
    const asked = fresh.opsRequest('/v1/erasures', {
      method: 'POST',
      body: JSON.stringify({ buyerId: 'early-old-0', running: true }),
    });
    await sellAtEach({ old, new: fresh }, 'sale', { buyers: 'late', each: 10 });
    await old.stop();
    expect((await asked).status).toBeLessThan(300);
    const ofBuyer = async () =>
      (await fresh.opsRequest('/v1/sales/sale/orders?buyer=early-old-0')).body.orders.length;
    await until(async () => (await ofBuyer()) === 0, { what: 'the buyer is erased', timeoutMs: 30_000 });
    expect((await fresh.buy('sale', 'early-old-1')).code).toBe('limit_reached');
    await sellOut(fresh, 'sale');
    await expectSound(fresh, 'sale', 100);
  });

  test('orders of the old node are paid, expire and are retaken by the new one; each change has an event', async () => {
    const fleet = await Fleet.open();
    await using old = await fleet.startOld();
    await using fresh = await fleet.startNew();
    await createSale(old, { id: 'sale', stock: 10, segments: 2, payWithinSeconds: 1 });
    const [paid, late] = [await old.buy('sale', 'ann'), await old.buy('sale', 'bob')];
    const pay = (orderId: string) =>
      fresh.opsRequest(`/v1/orders/${orderId}/pay`, { method: 'POST', body: '{"payType":"card"}' });
    expect(await pay(paid.body.orderId)).toMatchObject({ status: 200, code: 'paid' });
    const seen = () => fresh.opsRequest(`/v1/orders/${late.body.orderId}`);
    await until(async () => (await seen()).code === 'expired', { what: 'the other order expires' });
    await until(async () => (await pay(late.body.orderId)).status === 200, { what: 'it is paid late' });
    const redis = new Redis(fleet.stores.redisUrl);
    try {
      const kinds = async () => {
        const entries = await redis.xrange(`${fleet.stores.keyPrefix}events`, '-', '+');
        return entries.map(([, fields]) => fields[fields.indexOf('kind') + 1]).sort();
      };
      const expected = ['committed', 'committed', 'committed', 'expired', 'paid', 'paid'];
      await until(async () => (await kinds()).length >= expected.length, { what: 'the events' });
      expect(await kinds()).toEqual(expected.map((kind) => `order.${kind}`));
    } finally {
      redis.disconnect();
    }
    await old.stop();
    await expectSound(fresh, 'sale', 2);
  });

  test('orders of the old node expire, unless their sale has lost its time to pay before the migration', async () => {
    const fleet = await Fleet.open();
    await using old = await fleet.startOld();
    for (const id of ['expires', 'stays'])
      await createSale(old, { id, stock: 10, segments: 2, payWithinSeconds: 1 });
    const [unpaid, kept] = [await old.buy('expires', 'ann'), await old.buy('stays', 'ann')];
    await old.stop();
    const db = new pg.Client({ connectionString: fleet.stores.databaseUrl });
    await db.connect();
    try {
      // docs/operations/upgrade.md tells operators to do so.
      await db.query(`UPDATE sales SET pay_within_seconds = NULL WHERE id = 'stays'`);
    } finally {
      await db.end();
    }
    await using fresh = await fleet.startNew();
    const statusOf = async ({ body }: typeof kept) =>
      (await fresh.opsRequest(`/v1/orders/${body.orderId}`)).body.status;
    await until(async () => (await statusOf(unpaid)) === 'expired', { what: 'the unpaid order expires' });
    expect(await statusOf(kept)).toBe('unpaid');
    await expectSound(fresh, 'expires', 0);
    await expectSound(fresh, 'stays', 1);
  });

  test('the old version goes on where the new one has stopped, and the new one after it', async () => {
    const fleet = await Fleet.open();
    await using fresh = await fleet.startNew();
    await createSale(fresh, { id: 'sale', stock: 40, segments: 3, perBuyerLimit: 2 });
    await sellAtEach({ fresh }, 'sale', { buyers: 'first', each: 10 });
    const { orderId } = (await fresh.buy('sale', 'ann', { quantity: 2, key: 'k' })).body;
    expect(await fresh.opsRequest(`/v1/orders/${orderId}/cancel`, { method: 'POST' })).toMatchObject({
      status: 200,
    });
    expect(await changeSale(fresh, 'sale', { action: 'top-up', units: 5 })).toMatchObject({ status: 200 });
    expect(await changeSale(fresh, 'sale', { action: 'withdraw', units: 3 })).toMatchObject({ status: 200 });
    await fresh.stop();
    await using old = await fleet.startOld();
    await sellAtEach({ old }, 'sale', { buyers: 'first', each: 5 });
    expect((await old.buy('sale', 'ann', { quantity: 2, key: 'l' })).code).toBe('committed');
    const before = await generationOf(old, 'sale');
    await loseSegment(fleet, 'sale');
    await until(async () => (await generationOf(old, 'sale')) > before, {
      what: 'the old sync rebuilds the sale',
    });
    const again = async () => (await old.buy('sale', 'bob', { key: 'b' })).code;
    await until(async () => (await again()) === 'committed', { what: 'the old node sells again' });
    expect((await old.buy('sale', 'ann')).code).toBe('limit_reached');
    await old.stop();
    await fresh.start();
    await expectSound(fresh, 'sale', 18);
    await sellOut(fresh, 'sale');
    await expectSound(fresh, 'sale', 42);
  });

  test('nodes of both versions are killed and started while buyers come', async () => {
    const fleet = await Fleet.open();
    const sold = new Map<string, string>();
    await using old = await fleet.startOld();
    await createSale(old, { id: 'sale', stock: 250, segments: 4 });
    await using other = await fleet.startOld();
    await using fresh = await fleet.startNew();
    await using newer = await fleet.startNew();
    const nodes = [old, fresh, other, newer];
    let done = false;
    /** Repeats a purchase with its key, at any node, until it has an outcome. */
    const buy = async (buyer: string, first: number): Promise<void> => {
      for (let turn = 0; !done; turn++) {
        const node = nodes[(first + turn) % nodes.length]!;
        const answer = node.isUp
          ? await node.buy('sale', buyer, { key: buyer }).catch(() => undefined)
          : undefined;
        if (answer?.code === 'committed') return void sold.set(buyer, answer.body.orderId);
        if (answer && !['accepted', 'unknown', 'busy', 'unavailable'].includes(answer.code))
          throw new Error(`${buyer} was answered ${answer.code}`);
      }
    };
    const crowd = Array.from({ length: 8 }, async (_, client) => {
      for (let n = 0; n < 25; n++) await buy(`buyer-${client}-${n}`, client + n);
    });
    const bought = Promise.all(crowd);
    const after = (count: number) =>
      until(() => sold.size >= count, { what: `${count} orders`, timeoutMs: 120_000 });
    try {
      await after(25);
      await old.kill();
      await after(60);
      await fresh.kill();
      await after(100);
      await fresh.start();
      await other.stop();
      await bought;
    } finally {
      done = true;
    }
    expect(sold.size).toBe(200);
    await expectSound(newer, 'sale', 200);
    for (const [buyer, orderId] of sold)
      expect(
        (await newer.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': buyer } })).status,
      ).toBe(200);
    await sellOut(newer, 'sale');
    await expectSound(newer, 'sale', 250);
  });
});
