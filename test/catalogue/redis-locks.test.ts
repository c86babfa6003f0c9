import { describe, expect, test } from 'vitest';
import { b1 } from '../../catalogue/locked/b1-get-check-set.ts';
import { b2 } from '../../catalogue/locked/b2-get-set-in-mutex.ts';
import { b3 } from '../../catalogue/locked/b3-setnx.ts';
import { b4 } from '../../catalogue/locked/b4-expiry-plain-del.ts';
import { b5 } from '../../catalogue/locked/b5-token-get-then-del.ts';
import { b6 } from '../../catalogue/locked/b6-compare-and-delete.ts';
import { b7, WATCHDOG_TTL_MS, WatchdogLocks } from '../../catalogue/locked/b7-watchdog.ts';
import { b8 } from '../../catalogue/locked/b8-fencing-token.ts';
import { LOCK_TTL_MS } from '../../catalogue/locked/lock.ts';
import type { Point, SellingRow } from '../../catalogue/parts/contract.ts';
import { allAtOnce, buyers, frozenHolder, lastUnit, slowHolder } from './interleavings.ts';
import { byId, Lab, tally } from './lab.ts';

const BEYOND_TTL_MS = WATCHDOG_TTL_MS + 1_000;
const lockOf = (lab: Lab) => `${lab.stores.keyPrefix}{sale}:lock`;

describe('two buyers for the last unit, on one node or two', () => {
  const soldTwice = { atOnce: 2, outcomes: { sold: 2 }, sold: 2, left: 0 };
  const soldOnce = { atOnce: 1, outcomes: { sold: 1, sold_out: 1 }, sold: 1, left: 0 };

  test('B1 sells it to both, though the counter says 0', async () => {
    expect(await lastUnit(b1, 1, 'read')).toEqual(soldTwice);
  });

  test('B2 sells it once on one node', async () => {
    expect(await lastUnit(b2, 1, 'read')).toEqual(soldOnce);
  });

  test('B2 sells it to both on two nodes', async () => {
    expect(await lastUnit(b2, 2, 'read')).toEqual(soldTwice);
  });

  test.each(byId(b3, b4, b5, b6, b7, b8))('%s sells it once on two nodes', async (_, row) => {
    expect(await lastUnit(row, 2, 'read')).toEqual(soldOnce);
  });
});

test('B1 sells 100 units to 200 concurrent buyers, and counts 99 left', async () => {
  await using lab = await Lab.open(b1, { stock: 100 });
  const node = await lab.node();
  expect(tally(await allAtOnce(lab, [node], buyers(200), 'read'))).toEqual({ sold: 200 });
  expect(await node.left()).toBe(99);
});

describe('a holder dies', () => {
  /** ann's node dies while she holds the lock; bob asks at once, and again after `laterMs`. */
  async function deadHolder(row: SellingRow, laterMs: number) {
    await using lab = await Lab.open(row, { stock: 10 });
    const [hers, his] = await lab.nodes(2);
    await lab.atRest(hers!.begin('ann', 'read'));
    await hers!.die();
    const [atOnce] = await lab.finish(his!.begin('bob'));
    await lab.time.pass(laterMs);
    const [later] = await lab.finish(his!.begin('bob'));
    return { atOnce: atOnce!.code, later: later!.code, ttl: await lab.redis.pttl(lockOf(lab)) };
  }

  test('B3 never sells again, because the lock has no expiry', async () => {
    const never = { atOnce: 'failed', later: 'failed', ttl: -1 };
    expect(await deadHolder(b3, 24 * 3_600_000)).toEqual(never);
  });

  const free = { atOnce: 'failed', later: 'sold', ttl: -2 };

  test.each(byId(b4, b5, b6))('%s sells again when the lock has expired', async (_, row) => {
    expect(await deadHolder(row, LOCK_TTL_MS)).toEqual(free);
  });

  test.each(byId(b7, b8))(
    '%s sells again within the expiry: a dead holder’s lock is not renewed',
    async (_, row) => {
      expect(await deadHolder(row, WATCHDOG_TTL_MS)).toEqual(free);
    },
  );
});

