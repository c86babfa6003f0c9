/** Which command runs a script, with which keys, and what its reply means. */
import { ReplyError } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { NO_ENTRY, type TakeBatch } from '../../../../../src/engine/contract.ts';
import { BackendCorrupt, NotExecuted, StaleGeneration } from '../../../../../src/engine/errors.ts';
import { AFTER_ALL_IDS } from '../../../../../src/engine/limits.ts';
import { Keys } from '../../../../../src/engine/redis/protocol/keys.ts';
import { refuseStale, Scripts, type SegmentTake } from '../../../../../src/engine/redis/protocol/scripts.ts';
import { FakeRedis, type Ran } from '../../../../support/engine/fake-redis.ts';

const KEYS = new Keys('p:');
const keysOf = (segment: number) => KEYS.segment({ saleId: 's', segment });

function takeOf(segment: number, batch: Partial<TakeBatch> = {}): SegmentTake {
  const orders = [{ orderId: '11', buyerId: 'anna', quantity: 1, key: '' }];
  const ids = { saleId: 's', segment, generation: 4, lane: 2, ticket: 9, answeredTicket: 8 };
  return {
    keys: keysOf(segment),
    maxLogOrders: 100,
    madeBefore: 0,
    batch: { ...ids, newest: NO_ENTRY, orders, ...batch },
  };
}

const ATTEMPT = ['4 2 9 100 8 0  0 0 ', '11 anna 1 ', ''];
const REFILL = { receiver: 0, least: 1, units: 2, segments: ['one', 'two'], sale: 'sale' };

function scriptsWith(reply: (ran: Ran) => unknown) {
  const redis = new FakeRedis(reply);
  return { redis, scripts: new Scripts(redis.client) };
}

describe('a take', () => {
  const segmentKeys = (n: number) => ['segment', 'buyers', 'log'].map((part) => `p:{s:${n}}:${part}`);

  it('is the script of its own for one segment, and a joint one for several', async () => {
    const { redis, scripts } = scriptsWith(({ name }) =>
      name === 'take' ? [1, 0, 5, 1] : ['paused', [2, 0]],
    );
    expect(await scripts.takes([takeOf(0)])).toEqual([[1, 0, 5, 1]]);
    expect(await scripts.takes([takeOf(0), takeOf(1)])).toEqual(['paused', [2, 0]]);
    expect(redis.ran).toEqual([
      { name: 'take', args: [...segmentKeys(0), ...ATTEMPT] },
      { name: 'takes', args: [6, ...segmentKeys(0), ...segmentKeys(1), ...ATTEMPT, ...ATTEMPT] },
    ]);
  });

  it('under a lock carries its fencing token', async () => {
    const { redis, scripts } = scriptsWith(() => [1, 0, 5, 1]);
    const take = takeOf(0, { fencingToken: 7, rules: 'r1' });
    await scripts.takes([take]);
    const fence = 'p:{s:0}:lock:fence';
    const attempt = ['4 2 9 100 8 0  0 0 r1', ...ATTEMPT.slice(1)];
    expect(redis.ran).toEqual([{ name: 'fencedTake', args: [fence, ...segmentKeys(0), 7, ...attempt] }]);
  });

  it('behind a refill carries it too, and otherwise does not', async () => {
    const { redis, scripts } = scriptsWith(() => 'stale');
    await scripts.refillAndTake(REFILL, takeOf(0));
    await scripts.refillAndTake(REFILL, takeOf(0, { fencingToken: 7 }));
    const refill = ['one', 'two', 'sale', ...segmentKeys(0)];
    const args = [3, 4, 4, 1, 1, 2, ...ATTEMPT];
    expect(redis.ran).toEqual([
      { name: 'eval', args: [expect.not.stringContaining('FENCED'), 6, ...refill, ...args] },
      {
        name: 'eval',
        args: [expect.stringContaining('FENCED'), 7, 'p:{s:0}:lock:fence', ...refill, 7, ...args],
      },
    ]);
  });

  it('that fails in a joint command has its own error; another status is no error', async () => {
    const { scripts } = scriptsWith(() => ['error OOM no room', 'paused', [1, 0, 5, 1]]);
    const replies = await scripts.takes([takeOf(0), takeOf(1), takeOf(2)]);
    expect(replies).toEqual([expect.any(ReplyError), 'paused', [1, 0, 5, 1]]);
    expect((replies[0] as Error).message).toBe('OOM no room');
  });
});

