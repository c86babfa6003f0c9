/** What is sent to Redis for many sales, segments or buyers, and what its replies mean. */
import { describe, expect, it, vi } from 'vitest';
import type { Holding } from '../../../../src/engine/contract.ts';
import { MAX_SEGMENTS } from '../../../../src/engine/limits.ts';
import { encodeDigest } from '../../../../src/engine/redis/protocol/codec.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { RedisSales } from '../../../../src/engine/redis/redis-sales.ts';
import type { RedisClient } from '../../../../src/redis/clients.ts';
import type { Command, Reply } from '../../../../src/redis/send-all.ts';

interface Fakes {
  readonly redis?: object;
  readonly scripts?: object;
  readonly replies?: readonly Reply[];
  /** Instead of `replies`. */
  readonly answer?: (command: Command) => Reply;
}

function salesWith({ redis = {}, scripts = {}, replies = [], answer }: Fakes) {
  const sent: Command[] = [];
  const sendAll = vi.fn(async (commands: readonly Command[]) => {
    sent.push(...commands);
    return answer ? commands.map(answer) : replies;
  });
  const fakes = [redis as RedisClient, scripts as Scripts, new Keys('p:')] as const;
  return { sales: new RedisSales(...fakes, sendAll, () => {}), sent, sendAll };
}

const replyError = () => Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' });

describe('the versions of sales', () => {
  const version = { epoch: 6, generation: 2, state: 'open' };

  it('are read together; a sale that is missing or invalid has none', async () => {
    const { sales, sent } = salesWith({
      replies: [
        [null, ['6', '2', 'open', 'r1']],
        [null, ['6', '2', 'open', null]],
        [null, [null, null, null, 'r1']],
        [null, [null, null, null, null]],
        [null, ['6', 'two', 'open', 'r1']],
        [replyError(), undefined],
      ],
    });
    expect(await sales.versions(['a', 'b', 'c', 'd', 'e', 'f'])).toStrictEqual([
      { ...version, rules: 'r1' },
      version,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(sent).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => [
        ...['hmget', `p:{${id}}:sale`, 'epoch', 'generation', 'state', 'rules'],
      ]),
    );
  });

  it('of no sales are known without Redis', async () => {
    const { sales, sendAll } = salesWith({});
    expect(await sales.versions([])).toEqual([]);
    expect(sendAll).not.toHaveBeenCalled();
  });

  it('fail together if the connection fails', async () => {
    const error = new Error('Connection is closed.');
    const { sales } = salesWith({
      replies: [
        [null, ['6', '2', 'open', 'r1']],
        [error, undefined],
      ],
    });
    await expect(sales.versions(['a', 'b'])).rejects.toBe(error);
  });

  it('fail together if the program fails: that is no invalid sale', async () => {
    const { sales } = salesWith({ replies: [[null, [Symbol('no text'), '1', 'open', null]]] });
    await expect(sales.versions(['a'])).rejects.toThrow(TypeError);
  });
});

it('the change counter of a new Redis is empty', async () => {
  const counter = (value: string | null) => salesWith({ redis: { get: async () => value } }).sales;
  expect(await counter(null).changeCounter()).toBe('');
  expect(await counter('17').changeCounter()).toBe('17');
});

describe('sales that are compared', () => {
  const sale = (saleId: string, segments: number) => ({
    ...{ saleId, generation: 1, state: 'open' as const, rules: 'r1' },
    newest: Array.from({ length: segments }, (_, i) => ({ seq: i, tail: String(i), orders: i })),
  });

  /** The number of keys of each command. */
  async function commandsFor(...segments: number[]): Promise<number[]> {
    const expected = segments.map((count, i) => sale(`s${i}`, count));
    const commands: number[] = [];
    const digest = async (asked: { segments: string[]; sale: string }[]) => {
      commands.push(asked.reduce((sum, one) => sum + one.segments.length + 1, 0));
      return asked.map((one) => encodeDigest(expected.find(({ saleId }) => one.sale.includes(saleId))!));
    };
    const { sales } = salesWith({ scripts: { digest } });
    expect(await sales.matches(expected)).toEqual(segments.map(() => true));
    return commands;
  }

  it('are as many in one command as have 512 keys, which Redis compares without a pause', async () => {
    expect(await commandsFor(255, 255)).toEqual([512]);
    expect(await commandsFor(255, 256)).toEqual([256, 257]);
    expect(await commandsFor(600, 1)).toEqual([601, 2]);
  });
});

