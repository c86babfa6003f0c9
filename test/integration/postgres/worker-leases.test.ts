import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { takenAtMs } from '../../../src/engine/order-id.ts';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { assertLeased, isLeased, type LeaseEnd, namingTimeMs } from '../../../src/postgres/lease-end.ts';
import { orderIdKey } from '../../../src/postgres/shared-keys.ts';
import { WorkerLeases } from '../../../src/postgres/worker-leases.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, seed, until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { settablePostgresClock } from '../../support/postgres/settable-postgres-clock.ts';
import { random } from '../../support/random.ts';
import { query } from '../../support/shop/truth.ts';

const HOUR_MS = 3_600_000;
const RENEWAL_MS = 300_000;

let url: string;
let db: Database;
let taken: WorkerLeases[];

beforeEach(async () => {
  url = await freshDatabase();
  db = openDatabase({ url, maxConnections: 4 });
  taken = [];
});

afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await Promise.all(taken.map((leases) => leases.release()));
  await db.destroy();
});

async function take(count: number): Promise<WorkerLeases> {
  const leases = await WorkerLeases.take(db, count);
  taken.push(leases);
  return leases;
}

/** Only these numbers exist from now on. */
const leaveNumbers = (count: number) =>
  query(asAdmin(url), 'DELETE FROM worker_leases WHERE worker >= $1', [count]);

/** Makes all leases this much older. */
const age = (seconds: number) =>
  db.raw("UPDATE worker_leases SET expires_at = expires_at - ? * interval '1 second'", [seconds]);

function stepClock(ms: number): void {
  const { now } = Date;
  vi.spyOn(Date, 'now').mockImplementation(() => now() + ms);
}

describe('numbers', () => {
  test('belong to one holder each, even when many nodes lease at once', async () => {
    const all = await Promise.all(Array.from({ length: 16 }, () => take(4)));
    const numbers = all.flatMap((leases) => leases.numbers);
    expect(new Set(numbers).size).toBe(64);
    for (const leases of all) expect(leases.numbers).toEqual([...leases.numbers].sort((a, b) => a - b));
  });

  test('may be used for an hour by the holder’s clock', async () => {
    const before = Date.now();
    const steadyBefore = monotonicMs();
    const { end } = await take(1);
    expect(end.wallMs).toBeGreaterThanOrEqual(before + HOUR_MS);
    expect(end.wallMs).toBeLessThanOrEqual(Date.now() + HOUR_MS);
    expect(end.monotonicMs).toBeGreaterThanOrEqual(steadyBefore + HOUR_MS);
    expect(end.monotonicMs).toBeLessThanOrEqual(monotonicMs() + HOUR_MS);
  });

  test('that were returned are free for others after the margin, not before', async () => {
    await leaveNumbers(2);
    const first = await take(2);
    await first.release();
    await expect(take(1)).rejects.toMatchObject({ code: 'no_worker_numbers' });
    await age(55);
    await expect(take(1)).rejects.toMatchObject({ code: 'no_worker_numbers' });
    await age(6);
    expect((await take(2)).numbers).toEqual(first.numbers);
  });

  test('of a dead holder are free for others after an hour and the margin', async () => {
    await leaveNumbers(1);
    await take(1);
    await age(3_600 + 55);
    await expect(take(1)).rejects.toMatchObject({ code: 'no_worker_numbers' });
    await age(6);
    expect((await take(1)).numbers).toEqual([0]);
  });

  test('are not kept by a node that asked for too many', async () => {
    await leaveNumbers(3);
    await expect(take(4)).rejects.toMatchObject({
      code: 'no_worker_numbers',
      message: expect.stringContaining('only 3 of 4'),
    });
    expect((await take(3)).numbers).toEqual([0, 1, 2]);
  });

  test('are returned only by their holder', async () => {
    await leaveNumbers(2);
    const [one, other] = [await take(1), await take(1)];
    await one.release();
    await age(61);
    expect((await take(1)).numbers).toEqual(one.numbers);
    expect(other.numbers).not.toEqual(one.numbers);
  });
});

