/** The mark of the owner of a Redis. */
import { describe, expect, it } from 'vitest';
import type { SaleStore } from '../../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import { RedisOwner } from '../../../../src/engine/redis/redis-owner.ts';
import type { RedisClient } from '../../../../src/redis/clients.ts';

const OWNER = 'p:{p:changes}:owner';
const OURS = { identity: 'a1', label: 'shop at db-1' };
const OTHER = { identity: 'b2', label: 'shop\nat db 2' };

function marked(stored: Record<string, string> = {}) {
  const keys = new Map(Object.entries(stored));
  const done: unknown[] = [];
  const redis = {
    get: async (key: string) => keys.get(key) ?? null,
    set: async (key: string, value: string, ...options: string[]) => {
      expect([[], ['NX']]).toContainEqual(options);
      if (options.length === 0 || !keys.has(key)) keys.set(key, value);
    },
    hget: async (key: string, field: string) => keys.get(`${key} ${field}`) ?? null,
    del: async (key: string) => done.push(['del', key]),
  };
  const sales = {
    removeSegments: async (...args: unknown[]) => done.push(args),
    olderSegments: async ({ saleId }: { saleId: string }, from: number) => {
      expect(from).toBe(0);
      return [7, 4].map((generation, segment) => ({ saleId, segment, generation }));
    },
  };
  const owner = new RedisOwner(
    redis as unknown as RedisClient,
    new Keys('p:'),
    sales as unknown as SaleStore,
  );
  return { owner, keys, done };
}

describe('the mark of the owner', () => {
  it('is missing in a new Redis', async () => {
    expect(await marked().owner.read()).toBeUndefined();
  });

  it('is read as it was claimed, in another label too', async () => {
    for (const claimed of [OURS, OTHER]) {
      const { owner } = marked();
      expect(await owner.claim(claimed)).toEqual(claimed);
      expect(await owner.read()).toEqual(claimed);
    }
  });

  it('stays with the first one that claims it, until it is replaced', async () => {
    const { owner } = marked();
    await owner.claim(OTHER);
    expect(await owner.claim(OURS)).toEqual(OTHER);
    await owner.replace(OURS);
    expect(await owner.read()).toEqual(OURS);
  });

  it('is the claimed one if it is removed before it is read', async () => {
    const { owner, keys } = marked();
    keys.set = () => keys;
    expect(await owner.claim(OURS)).toEqual(OURS);
  });

  it.each(['', 'a1', ' a1 shop', ' '])('that reads %j is invalid', async (mark) => {
    await expect(marked({ [OWNER]: mark }).owner.read()).rejects.toThrow(BackendCorrupt);
  });
});

it('a Redis is used once a sale was changed there', async () => {
  expect(await marked().owner.isUsed()).toBe(false);
  expect(await marked({ 'p:changes': '1' }).owner.isUsed()).toBe(true);
});

describe('the newest generation of a sale', () => {
  it.each([
    ['3', 7],
    ['9', 9],
  ])('is that of its record, %s, or of a segment', async (generation, newest) => {
    expect(await marked({ 'p:{s}:sale generation': generation }).owner.newestGeneration('s')).toBe(newest);
  });

  it('is 0 if there is neither a record nor a tombstone', async () => {
    expect(await marked().owner.newestGeneration('s')).toBe(0);
  });
});

it('a discarded sale loses its segments of all generations, and then its record', async () => {
  const { owner, done } = marked();
  await owner.discard('s');
  expect(done).toEqual([
    [{ saleId: 's', generation: expect.any(Number) }, 0],
    ['del', 'p:{s}:sale'],
  ]);
  expect((done[0] as [{ generation: number }])[0].generation).toBeGreaterThanOrEqual(2 ** 31);
});
