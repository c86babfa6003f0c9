import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { counterKey, EPOCH_MS, e1 } from '../../catalogue/order-ids/e1-counter-ids.ts';
import { e2 } from '../../catalogue/order-ids/e2-stockade-ids.ts';
import type { NamingRow, OrderNames } from '../../catalogue/parts/contract.ts';
import { takenAtMs } from '../../src/engine/order-id.ts';
import { freshPrefix, redisAdminUrl } from '../support/fixtures.ts';

const MIDNIGHT = Date.UTC(2026, 10, 28);
const OVERFLOW = 2 ** 32;
const ROWS: [string, NamingRow][] = [e1, e2].map((row) => [row.id, row]);

let redis: Redis;
let keyPrefix: string;
let open: OrderNames[];
/** Read by every node's clock. */
const time = { ms: MIDNIGHT };

beforeEach(() => {
  redis = new Redis(redisAdminUrl());
  keyPrefix = freshPrefix();
  open = [];
  time.ms = MIDNIGHT;
});
afterEach(async () => {
  await Promise.all(open.map((names) => names.close()));
  redis.disconnect();
});

async function node(row: NamingRow, number = 1, skewMs = 0): Promise<OrderNames> {
  const names = await row.open({ keyPrefix, redis: redisAdminUrl() }, number, {
    now: () => time.ms + skewMs,
  });
  open.push(names);
  return names;
}

async function take(names: OrderNames, count: number): Promise<bigint[]> {
  const ids: bigint[] = [];
  while (ids.length < count) ids.push(BigInt(await names.next()));
  return ids;
}

const lowest = (ids: readonly bigint[]) => ids.reduce((a, b) => (a < b ? a : b));
const highest = (ids: readonly bigint[]) => ids.reduce((a, b) => (a > b ? a : b));
const even = (ms: number) => ((ms - EPOCH_MS) / 1_000) % 2 === 0;

describe('on two nodes, over midnight', () => {
  test.each(ROWS)('%s: ids never repeat, and rise from second to second', async (_, row) => {
    const nodes = [await node(row, 1), await node(row, 2)];
    const seconds: bigint[][] = [];
    for (time.ms = MIDNIGHT - 3_000; time.ms < MIDNIGHT + 3_000; time.ms += 1_000) {
      seconds.push((await Promise.all(nodes.map((names) => take(names, 50)))).flat());
    }
    expect(new Set(seconds.flat()).size).toBe(600);
    for (let i = 1; i < seconds.length; i++) {
      expect(lowest(seconds[i]!)).toBeGreaterThan(highest(seconds[i - 1]!));
    }
    expect(takenAtMs(String(seconds.at(-1)![0]))).toBe(MIDNIGHT + 2_000);
  });

  test.each(ROWS)('%s: ids never repeat even if one clock is a day behind', async (_, row) => {
    const nodes = [await node(row, 1), await node(row, 2, -24 * 3_600_000)];
    const ids: bigint[] = [];
    for (time.ms = MIDNIGHT - 2_000; time.ms < MIDNIGHT + 2_000; time.ms += 1_000) {
      ids.push(...(await Promise.all(nodes.map((names) => take(names, 50)))).flat());
    }
    expect(new Set(ids).size).toBe(400);
  });
});

