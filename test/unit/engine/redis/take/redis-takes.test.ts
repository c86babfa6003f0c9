/** Takes and hints of one turn of the event loop: how many commands they are. */
import { ReplyError } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { NO_ENTRY, type TakeBatch, type TakeReply } from '../../../../../src/engine/contract.ts';
import { BackendCorrupt, NotExecuted } from '../../../../../src/engine/errors.ts';
import { MAX_BATCH_ORDERS } from '../../../../../src/engine/limits.ts';
import { Keys } from '../../../../../src/engine/redis/protocol/keys.ts';
import { RedisTakes, unitsTaken } from '../../../../../src/engine/redis/take/redis-takes.ts';
import { FakeRedis, type Ran } from '../../../../support/engine/fake-redis.ts';

const LIMITS = { takeTimeoutMs: 60_000, maxLogOrders: 100 };
const SERVED = [9, 6, 4, 27, 5];

/** The number of segments of each script that was run. */
const sizesOf = ({ ran }: FakeRedis) =>
  ran.map(({ name, args }) => (name === 'takes' ? Number(args[0]) / 3 : name));

function batchOf(segment: number, orders = 1, more: Partial<TakeBatch> = {}): TakeBatch {
  const ids = {
    saleId: 's',
    segment,
    generation: 4,
    lane: 2,
    ticket: 9,
    answeredTicket: 8,
    newest: NO_ENTRY,
  };
  const order = { buyerId: 'anna', quantity: 2, key: '' };
  const all = Array.from({ length: orders }, (_, i) => ({ ...order, orderId: String(11 + i) }));
  return { ...ids, orders: all, ...more };
}

const isJoint = ({ name }: Ran) => name === 'takes';
const sale = ({ args }: Ran) => Array.from({ length: Number(args[0]) / 3 }, () => SERVED);
const served = (ran: Ran) => (isJoint(ran) ? sale(ran) : SERVED);

async function takesWith(reply: (ran: Ran) => unknown, { isCluster = false } = {}) {
  const redis = new FakeRedis(reply);
  const takes = new RedisTakes(redis.client, new Keys('p:'), LIMITS, { isCluster });
  await takes.whenReady(LIMITS.takeTimeoutMs);
  return { redis, takes };
}

const turnOf = (takes: RedisTakes, count: number, orders = 1, more: Partial<TakeBatch> = {}) =>
  Promise.all(Array.from({ length: count }, (_, i) => takes.take(batchOf(i, orders, more))));

describe('the takes of one turn', () => {
  it.each([
    [1, 1, ['take']],
    [31, 1, Array.from({ length: 31 }, () => 'take')],
    [32, 1, [32]],
    // Four times 61 orders cost as much as the largest take, if each take counts for four orders more.
    [32, MAX_BATCH_ORDERS / 4 - 3, Array.from({ length: 8 }, () => 4)],
    [33, MAX_BATCH_ORDERS / 4 - 2, Array.from({ length: 11 }, () => 3)],
  ])('%i of %i orders each are sent in commands of that many: %j', async (count, orders, sizes) => {
    const { redis, takes } = await takesWith(served);
    const replies = await turnOf(takes, count, orders);
    expect(sizesOf(redis)).toEqual(sizes);
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 'served'));
  });

  it('are sent once; those of the next turn are sent then', async () => {
    const { redis, takes } = await takesWith(served);
    await turnOf(takes, 40);
    await turnOf(takes, 50);
    expect(sizesOf(redis)).toEqual([40, 50]);
  });

  it('are sent one by one to a cluster, and under locks', async () => {
    const cluster = await takesWith(served, { isCluster: true });
    await turnOf(cluster.takes, 40);
    expect(sizesOf(cluster.redis)).toEqual(Array.from({ length: 40 }, () => 'take'));
    const locked = await takesWith(served);
    await turnOf(locked.takes, 40, 1, { fencingToken: 3 });
    expect(sizesOf(locked.redis)).toEqual(Array.from({ length: 40 }, () => 'fencedTake'));
  });

  it('fail one by one, by the error or the invalid reply of each', async () => {
    const { takes } = await takesWith((ran) =>
      sale(ran).map((reply, i) => (i === 0 ? 'error OOM no room' : i === 1 ? 'ajar' : reply)),
    );
    const ends = await Promise.allSettled(Array.from({ length: 32 }, (_, i) => takes.take(batchOf(i))));
    expect(ends[0]).toMatchObject({ reason: expect.any(NotExecuted) });
    expect(ends[1]).toMatchObject({ reason: expect.any(BackendCorrupt) });
    expect(ends.slice(2).every(({ status }) => status === 'fulfilled')).toBe(true);
  });

  it('all fail if their command fails', async () => {
    const { takes } = await takesWith(() => {
      throw new ReplyError('OOM no room');
    });
    const ends = await Promise.allSettled(Array.from({ length: 32 }, (_, i) => takes.take(batchOf(i))));
    for (const end of ends) expect(end).toMatchObject({ reason: expect.any(NotExecuted) });
  });
});

describe('a refill with a take', () => {
  const refill = async (reply: unknown, batch = batchOf(0, 3)) => {
    const { takes } = await takesWith(() => reply);
    return takes.refillAndTake(batch, 2);
  };

  it('says how many units are left in the whole sale', async () => {
    const raw = [9, 6, 4, 27, 5, 1, 'replay 12 2 3', 0];
    const reply = await refill([[10, 3, 7], raw]);
    expect(reply).toMatchObject({
      status: 'refilled',
      total: 8,
      epoch: 7,
      take: { status: 'served', left: 4 },
    });
    expect(await refill([[10, 3, 7], 'paused'])).toEqual({
      ...{ status: 'refilled', total: 10, epoch: 7, take: { status: 'paused' } },
    });
    expect(await refill('stale')).toEqual({ status: 'stale' });
  });

  it('reports that it is sent', async () => {
    let sent = 0;
    await refill('stale', batchOf(0, 1, { sending: () => sent++ }));
    expect(sent).toBe(1);
  });
});

it('only orders that were taken count as taken', () => {
  const results = [
    { kind: 'taken' },
    { kind: 'short' },
    { kind: 'taken' },
    { kind: 'replay', orderId: '14', quantity: 2, seq: 1 },
  ] as const;
  const reply: TakeReply = {
    status: 'served',
    results,
    seq: 1,
    committed: 0,
    left: 0,
    orders: 2,
    returned: 0,
  };
  expect(unitsTaken(reply, batchOf(0, 4))).toBe(4);
  expect(unitsTaken({ status: 'busy' }, batchOf(0, 4))).toBe(0);
});

it('the hints of one turn are one message', async () => {
  const { redis, takes } = await takesWith(served);
  const hint = (segment: number) => takes.hint({ saleId: 's', segments: [segment], awaited: segment === 1 });
  for (const segment of [0, 1]) hint(segment);
  await new Promise(setImmediate);
  hint(2);
  await new Promise(setImmediate);
  expect(redis.published).toEqual([
    ['p:hints', 's 0 0\ns 1 1'],
    ['p:hints', 's 0 2'],
  ]);
});
