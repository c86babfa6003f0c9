/**
 * Transfers between servers of a cluster. The process that makes one is killed between any two steps. A reader then sees every
 * unit, in a segment or in transit, and a buyer gets a unit in transit. If the dead process's next step arrives late, it does
 * nothing.
 */
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ClusterBackend } from '../../../src/engine/cluster/cluster-backend.ts';
import { ClusterSight } from '../../../src/engine/cluster/cluster-sight.ts';
import { ClusterTransfers } from '../../../src/engine/cluster/cluster-transfers.ts';
import { TransferScripts } from '../../../src/engine/cluster/transfer-scripts.ts';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { unitsLeft } from '../../../src/engine/sale/units-left.ts';
import { clusterClient, connect } from '../../../src/redis/clients.ts';
import { scattered } from '../../../src/redis/send-all.ts';
import { BY } from '../../support/author.ts';
import { part } from '../../support/engine/intercept.ts';
import { freshPrefix } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../../support/long-timeouts.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { aSale, kinds, type LoadedSale, loadSale, refilled } from '../../support/shop/sales.ts';
import { Shop } from '../../support/shop/shop.ts';

const STEPS = ['credit', 'raiseEpoch', 'settle'] as const;

let servers: RedisCluster;
let backend: ClusterBackend;
let client: Cluster;
let keys: Keys;
let sight: ClusterSight;

beforeAll(async () => {
  servers = await RedisCluster.start();
});
afterAll(() => servers[Symbol.asyncDispose]());

beforeEach(async () => {
  const keyPrefix = freshPrefix();
  const { takeTimeoutMs } = LONG_TIMEOUTS;
  const options = { urls: servers.urls, keyPrefix, takeTimeoutMs, maxLogOrders: 1_000 };
  backend = await ClusterBackend.open(options);
  client = await connect(clusterClient(servers.adminUrls));
  keys = new Keys(keyPrefix);
  sight = new ClusterSight(scattered(client), keys);
  return async () => {
    client.disconnect();
    await backend.close();
  };
});

/** Transfers of a process that stalls before its next step of this name, and continues much later. */
function dyingBefore(step: (typeof STEPS)[number]) {
  let [died, revive] = [() => {}, () => {}];
  const death = new Promise<void>((resolve) => {
    died = resolve;
  });
  const hang = () =>
    new Promise<void>((resolve) => {
      revive = resolve;
      died();
    });
  const before = (call: string) => (call === `steps.${step}` ? hang() : undefined);
  const steps = part(new TransferScripts(client), 'steps', before);
  return { transfers: new ClusterTransfers(steps, sight, keys), death, revive: () => revive() };
}

const units = async ({ sale }: LoadedSale) =>
  unitsLeft(await backend.sales.snapshot(sale.id, sale.segments, 1));
const inTransit = async (sale: LoadedSale) =>
  (await sale.counters()).reduce((sum, counters) => sum + counters.inTransit, 0);

describe.each(STEPS)('a process that dies before its step %s', (step) => {
  const arrived = step !== 'credit';

  test('loses no unit and makes none, and other processes finish its transfer', async () => {
    const sale = await loadSale(backend, aSale({ stock: 12, segments: 3 }));
    const { transfers: dying, death, revive } = dyingBefore(step);
    const its = dying.transfer(sale.ref(), { from: 0, to: 2, units: 3 });
    await death;
    expect(await units(sale)).toBe(12);
    expect(await inTransit(sale)).toBe(arrived ? 0 : 3);
    expect(await sale.left()).toEqual(arrived ? [1, 4, 7] : [1, 4, 4]);
    expect(await sight.stock(sale.ref(), 3), 'nobody can say what is left').toBeUndefined();

    const epoch = await sale.epoch();
    expect(await backend.transfers.finish(sale.ref(), 3)).toEqual([{ from: 0, to: 2, units: 3 }]);
    expect(await sale.epoch(), 'a reader of the segments must read again').toBeGreaterThan(epoch);
    expect(await sale.left()).toEqual([1, 4, 7]);
    expect(await backend.transfers.finish(sale.ref(), 3)).toEqual([]);

    revive();
    expect(await its).toBe(3);
    expect(await sale.left()).toEqual([1, 4, 7]);
    await sale.expectConserved();
  });

  test('does not prevent a purchase of the last unit, which was in transit', async () => {
    const sale = await loadSale(backend, aSale({ stock: 1, segments: 3 }), { split: [1, 0, 0] });
    const { transfers: dying, death, revive } = dyingBefore(step);
    const its = dying.transfer(sale.ref(), { from: 0, to: 1, units: 1 });
    await death;
    const reply = refilled(await sale.refillAndTake([sale.order('anna')], 2));
    expect(kinds(reply.take)).toEqual(['taken']);
    expect(reply.total).toBe(0);
    expect(reply.epoch, 'sold out, proven after the last move').toBe(await sale.epoch());
    revive();
    await its;
    await sale.expectConserved();
  });

  test('does not delay other transfers out of its donor', async () => {
    const sale = await loadSale(backend, aSale({ stock: 12, segments: 3 }));
    const { transfers: dying, death, revive } = dyingBefore(step);
    const its = dying.transfer(sale.ref(), { from: 0, to: 2, units: 3 });
    await death;
    expect(await backend.transfers.transfer(sale.ref(), { from: 0, to: 1, units: 1 })).toBe(1);
    expect(await sale.left()).toEqual([0, 5, 7]);
    revive();
    await its;
    expect(await sale.left()).toEqual([0, 5, 7]);
    await sale.expectConserved();
  });

  test('leaves its record to a rebuild, which counts the units again', async () => {
    const sale = await loadSale(backend, aSale({ stock: 12, segments: 3 }));
    const { transfers: dying, death, revive } = dyingBefore(step);
    const its = dying.transfer(sale.ref(), { from: 0, to: 2, units: 3 });
    await death;
    await sale.freeze();
    const rebuilt = await loadSale(backend, sale.sale, { generation: 2 });
    revive();
    // Only the credit is refused: the other two steps find nothing to do.
    await (step === 'credit' ? expect(its).rejects.toThrow('generation 1') : its);
    expect(await rebuilt.left()).toEqual([4, 4, 4]);
    expect(await backend.transfers.finish(rebuilt.ref(), 3)).toEqual([]);
    await rebuilt.expectConserved();
  });
});

