/** What a process may conclude about a sale whose segments lie on several servers. The test plays the servers. */
import { describe, expect, it } from 'vitest';
import { ClusterSight } from '../../../../src/engine/cluster/cluster-sight.ts';
import { NotExecuted, StaleGeneration } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Command, Reply } from '../../../../src/redis/send-all.ts';

const SALE = { saleId: 's', generation: 2 };
const KEYS = new Keys('p:');
const OUT = '7 1 3';

const replyError = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });

interface Content {
  readonly epochs?: readonly Reply[];
  /** Fields of a segment, or the error with which it is answered. */
  readonly segments?: readonly (Record<string, string> | Error)[];
}

const epochOf = (epoch: string, generation = '2'): Reply => [null, [epoch, generation]];
const published = (left: number, fields: Record<string, string> = {}) => ({
  generation: '2',
  state: 'open',
  left: String(left),
  ...fields,
});

/** Servers that hold a sale. Each reading of the epoch gets the next of `epochs`, or the last one. */
function sightOf({ epochs = [epochOf('5')], segments = [] }: Content): ClusterSight {
  let looks = 0;
  const sale = { key: KEYS.sale('s'), read: () => epochs[Math.min(looks++, epochs.length - 1)]! };
  const answer = ([name, key, ...fields]: Command): Reply => {
    expect(name).toBe('hmget');
    if (key === sale.key) {
      expect(fields).toEqual(['epoch', 'generation']);
      return sale.read();
    }
    const found = segments.find((_, segment) => KEYS.segment({ saleId: 's', segment }).segment === key)!;
    return found instanceof Error ? [found, undefined] : [null, fields.map((field) => found[field] ?? null)];
  };
  return new ClusterSight(async (commands) => commands.map(answer), KEYS);
}

describe('the segments of a sale on several servers', () => {
  it.each(['open', 'paused', 'closed'])(
    'are seen while the sale is %s, with units on their way',
    async (state) => {
      const sight = sightOf({ segments: [published(4, { state }), published(0, { state, out: OUT })] });
      expect(await sight.all(SALE, 2)).toEqual([
        { left: 4, out: undefined },
        { left: 0, out: { seq: '7', receiver: 1, units: 3 } },
      ]);
      expect(await sight.of(SALE, [1, 0])).toMatchObject([{ left: 0 }, { left: 4 }]);
    },
  );

  it('are unknown where a server does not answer', async () => {
    const sight = sightOf({ segments: [published(4), new Error('Connection is closed.')] });
    expect(await sight.all(SALE, 2)).toEqual([{ left: 4, out: undefined }, undefined]);
  });

  it('are not read if a server refuses the command', async () => {
    const sight = sightOf({ segments: [published(4), replyError('WRONGTYPE')] });
    await expect(sight.all(SALE, 2)).rejects.toThrow(NotExecuted);
  });

  it.each([
    ['missing', {}],
    ['of another generation', published(4, { generation: '1' })],
    ['loaded', published(4, { state: 'loaded' })],
    ['frozen', published(4, { state: 'frozen' })],
    ['of another generation and frozen', published(4, { generation: '1', state: 'frozen' })],
  ])('are stale if one is %s', async (_, fields) => {
    const sight = sightOf({ segments: [published(4), fields] });
    await expect(sight.all(SALE, 2)).rejects.toThrow(StaleGeneration);
  });
});

describe('the stock of a sale on several servers', () => {
  const segments = [published(4), published(3)];

  it('is the sum of its segments, at an epoch that has not changed', async () => {
    expect(await sightOf({ segments }).stock(SALE, 2)).toEqual({ total: 7, epoch: 5 });
  });

  it.each<[string, Content]>([
    ['the epoch rises meanwhile', { segments, epochs: [epochOf('5'), epochOf('6')] }],
    ['units are on their way', { segments: [published(4), published(3, { out: OUT })] }],
    ['a server does not answer', { segments: [published(4), new Error('Connection is closed.')] }],
  ])('is unknown if %s', async (_, content) => {
    expect(await sightOf(content).stock(SALE, 2)).toBeUndefined();
  });
});

describe('the epoch of a sale on several servers', () => {
  it('is that of its generation', async () => {
    expect(await sightOf({}).epoch(SALE)).toBe(5);
    await expect(sightOf({ epochs: [epochOf('5', '3')] }).epoch(SALE)).rejects.toThrow(StaleGeneration);
  });

  it.each([new Error('Connection is closed.'), replyError('WRONGTYPE')])(
    'is not read after %s',
    async (error) => {
      await expect(sightOf({ epochs: [[error, undefined]] }).epoch(SALE)).rejects.toMatchObject({
        code: 'not_executed',
        cause: error,
      });
    },
  );
});