describe('a slow holder releases a lock that has expired and belongs to another holder now', () => {
  test.each([
    ['B4', b4, 'written'],
    ['B5', b5, 'compared'],
  ] as [string, SellingRow, Point][])('%s deletes it, and a third enters', async (_, row, slowAt) => {
    expect(await slowHolder(row, slowAt)).toEqual({ ownerAfterwards: 'nobody', third: 'held' });
  });

  test.each([
    ['B6', b6],
    ['B7', b7],
    ['B8', b8],
  ] as [string, SellingRow][])('%s leaves it alone, and the third waits', async (_, row) => {
    expect(await slowHolder(row, 'written')).toEqual({ ownerAfterwards: 'the second', third: 'asleep' });
  });

  test('B5, if it is slow before it compares, does not release it either: only the gap between its two commands is unsafe', async () => {
    expect(await slowHolder(b5, 'written')).toEqual({ ownerAfterwards: 'the second', third: 'asleep' });
  });
});

describe('work that outlives the expiry', () => {
  /** ann has read the stock and is slow; when `ms` have passed, bob asks. */
  async function longWork(row: SellingRow, ms: number) {
    await using lab = await Lab.open(row, { stock: 1 });
    const [hers, his] = await lab.nodes(2);
    const ann = hers!.begin('ann', 'read');
    await lab.atRest(ann);
    await lab.time.pass(ms);
    const bob = his!.begin('bob', 'read');
    await lab.atRest(bob);
    const whileAnnWorks = bob.state;
    const outcomes = await lab.finish(ann, bob);
    return { whileAnnWorks, outcomes: tally(outcomes) };
  }

  test.each(byId(b4, b5, b6))('%s lets another in, and one unit is sold twice', async (_, row) => {
    expect(await longWork(row, LOCK_TTL_MS)).toEqual({ whileAnnWorks: 'held', outcomes: { sold: 2 } });
  });

  test.each(byId(b7, b8))('%s renews it, for hours if need be', async (_, row) => {
    const oneAfterTheOther = { whileAnnWorks: 'asleep', outcomes: { sold: 1, sold_out: 1 } };
    expect(await longWork(row, 4 * 3_600_000)).toEqual(oneAfterTheOther);
  });
});

describe('a holder that is frozen beyond the expiry, with its watchdog, and wakes', () => {
  test('B7 lets it write beside the next holder: one unit is sold twice', async () => {
    expect(await frozenHolder(b7, BEYOND_TTL_MS)).toEqual({ woken: 'sold', next: 'sold', sold: 2, left: 0 });
  });

  test('B8 refuses its write, and the next holder sells', async () => {
    expect(await frozenHolder(b8, BEYOND_TTL_MS)).toEqual({
      woken: 'failed',
      next: 'sold',
      sold: 1,
      left: 0,
    });
  });

  test('B8 also refuses its read, if it was frozen before that', async () => {
    await using lab = await Lab.open(b8, { stock: 5 });
    const hers = await lab.node({ checkBuyer: lab.hangingCheck(BEYOND_TTL_MS + 1_000) });
    const his = await lab.node();
    const ann = hers.begin('ann');
    await lab.atRest(ann);
    hers.clock.frozen = true;
    await lab.time.pass(BEYOND_TTL_MS);
    expect(await his.sell('bob')).toEqual({ code: 'sold' });
    await lab.time.pass(1_000);
    expect((await ann.outcome).code).toBe('failed');
    expect(await his.left()).toBe(4);
  });
});

describe('B7', () => {
  test('wakes a waiter by a message, without a pause', async () => {
    await using lab = await Lab.open(b7, { stock: 10 });
    const [hers, his] = await lab.nodes(2);
    const ann = hers!.begin('ann', 'read');
    await lab.atRest(ann);
    const waiting = ['bob', 'cid', 'dan'].map((buyerId) => his!.begin(buyerId));
    await lab.atRest(...waiting);
    expect(waiting.map(({ state }) => state)).toEqual(['asleep', 'asleep', 'asleep']);
    const { now } = lab.time;
    const outcomes = await Promise.all([ann.finish(), ...waiting.map((call) => call.outcome)]);
    expect(tally(outcomes)).toEqual({ sold: 4 });
    expect(lab.time.now).toBe(now);
  });

  test('gives a holder the lock again, and frees it after as many releases', async () => {
    await using lab = await Lab.open(b7);
    const setting = { steps: { at: () => undefined }, clock: lab.time.clock(), checkBuyer: async () => {} };
    const locks = await WatchdogLocks.open(lab.stores.redis!, setting);
    const lock = lockOf(lab);
    try {
      const outer = await locks.acquire(lock)('ann');
      const inner = await locks.acquire(lock)('ann');
      expect(await lab.redis.hgetall(lock)).toEqual({ ann: '2' });
      await inner!.release();
      expect(await lab.redis.hgetall(lock)).toEqual({ ann: '1' });
      await outer!.release();
      expect(await lab.redis.exists(lock)).toBe(0);
    } finally {
      locks.disconnect();
    }
  });
});