test('a last step that comes much too late leaves the record of the next transfer alone', async () => {
  const sale = await loadSale(backend, aSale({ stock: 12, segments: 3 }));
  const [first, second] = [dyingBefore('settle'), dyingBefore('credit')];
  const moved = first.transfers.transfer(sale.ref(), { from: 0, to: 2, units: 1 });
  await first.death;
  await backend.transfers.finish(sale.ref(), 3);
  const next = second.transfers.transfer(sale.ref(), { from: 0, to: 1, units: 2 });
  await second.death;
  first.revive();
  await moved;
  expect(await inTransit(sale), 'on their way still, and seen').toBe(2);
  second.revive();
  await next;
  expect(await sale.left()).toEqual([1, 6, 5]);
  await sale.expectConserved();
});

test('a donor that has lost its last transfer does not reuse its number', async () => {
  const sale = await loadSale(backend, aSale({ stock: 8, segments: 2 }));
  const donor = keys.segment(sale.ref(0)).segment;
  const before = await client.hgetall(donor);
  await backend.transfers.transfer(sale.ref(), { from: 0, to: 1, units: 1 });
  // Like a replica that lacks the debit: the unit exists twice, and the guard in Postgres must refuse one order.
  await client.hdel(donor, 'outSeq');
  await client.hset(donor, before);
  expect(await backend.transfers.transfer(sale.ref(), { from: 0, to: 1, units: 2 })).toBe(2);
  expect(await sale.left()).toEqual([2, 7]);
});

test('many transfers at once, in all directions, while buyers buy: each unit is sold once', async () => {
  const sale = await loadSale(backend, aSale({ stock: 60, segments: 6 }));
  const segments = Array.from({ length: 6 }, (_, segment) => segment);
  const moves = segments.flatMap((from) =>
    segments.filter((to) => to !== from).map((to) => ({ from, to, units: 2 })),
  );
  const sold = { units: 0 };
  const buyers = segments.map(async (segment) => {
    for (const order of sale.crowd(12)) {
      const options = { lane: 10 + segment };
      for (;;) {
        const { take, total } = refilled(await sale.refillAndTake([order], segment, options));
        const [kind] = kinds(take);
        if (kind === 'taken') sold.units++;
        if (kind === 'taken' || total === 0) break;
      }
    }
  });
  await Promise.all([...moves.map((move) => backend.transfers.transfer(sale.ref(), move)), ...buyers]);
  expect(sold.units).toBe(60);
  expect(await sale.left()).toEqual([0, 0, 0, 0, 0, 0]);
  await sale.expectConserved();
});

test('units that a process has left in transit can be withdrawn', async () => {
  await using shop = await Shop.open({ redis: servers.urls[0]! });
  const { id } = await shop.sell({ stock: 12, segments: 3 });
  const donor = new Keys(shop.keyPrefix).segment({ saleId: id, segment: 0 }).segment;
  await new TransferScripts(client).debit(donor, 1, 2, 3);
  await shop.service.change(id, { action: 'withdraw', units: 12 }, BY);
  expect(await shop.service.show(id)).toMatchObject({ remaining: 0 });
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [] });
});
