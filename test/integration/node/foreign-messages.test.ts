/** Other programs write into Stockade's channels and logs: that is reported, and affects at most the sale concerned. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';

describe('a message that this version does not send', () => {
  let node: TestNode;
  let keys: RedisKeys;
  let prefix: string;

  beforeAll(async () => {
    const options = await redisAndPostgres();
    prefix = options.keyPrefix;
    keys = new RedisKeys(options);
    node = await startTestNode({ ...options, env: { WORKERS: '2' } });
  });

  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
    await keys?.[Symbol.asyncDispose]();
  });

  /** A purchase that is committed shows that the foreign messages were read: its watermark came after them. */
  async function expectNobodyMinds(): Promise<void> {
    const id = await makeSale(node);
    for (const buyer of buyers(4, 'ann')) expect(await node.buy(id, buyer)).toMatchObject({ status: 201 });
    await expectSold(node, id, 4);
    expect(node.isUp).toBe(true);
  }

  const place = '"saleId":"s","segment":0,"generation":1';
  test.each([
    ['', '{', 'null', '1', '{}', '[null]', '[{}]', '[[]]', '\0', '\ufffd', '['.repeat(10_000)],
    [`[{${place},"seq":"1","orders":1,"rejected":[]}]`, `[{${place},"seq":1,"orders":1}]`],
    [`[{${place},"seq":1,"orders":1,"rejected":[{}]}]`, `[{${place},"seq":1e400,"orders":1,"rejected":[]}]`],
    [`[{${place},"seq":1,"orders":1,"rejected":[],"tails":5}]`],
  ])('on the channel of the watermarks ends no process: %s', async (...messages) => {
    for (const message of messages) await keys.redis.publish(`${prefix}watermarks`, message);
    await expectNobodyMinds();
    const told = /"level":40.*ignored a message in Redis that this version does not send/;
    await until(async () => told.test(await node.log()), { what: 'the log tells of it' });
  });

  test('on the channels of hints, sales and syncs ends no process', async () => {
    for (const message of [
      '',
      ' ',
      'x',
      's 1 -1',
      's 1 1e9',
      's 2 0',
      '{"a":1}',
      '{"from":"0123456789abcdef","sales":-1}',
      '{"from":"0123456789abcdef","sales":1,"handedOver":{"to":"","saleIds":[]}}',
      '\0 1 0',
      'x'.repeat(100_000),
    ]) {
      await keys.redis.publish(`${prefix}hints`, message);
      await keys.redis.publish(`${prefix}sales`, message);
      await keys.redis.publish(`${prefix}syncs`, message);
    }
    await expectNobodyMinds();
  });
});

describe('an entry of a log that this version does not write', () => {
  const order = (id: string, buyer = 'anna', quantity = '1', key = '') => `${id} ${buyer} ${quantity} ${key}`;
  const taken = '662207995405477814';

  test('stops its sale, which is reported; orders of other sales reach Postgres', async () => {
    await using shop = await Shop.open();
    await using keys = new RedisKeys(shop);
    const till = await shop.startEngine();
    const junk: Record<string, (tail: string) => string[]> = {
      'a NUL in a buyer': (p) => ['p', p, 'n', '2', 'o', order(taken, 'an\0na')],
      'a buyer beyond ASCII': (p) => ['p', p, 'n', '2', 'o', order(taken, 'zoé')],
      'a buyer of any length': (p) => ['p', p, 'n', '2', 'o', order(taken, 'x'.repeat(5_000))],
      'a key that is none': (p) => ['p', p, 'n', '2', 'o', order(taken, 'anna', '1', 'k\x7f')],
      'an order id beyond 63 bits': (p) => ['p', p, 'n', '2', 'o', order('9223372036854775808')],
      'more units than anybody may hold': (p) => ['p', p, 'n', '2', 'o', order(taken, 'anna', '3000000000')],
      'a count that does not count': (p) => ['p', p, 'n', '77', 'o', order(taken)],
      'another field': (p) => ['p', p, 'n', '2', 'o', order(taken), 'x', 'y'],
      'its fields twice': (p) => ['p', p, 'p', p, 'n', '2', 'o', order(taken)],
      'nothing of ours': () => ['hello', 'world'],
    };
    const sales = await Promise.all(
      Object.entries(junk).map(async ([what, fields]) => {
        const { id } = await shop.sell({ stock: 5, segments: 1 });
        const { orderId } = (await till.buy(id, 'first', { awaitCommit: false })) as { orderId: string };
        await keys.redis.xadd(keys.of(id, 0).log, '1-2', ...fields(orderId));
        return { id, what };
      }),
    );
    const good = await shop.sell({ stock: 5, segments: 1 });
    const sync = await shop.startSync();

    await until(() => new Set(sync.seen.failures.map(({ saleId }) => saleId)).size === sales.length, {
      what: 'every sale with junk is set aside',
    });
    for (const buyer of buyers(3, 'ann')) {
      await until(async () => (await till.buy(good.id, buyer)).code.match(/committed|limit_reached/), {
        what: 'the other sale sells',
      });
    }
    for (const { id, what } of sales) {
      const failure = sync.seen.failures.find(({ saleId }) => saleId === id);
      expect(failure, what).toMatchObject({ error: { code: 'backend_corrupt' } });
    }
    expect(sync.seen.crashes).toEqual([]);
    expect(sync.seen.rebuilds).toEqual([]);
  });
});