describe('a script that Redis has forgotten twice', () => {
  const forgotten = ({ name }: Ran) => {
    if (name !== 'eval') throw new ReplyError('NOSCRIPT No matching script.');
    return 3;
  };

  it('is sent with its source and as many keys', async () => {
    const { redis, scripts } = scriptsWith(forgotten);
    expect(await scripts.freeze('segment', 4)).toBe(3);
    expect(await scripts.removeSegments([keysOf(0)], 4, 'idle')).toBe(3);
    const { segment, buyers, log, draft } = keysOf(0);
    expect(redis.ran.filter(({ name }) => name === 'eval').map(({ args }) => args)).toEqual([
      [expect.stringContaining("'frozen'"), 1, 'segment', 4],
      [expect.stringContaining('UNLINK'), 4, segment, buyers, log, draft, 4, 'idle'],
    ]);
  });

  it.each(['OOM command not allowed', 'ERR the script wanted NOSCRIPT', 'ERR it was NOSCRIPT'])(
    'is not one that failed, which is not sent again: %s',
    async (message) => {
      const { redis, scripts } = scriptsWith(() => {
        throw new ReplyError(message);
      });
      await expect(scripts.credit('segment', 4, '7', 2)).rejects.toThrow(message);
      expect(redis.ran).toHaveLength(1);
    },
  );
});

describe('a reply for several logs', () => {
  const log = (segment: number) => ({ keys: keysOf(segment), generation: 4, seq: 6 });
  const keys = [0, 1].flatMap((n) => [`p:{s:${n}}:segment`, `p:{s:${n}}:log`]);

  it('has the head and entries of each, or its error', async () => {
    const { redis, scripts } = scriptsWith(() => ['error WRONGTYPE', [['4'], [['4-7', []]]]]);
    expect(await scripts.readLogs([log(0), log(1)], 10)).toEqual([
      [expect.any(BackendCorrupt)],
      [null, ['4'], [['4-7', []]]],
    ]);
    expect(redis.ran).toEqual([{ name: 'readLogs', args: [4, ...keys, 10, 4, 6, 4, 6] }]);
  });

  it.each<[string, (number | string)[], boolean]>([
    ['moved and stood there', [1, 0], true],
    ['are of another generation, or have lost entries', ['stale', 'lost'], true],
    ['could not be written', [1, 'error WRONGTYPE'], false],
  ])('says which cursors %s', async (_, replies, isFine) => {
    const { redis, scripts } = scriptsWith(() => replies);
    const advance = scripts.advance([
      { ...log(0), orders: 20, tail: '11' },
      { ...log(1), orders: 30, tail: '' },
    ]);
    if (isFine) await advance;
    else await expect(advance).rejects.toThrow(BackendCorrupt);
    expect(redis.reconnections).toBe(0);
    expect(redis.ran).toEqual([{ name: 'advance', args: [4, ...keys, 4, 6, 20, '11', 4, 6, 30, ''] }]);
  });

  // What Redis 7.0 and 6.2 answer.
  it.each(['READONLY You can’t write', '@user_script: 24: -READONLY You can’t write'])(
    'shows that the server is no primary any more, whose connection is dropped: %s',
    async (reason) => {
      const { redis, scripts } = scriptsWith(() => [`error ${reason}`]);
      const advance = scripts.advance([{ ...log(0), orders: 20, tail: '11' }]);
      await expect(advance).rejects.toThrow(NotExecuted);
      expect(redis.reconnections).toBe(1);
    },
  );
});

it('only the answer `stale` is refused', () => {
  const ref = { saleId: 's', generation: 4 };
  expect(() => refuseStale('stale', ref)).toThrow(StaleGeneration);
  for (const reply of [0, 1, 'paused', null]) refuseStale(reply, ref);
});

it('a state is set by a publication, or otherwise without one', async () => {
  const { redis, scripts } = scriptsWith(() => 1);
  for (const publish of [true, false])
    await scripts.setState(['one', 'two'], 4, 'open', { rules: 'r1', limit: 3, revision: 7 }, publish);
  const args = (word: string) => [
    expect.any(String),
    2,
    'one',
    'two',
    4,
    'open',
    word,
    'r1',
    3,
    AFTER_ALL_IDS,
    7,
  ];
  expect(redis.ran.map((ran) => ran.args)).toEqual([args('publish'), args('')]);
});

it('what a correction may differ by is a number, or unknown', async () => {
  const { redis, scripts } = scriptsWith(() => 1);
  for (const off of [-3, 0, undefined]) await scripts.correct('segment', 4, 'left', off);
  expect(redis.ran.map(({ args }) => args.at(-1))).toEqual([-3, 0, 'none']);
});