describe('round trips', () => {
  /**
   * Commands to Redis that name this test's keys while something is done. Other test files use the same server, so lines of
   * MONITOR may arrive together with its first reply, which ioredis takes for an error. So this reads the socket itself.
   */
  async function commandsDuring(act: () => Promise<unknown>): Promise<number> {
    const { hostname, port, username, password } = new URL(redisAdminUrl());
    const socket = connect(Number(port), hostname);
    const lines = createInterface({ input: socket });
    const auth = password === '' ? '' : `AUTH ${username || 'default'} ${password}\r\n`;
    let count = 0;
    const began = new Promise<void>((resolve) => {
      lines.on('line', (line) => line.includes(`"${keyPrefix}begin"`) && resolve());
    });
    const ended = new Promise<void>((resolve) => {
      lines.on('line', (line) => {
        if (line.includes(`"${keyPrefix}end"`)) resolve();
        else if (line.includes(`"${keyPrefix}`) && !line.includes('begin"')) count++;
      });
    });
    socket.write(`${auth}MONITOR\r\n`);
    const announcing = setInterval(() => void redis.echo(`${keyPrefix}begin`), 10);
    await began;
    clearInterval(announcing);
    await act();
    await redis.echo(`${keyPrefix}end`);
    await ended;
    socket.destroy();
    return count;
  }

  test.each(ROWS)('%s: as many per id as the catalogue says', async (_, row) => {
    const names = await node(row);
    expect(await commandsDuring(() => take(names, 100))).toBe(100 * row.roundTrips);
  });
});

describe('what an id reveals', () => {
  /** Two orders of one buyer, with this many orders of others in between: what that buyer can work out. */
  async function spied(row: NamingRow) {
    const names = await node(row);
    const [first] = await take(names, 1);
    await take(names, 999);
    const [second, next] = await take(names, 2);
    return { volume: second! - first! === 1_000n, next: next === second! + 1n };
  }

  test('E1: how many orders there were in between, and the next id', async () => {
    expect(await spied(e1)).toEqual({ volume: true, next: true });
  });

  test('E2: neither', async () => {
    expect(await spied(e2)).toEqual({ volume: false, next: false });
  });
});

describe('the counter of E1, which is new each day', () => {
  /** The id that is given when the counter has got as far as `count` at `ms`. */
  async function idAt(names: OrderNames, ms: number, count: number): Promise<bigint> {
    time.ms = ms;
    await redis.set(counterKey(keyPrefix, ms), count - 1);
    return BigInt(await names.next());
  }
  const evenSecond = even(MIDNIGHT) ? MIDNIGHT : MIDNIGHT + 1_000;
  const oddSecond = evenSecond + 1_000;

  test('starts again at midnight, under another key', async () => {
    const names = await node(e1);
    time.ms = MIDNIGHT - 1;
    await take(names, 7);
    time.ms = MIDNIGHT;
    const [first] = await take(names, 1);
    expect(first! & 0xffff_ffffn).toBe(1n);
    expect(await redis.get(counterKey(keyPrefix, MIDNIGHT - 1))).toBe('7');
  });

  test('gives correct ids up to 2^32 - 1', async () => {
    const id = await idAt(await node(e1), oddSecond, OVERFLOW - 1);
    expect(takenAtMs(String(id))).toBe(oddSecond);
  });

  test('falls back at 2^32, in an odd second', async () => {
    const names = await node(e1);
    const last = await idAt(names, oddSecond, OVERFLOW - 1);
    expect(BigInt(await names.next())).toBe(last - BigInt(OVERFLOW - 1));
  });

  test('names a future second, in an even one', async () => {
    const id = await idAt(await node(e1), evenSecond, OVERFLOW + 5);
    expect(takenAtMs(String(id))).toBe(evenSecond + 1_000);
  });

  test('gives an id twice if it makes 2^32 steps within a second', async () => {
    const names = await node(e1);
    expect(await idAt(names, oddSecond, 5)).toBe(await idAt(names, oddSecond, OVERFLOW + 5));
  });

  test('gives ids twice if Redis loses it within a second', async () => {
    const names = await node(e1);
    const before = await take(names, 3);
    await redis.del(counterKey(keyPrefix, time.ms));
    expect(await take(names, 3)).toEqual(before);
  });
});

test('E2 uses the next second when a worker has named 2^20 orders in one, and repeats none', async () => {
  const names = await node(e2);
  const ids = await take(names, 2 ** 20);
  expect(new Set(ids).size).toBe(2 ** 20);
  const [borrowed] = await take(names, 1);
  expect(takenAtMs(String(borrowed))).toBe(MIDNIGHT + 1_000);
  expect(borrowed!).toBeGreaterThan(highest(ids));
});