describe('holdings that are loaded', () => {
  const ref = { saleId: 's', segment: 0, generation: 2 };
  const holdingsOf = (count: number): Holding[] =>
    Array.from({ length: count }, (_, i) => ({
      buyerId: `b${String(i).padStart(4, '0')}`,
      orders: [{ orderId: String(i), quantity: 1, seq: 0, key: '' }],
    }));

  it.each([
    [0, [0], []],
    [999, [999], []],
    [1_000, [1_000], []],
    [1_001, [1_000, 1], ['b0999']],
    [3_000, [1_000, 1_000, 1_000], ['b0999', 'b1999']],
  ])(
    'of %i buyers are written a thousand at a time; each write begins where the one before has ended',
    async (count, sizes, ends) => {
      const loadHoldings = vi.fn(async (..._: unknown[]) => 1);
      const { sales } = salesWith({ scripts: { loadHoldings } });
      const holdings = holdingsOf(count);
      await sales.loadHoldings(ref, { after: 'anna', upTo: 'zoe', holdings });
      const writes = loadHoldings.mock.calls.map(([, generation, range, records]) => ({
        ...{ generation, range, buyers: (records as string[]).length / 2 },
      }));
      const [froms, tos] = [
        ['anna', ...ends],
        [...ends, 'zoe'],
      ];
      expect(writes).toEqual(
        sizes.map((buyers, i) => ({ generation: 2, range: { after: froms[i], upTo: tos[i] }, buyers })),
      );
      const records = loadHoldings.mock.calls.flatMap((call) => call[3] as string[]);
      expect(records).toEqual(holdings.flatMap(({ buyerId }, i) => [buyerId, `${i}:1:0:`]));
    },
  );

  it('are written to a draft a thousand at a time; each write names the one before', async () => {
    const draftHoldings = vi.fn(async (..._: unknown[]) => 1);
    const { sales } = salesWith({ scripts: { draftHoldings } });
    for (const [i, count] of [2_001, 0, 1].entries())
      await sales.draftHoldings({ ...ref, draft: { id: 'mine', writes: i + 1 } }, holdingsOf(count));
    const stamps = draftHoldings.mock.calls.map(([, before, stamp]) => [before, stamp]);
    expect(stamps).toEqual([
      ['mine 0 0', 'mine 0 1'],
      ['mine 0 1', 'mine 0 2'],
      ['mine 0 2', 'mine 1 0'],
      ['mine 1 0', 'mine 2 0'],
      ['mine 2 0', 'mine 3 0'],
    ]);
  });
});

describe('how far segments are loaded', () => {
  const upTo = (...replies: Reply[]) =>
    salesWith({ replies }).sales.loadedUpTo({ saleId: 's', generation: 2 }, replies.length);

  it('is the smallest id, and nothing if a segment is in another state', async () => {
    expect(await upTo([null, ['2', 'loaded', 'ben']], [null, ['2', 'loaded', 'anna']])).toBe('anna');
    expect(await upTo([null, ['2', 'loaded', 'ben']], [null, ['2', 'loaded', null]])).toBe('');
    for (const other of [
      ['1', 'loaded', 'anna'],
      ['2', 'open', 'anna'],
      [null, null, null],
    ])
      expect(await upTo([null, ['2', 'loaded', 'ben']], [null, other])).toBeUndefined();
  });

  it('is unknown if a segment can’t be read', async () => {
    const error = replyError();
    await expect(upTo([null, ['2', 'loaded', 'ben']], [error, undefined])).rejects.toBe(error);
  });
});

describe('segments of older generations', () => {
  /** Segments, with their generations, in the order of the numbers. */
  async function found(generations: Record<number, string>, from: number) {
    const asked: number[] = [];
    const answer = ([name, key, field]: Command): Reply => {
      expect([name, field]).toEqual(['hget', 'generation']);
      asked.push(Number(/:(\d+)\}/.exec(String(key))![1]));
      return [null, generations[asked.at(-1)!] ?? null];
    };
    const { sales } = salesWith({ answer });
    return { older: await sales.olderSegments({ saleId: 's', generation: 10 }, from), asked };
  }

  it('are those before the generation, from a number on', async () => {
    const { older, asked } = await found({ 1: '8', 2: '9', 3: '10', 4: '11', 70: '2' }, 2);
    expect(older).toEqual([
      { saleId: 's', segment: 2, generation: 9 },
      { saleId: 's', segment: 70, generation: 2 },
    ]);
    expect(asked).toEqual(Array.from({ length: 3 * 64 }, (_, i) => i + 2));
  });

  it('are looked for up to the first 64 numbers without a segment', async () => {
    const { older, asked } = await found({ 64: '1' }, 0);
    expect([older, asked.length]).toEqual([[], 64]);
  });

  it('are unknown if a segment can’t be read', async () => {
    const error = replyError();
    const { sales } = salesWith({ replies: [[error, undefined]] });
    await expect(sales.olderSegments({ saleId: 's', generation: 10 }, 0)).rejects.toBe(error);
  });
});

describe('segments that are removed', () => {
  async function pages(from: number, isThere: (first: number) => boolean): Promise<number[]> {
    const firsts: number[] = [];
    const removeSegments = async (segments: { segment: string }[]) => {
      expect(segments).toHaveLength(64);
      const numbers = segments.map(({ segment }) => Number(/:(\d+)\}/.exec(segment)![1]));
      expect(numbers).toEqual(numbers.map((_, i) => numbers[0]! + i));
      firsts.push(numbers[0]!);
      return isThere(numbers[0]!) ? 1 : 0;
    };
    await salesWith({ scripts: { removeSegments } }).sales.removeSegments(
      { saleId: 's', generation: 2 },
      from,
    );
    return firsts;
  }

  it('are looked for up to the first 64 of which none is there', async () => {
    expect(await pages(3, (first) => first < 100)).toEqual([3, 67, 131]);
  });

  it('are looked for up to the largest number that a segment can have', async () => {
    const all = await pages(0, () => true);
    expect([all.length, all.at(-1)]).toEqual([MAX_SEGMENTS / 64, MAX_SEGMENTS - 64]);
  });
});