describe('a lease', () => {
  /** Takes a lease, changes its rows, and waits until it is renewed. @returns the reason if the lease is lost */
  async function renewal(tamper: (numbers: readonly number[]) => PromiseLike<unknown>) {
    await db.raw('SELECT 1');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    const leases = await take(2);
    const first = leases.end;
    const told: LeaseEnd[] = [];
    leases.onRenewed((end) => told.push(end));
    await tamper(leases.numbers);
    await vi.advanceTimersByTimeAsync(RENEWAL_MS);
    vi.useRealTimers();
    await until(() => told.length > 0, { what: 'the renewal' });
    expect(told).toEqual([leases.end]);
    return { first, renewed: told[0]!, lost: leases.lost };
  }

  test('is renewed automatically, and its new end reported', async () => {
    const { first, renewed } = await renewal(async () => {});
    expect(renewed.wallMs).toBeGreaterThanOrEqual(first.wallMs + RENEWAL_MS);
  });

  test('is not renewed earlier, while no clock is set', async () => {
    await db.raw('SELECT 1');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
    await take(1);
    const query = vi.spyOn(db, 'raw');
    vi.advanceTimersByTime(RENEWAL_MS - 1);
    expect(query).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(query).toHaveBeenCalledOnce();
  });

  test('that is returned during a renewal is not lost, and not renewed again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    const leases = await take(1);
    const { open: go, opened: held } = gate();
    const raw = db.raw.bind(db);
    const asked = vi.spyOn(db, 'raw').mockImplementationOnce((async (...args: Parameters<typeof raw>) => {
      await held;
      return raw(...args);
    }) as never);
    vi.advanceTimersByTime(RENEWAL_MS);
    expect(asked).toHaveBeenCalledOnce();
    await leases.release();
    let isLost = false;
    void leases.lost.then(() => {
      isLost = true;
    });
    go();
    await asked.mock.results[0]!.value;
    // Later than the reaction to the renewal.
    await db.raw('SELECT 1');
    expect(isLost).toBe(false);
    const before = asked.mock.calls.length;
    vi.advanceTimersByTime(RENEWAL_MS);
    expect(asked.mock.calls.length).toBe(before);
  });

  test('that ran out is renewed, if no other node has its numbers', async () => {
    const { first, renewed } = await renewal(() => age(2 * 3_600));
    expect(renewed.wallMs).toBeGreaterThanOrEqual(first.wallMs + RENEWAL_MS);
  });

  test('is over at once when another node has one of its numbers', async () => {
    const { renewed, lost } = await renewal(([number]) =>
      db.raw("UPDATE worker_leases SET holder = 'another' WHERE worker = ?", [number!]),
    );
    expect(() => assertLeased(renewed)).toThrow(expect.objectContaining({ code: 'not_executed' }));
    expect(await lost).toMatchObject({ code: 'lease_lost' });
  });

  test('that is over forbids the use of its number', () => {
    const [wallMs, steadyMs] = [Date.now(), monotonicMs()];
    const refused = expect.objectContaining({ code: 'not_executed' });
    expect(() =>
      assertLeased({ wallMs: wallMs + 60_000, monotonicMs: steadyMs + 60_000, postgresMs: 0 }),
    ).not.toThrow();
    expect(() => assertLeased({ wallMs: wallMs - 1, monotonicMs: steadyMs + 60_000, postgresMs: 0 })).toThrow(
      refused,
    );
    expect(() => assertLeased({ wallMs: wallMs + 60_000, monotonicMs: steadyMs - 1, postgresMs: 0 })).toThrow(
      refused,
    );
  });

  test('that ended by a clock set ahead is renewed at once, as no other node has the number', async () => {
    const leases = await take(1);
    stepClock(2 * HOUR_MS);
    expect(isLeased(leases.end)).toBe(false);
    await until(() => isLeased(leases.end), { what: 'the renewal' });
    expect(leases.end.wallMs).toBeGreaterThanOrEqual(Date.now() + HOUR_MS - 60_000);
  });

  test('gives order ids Postgres’ time, however the local clock is set', async () => {
    const leases = await take(1);
    const ask = async () => {
      const [row] = await rows<{ ms: number }>(
        db,
        'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms',
      );
      return row!.ms;
    };
    stepClock(24 * HOUR_MS);
    const before = await ask();
    const time = namingTimeMs(leases.end);
    // It may be ahead by the duration of the query for the lease.
    expect(time).toBeGreaterThanOrEqual(before - 1_000);
    expect(time).toBeLessThan(before + 60_000);
  });

  test('is not prolonged by a clock that is set back', async () => {
    const { end } = await take(1);
    stepClock(-2 * HOUR_MS);
    expect(isLeased(end)).toBe(true);
    expect(isLeased({ ...end, monotonicMs: monotonicMs() })).toBe(false);
  });
});

