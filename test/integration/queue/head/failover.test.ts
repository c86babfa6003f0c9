/** A primary of a real Redis Cluster dies while offers are out and others are under way, and its replica takes over. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import { acceptOffer } from '../../../../src/queue/offers.ts';
import { leaveQueue } from '../../../../src/queue/places.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { RedisCluster } from '../../../support/servers/redis-cluster.ts';
import { offered, placesOf, QUEUE, queued, states, untilStates } from '../../../support/shop/queue.ts';
import { buyers, Shop } from '../../../support/shop/shop.ts';

/** Enough that each server has some of them. */
const SEGMENTS = 9;
const STOCK = 9;
const TOP_UP = 9;
const PEOPLE = buyers(STOCK + TOP_UP + 2, 'p');
const OUT = PEOPLE.slice(0, STOCK);
const UNDER_WAY = PEOPLE.slice(STOCK, STOCK + TOP_UP);
const [NEXT, LAST] = PEOPLE.slice(-2) as [string, string];

let cluster: RedisCluster;
let shop: Shop;

beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: true, nodeTimeoutMs: 1_000 });
  shop = await Shop.open({ redis: cluster.url });
});

afterAll(async () => {
  await shop?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

const each = <T>(names: readonly string[], value: T) =>
  Object.fromEntries(names.map((name) => [name, value]));

/** The server of a segment that has taken units which are not in Postgres. */
async function serverOfOffersUnderWay(saleId: string): Promise<number> {
  const segments = await shop.backend.sales.snapshot(saleId, SEGMENTS, 1);
  const { segment } = segments.find(({ counters }) => counters && counters.seq > counters.committed)!;
  return cluster.primaryOf(new Keys(shop.keyPrefix).segment({ saleId, segment }).segment);
}

test('offers are kept or made again, none twice, and places keep their order', async () => {
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS, ...QUEUE });
  const numbers = await queued(shop, id, PEOPLE);
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  shop.startHead(till.take);
  await untilStates(shop, id, each(OUT, 'offered'));
  const before = await placesOf(shop, id);

  await sync.stop();
  await shop.service.change(id, { action: 'top-up', units: TOP_UP }, BY);
  await until(async () => (await shop.service.show(id)).remaining === 0, {
    what: 'units are taken for the next places',
  });
  expect(await states(shop, id)).toMatchObject(each(UNDER_WAY, 'waiting'));
  // The replica may lack some of these takes.
  const server = await serverOfOffersUnderWay(id);
  await cluster.primaries[server]!.kill();
  // Its unit comes back when its server does.
  expect(await leaveQueue(shop.db, id, OUT[1]!)).toMatchObject({ place: { state: 'left' } });
  await shop.startSync();
  const kept = OUT.filter((_, i) => i !== 1);
  await untilStates(shop, id, {
    ...each(kept, 'offered'),
    [OUT[1]!]: 'left',
    ...each(UNDER_WAY, 'offered'),
    [NEXT]: 'offered',
    [LAST]: 'waiting',
  });
  const after = await placesOf(shop, id);
  expect(after.map(({ number }) => number)).toEqual(numbers);
  expect(after.slice(0, STOCK)).toEqual(before.slice(0, STOCK));
  const orders = after.flatMap(({ orderId }) => orderId ?? []);
  expect(new Set(orders).size).toBe(STOCK + TOP_UP + 1);
  for (const buyerId of [OUT[0]!, UNDER_WAY[0]!, NEXT]) {
    const orderId = await offered(shop, id, buyerId);
    expect(await acceptOffer(shop.db, { orderId, buyerId, quantity: 1 })).toMatchObject({ verdict: 'done' });
  }
  await until(async () => (await shop.service.verify(id)).ok, { what: 'all units are accounted for' });
  expect(await shop.service.show(id)).toMatchObject({ remaining: 0 });
});