describe('when Postgres’ clock is set', () => {
  const HOUR_S = 3_600;
  const NONE_FREE = { code: 'no_worker_numbers' };

  /** Its lease is over by the clock here, so that Postgres is asked at once. */
  async function renewed(leases: WorkerLeases): Promise<void> {
    let told = false;
    leases.onRenewed(() => {
      told = true;
    });
    stepClock(leases.end.wallMs - Date.now());
    await until(() => told, { what: 'the renewal' });
    vi.restoreAllMocks();
  }

  test('back, a returned number is not leased again before that clock has passed its ids’ times', async () => {
    const clock = await settablePostgresClock(url);
    await leaveNumbers(1);
    const first = await take(1);
    await clock.set(-2 * HOUR_S);
    await first.release();
    const named = namingTimeMs(first.end);
    await clock.set(-HOUR_S);
    await expect(take(1)).rejects.toMatchObject(NONE_FREE);
    await clock.set(0);
    await expect(take(1)).rejects.toMatchObject(NONE_FREE);
    await clock.set(120);
    expect(namingTimeMs((await take(1)).end)).toBeGreaterThan(named);
  });

  test('back, also if its holder has renewed it since, and died', async () => {
    const clock = await settablePostgresClock(url);
    await leaveNumbers(1);
    const first = await take(1);
    await clock.set(-2 * HOUR_S);
    const before = namingTimeMs(first.end);
    await renewed(first);
    expect(namingTimeMs(first.end)).toBeGreaterThanOrEqual(before);
    // It may name orders until its lease ends, and does not answer any more.
    await clock.set(-HOUR_S + 120);
    await expect(take(1)).rejects.toMatchObject(NONE_FREE);
    await clock.set(HOUR_S + 120);
    expect(namingTimeMs((await take(1)).end)).toBeGreaterThan(first.end.postgresMs);
  });

  test('ahead, a holder follows it, and does not go back when it is corrected', async () => {
    const clock = await settablePostgresClock(url);
    const leases = await take(1);
    await clock.set(24 * HOUR_S);
    await renewed(leases);
    const ahead = namingTimeMs(leases.end);
    expect(ahead).toBeGreaterThan(Date.now() + 23 * HOUR_MS);
    await clock.set(0);
    await renewed(leases);
    expect(namingTimeMs(leases.end)).toBeGreaterThanOrEqual(ahead);
  });

  test('in any way, a holder’s ids come after all earlier ones of its number', async () => {
    const { chance, pick, whole } = random(seed());
    const clock = await settablePostgresClock(url);
    await leaveNumbers(2);
    const namedUpTo = new Map<number, number>();
    let held: WorkerLeases[] = [];
    for (let step = 0; step < 60; step++) {
      for (const { numbers, end } of held) {
        const named = isLeased(end) ? namingTimeMs(end) : 0;
        namedUpTo.set(numbers[0]!, Math.max(named, namedUpTo.get(numbers[0]!) ?? 0));
      }
      await clock.set(whole(-5_000, 5_000) * 10 ** whole(0, 2));
      if (held.length > 0 && chance(0.4)) {
        const leaving = pick(held);
        held = held.filter((leases) => leases !== leaving);
        if (chance(0.7)) await leaving.release();
        continue;
      }
      const next = await take(1).catch((error: { code?: string }) => error.code);
      if (next === NONE_FREE.code) continue;
      const { numbers, end } = next as WorkerLeases;
      expect(namingTimeMs(end), `step ${step}`).toBeGreaterThan(namedUpTo.get(numbers[0]!) ?? 0);
      held.push(next as WorkerLeases);
    }
    expect(namedUpTo.size).toBeGreaterThan(0);
  });
});

test('a node whose clock is a day ahead names its orders by the time of Postgres', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-clock-'));
  try {
    const clock = join(folder, 'clock');
    writeFileSync(clock, String(24 * HOUR_MS));
    const preload = fileURLToPath(new URL('../../chaos/clock.mjs', import.meta.url));
    await using node = await startTestNode({
      ...{ redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() },
      env: { WORKERS: '1', NODE_OPTIONS: `--import=${preload}`, CHAOS_CLOCK: clock },
    });
    const { startsAt } = await node.ops.create({ id: 'tickets', stock: 1 }, BY.actor);
    expect(Date.parse(startsAt), 'the clock of the node').toBeGreaterThan(Date.now() + 23 * HOUR_MS);
    const { status, body } = await node.buy('tickets', 'anna');
    expect(status).toBe(201);
    expect(Math.abs(takenAtMs(body.orderId) - Date.now())).toBeLessThan(HOUR_MS);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the key of the order ids is the same for all callers, at once and later', async () => {
  const keys = await Promise.all(Array.from({ length: 8 }, () => orderIdKey(db)));
  keys.push(await orderIdKey(db));
  expect(keys[0]).toHaveLength(32);
  expect(new Set(keys.map((key) => Buffer.from(key).toString('hex'))).size).toBe(1);
  expect(await rows(db, 'SELECT name FROM settings')).toEqual([{ name: 'order_id_key' }]);
});
