/** The segment lock as its callers see it. Time is frozen wherever a test must not pass because of it. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { BackendCorrupt, InvalidInput, StockadeError } from '../../../src/engine/errors.ts';
import { fenceKey } from '../../../src/locks/fenced.ts';
import { LockLost, LockNotAcquired } from '../../../src/locks/lock-errors.ts';
import { KEEP_MAX_MS, YIELD_MS } from '../../../src/locks/lock-limits.ts';
import { Locks } from '../../../src/locks/locks.ts';
import { freezeTime } from '../../support/engine/frozen-time.ts';
import { until } from '../../support/fixtures.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { isSettled, LockStage, untilTurned } from '../../support/locks/locks.ts';

let stage: LockStage;

beforeAll(async () => {
  stage = await LockStage.start();
});
afterEach(() => stage.reset());
afterAll(() => stage[Symbol.asyncDispose]());

describe('a lock', () => {
  test('has one holder, and is free when it is released', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    const held = await one.lock(name);
    expect(held.held).toBe(true);
    expect(await other.tryLock(name)).toBeUndefined();
    expect(await one.tryLock(name)).toBeUndefined();
    await held.release();
    expect(held.held).toBe(false);
    expect(() => held.assertHeld()).toThrow('it was released');
    expect(await stage.owner(name)).toBeNull();
    expect(await other.tryLock(name)).toMatchObject({ name, held: true });
  });

  test('lives for its ttl in Redis, with a fence that outlives it', async () => {
    const locks = await stage.process({ ttlMs: 60_000 });
    const name = stage.name();
    await locks.lock(name);
    expect(await stage.redis.pttl(name)).toBeGreaterThan(50_000);
    expect(await stage.redis.pttl(`${name}:fence`)).toBeGreaterThan(23 * 3_600_000);
  });

  test('never lets two of forty workers in four processes work at the same time', async () => {
    const processes = await Promise.all(Array.from({ length: 4 }, () => stage.process()));
    const name = stage.name();
    const counter = `${name}:counter`;
    const workers = Array.from({ length: 40 }, async (_, i) => {
      for (let n = 0; n < 5; n++) {
        const work = async () => {
          const before = Number(await stage.redis.get(counter));
          await stage.redis.set(counter, before + 1);
        };
        // The last one waits for 199 others.
        await processes[i % 4]!.withLock(name, work, { waitMs: 100_000 });
      }
    });
    await Promise.all(workers);
    expect(await stage.redis.get(counter)).toBe('200');
    expect(await stage.owner(name)).toBeNull();
  });

  test('is in the slot of its name’s hash tag, or is a hash tag itself', async () => {
    const locks = await stage.process();
    await locks.lock('shop:{concert:3}:lock');
    await locks.lock('stock-take');
    const keys = (await stage.redis.keys('*')).filter((key) => /concert|stock-take/.test(key));
    expect(keys.sort()).toEqual(
      ['shop:{concert:3}:lock', 'shop:{concert:3}:lock:fence', '{stock-take}', '{stock-take}:fence'].sort(),
    );
  });

  test.each([
    ['', /0 characters/],
    ['x'.repeat(513), /513 characters/],
    ['{concert:3}:fence', /must not end with ":fence": that is the fence of \{concert:3\}/],
  ])('can’t be named %j', async (name, message) => {
    const locks = await stage.process();
    await expect(locks.lock(name)).rejects.toThrow(InvalidInput);
    await expect(locks.tryLock(name)).rejects.toThrow(message);
  });

  test.each([99, 600_001, 150.5])('can’t have a ttl of %d ms', async (ttlMs) => {
    await expect(Locks.open({ url: stage.server.url, ttlMs })).rejects.toThrow(RangeError);
  });

  test('is not mistaken for a key of another kind', async () => {
    const locks = await stage.process();
    const name = stage.name();
    await stage.redis.hset(name, 'field', 'value');
    await expect(locks.lock(name)).rejects.toThrow(BackendCorrupt);
    await expect(locks.tryLock(name)).rejects.toThrow(BackendCorrupt);
    expect(await stage.redis.hget(name, 'field')).toBe('value');
  });
});

describe('the fencing token', () => {
  test('grows with each holder, in any process, and is the newest in Redis', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    const tokens: number[] = [];
    for (const locks of [one, other, one, one, other]) {
      await locks.withLock(name, async ({ token }) => {
        tokens.push(token);
        expect(await stage.newestToken(name)).toBe(token);
      });
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  test('grows also when Redis has lost the last one, or its clock was set back', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const first = await locks.withLock(name, async ({ token }) => token);
    await stage.redis.del(`${name}:fence`);
    const second = await locks.withLock(name, async ({ token }) => token);
    expect(second).toBeGreaterThan(first);
    const ahead = second + 3_600_000_000;
    await stage.redis.set(`${name}:fence`, ahead);
    expect(await locks.withLock(name, async ({ token }) => token)).toBe(ahead + 1);
  });

  test('lets only the newest holder write', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const old = await locks.withLock(name, async ({ token }) => token);
    await locks.withLock(name, async ({ token }) => {
      expect(await stage.write(name, old, 'late')).toMatch(/^FENCED token \d+ is not the newest/);
      expect(await stage.write(name, token + 1, 'from nowhere')).toMatch(/^FENCED/);
      expect(await stage.write(name, token, 'right')).toBe('OK');
    });
    expect(await stage.redis.get(`${name}:value`)).toBe('right');
    await stage.redis.del(`${name}:fence`);
    expect(await stage.write(name, old, 'late')).toMatch(/^FENCED .*missing/);
  });
});

test.each(['shop:{concert:4}:lock', 'no hash tag'])(
  'the fence of a lock that is named %j is where its name says',
  async (name) => {
    const locks = await stage.process();
    await locks.withLock(name, async ({ token }) => {
      expect(await stage.redis.get(fenceKey(name))).toBe(String(token));
    });
  },
);

describe('a waiter', () => {
  test('is woken by the message, without a pause', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    freezeTime();
    const held = await one.lock(name);
    const waiting = other.lock(name);
    await stage.quiet();
    expect(await isSettled(waiting)).toBe(false);
    await held.release();
    expect((await waiting).token).toBeGreaterThan(held.token);
  });

  test('sends nothing to Redis while it waits, even if forty waiters follow it', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    freezeTime();
    await one.lock(name);
    const before = await stage.scriptCalls();
    const waiting = Array.from({ length: 41 }, () => other.lock(name));
    await stage.quiet();
    const asked = (await stage.scriptCalls()) - before;
    // Refused once, then once more because only from then on releases are heard.
    expect(asked).toBe(2);
    await stage.quiet();
    expect((await stage.scriptCalls()) - before).toBe(asked);
    await other.close();
    expect(await Promise.allSettled(waiting)).toHaveLength(41);
  });

  test('gets the lock in order of arrival, each with a greater token', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const held = await locks.lock(name);
    const order: number[] = [];
    const tokens = [held.token];
    const waiting = Array.from({ length: 20 }, (_, i) =>
      locks.withLock(name, async ({ token }) => {
        order.push(i);
        tokens.push(token);
      }),
    );
    await held.release();
    await Promise.all(waiting);
    expect(order).toEqual(order.map((_, i) => i));
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  test('gets the lock within one process by one command', async () => {
    const locks = await stage.process();
    const name = stage.name();
    freezeTime();
    const held = await locks.lock(name);
    const waiting = Array.from({ length: 10 }, () => locks.withLock(name, async () => {}));
    const before = await stage.scriptCalls();
    await held.release();
    await Promise.all(waiting);
    // Ten are handed it, and the last one releases it.
    expect((await stage.scriptCalls()) - before).toBe(11);
  });

  test('in another process gets the lock when a process has kept it for long enough', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    freezeTime();
    const held = await one.lock(name);
    const elsewhere = other.lock(name);
    await stage.quiet();
    const here = [one.lock(name), one.lock(name)] as const;
    await held.release();
    const next = await here[0];
    expect(await isSettled(elsewhere)).toBe(false);
    vi.advanceTimersByTime(KEEP_MAX_MS + 1);
    await next.release();
    const there = await elsewhere;
    expect(await isSettled(here[1])).toBe(false);
    vi.advanceTimersByTime(YIELD_MS);
    await stage.quiet();
    await there.release();
    await here[1];
  });

  test('is rejected at its wait limit, and takes no lock afterwards', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    freezeTime();
    const held = await one.lock(name);
    const waiting = other.lock(name, { waitMs: 300 });
    const refused = expect(waiting).rejects.toThrow(LockNotAcquired);
    await stage.quiet();
    vi.advanceTimersByTime(299);
    await stage.quiet();
    expect(await isSettled(waiting)).toBe(false);
    vi.advanceTimersByTime(1);
    await refused;
    await held.release();
    await stage.quiet();
    expect(await stage.owner(name)).toBeNull();
  });

  test('can give up by a signal, and later ones still get the lock', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const held = await locks.lock(name);
    const stop = new AbortController();
    const first = locks.lock(name, { signal: stop.signal });
    const second = locks.lock(name);
    stop.abort(new Error('changed my mind'));
    await expect(first).rejects.toThrow('changed my mind');
    await held.release();
    expect((await second).held).toBe(true);
    await expect(locks.lock(name, { signal: stop.signal })).rejects.toThrow('changed my mind');
  });

  test('leaves no state when it gives up, even if the holder and earlier waiters stay long', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const held = await locks.lock(name);
    const patient = locks.lock(name);
    const signals: WeakRef<AbortSignal>[] = [];
    let refused = 0;
    for (let i = 0; i < 1_000; i++) {
      const stop = new AbortController();
      signals.push(new WeakRef(stop.signal));
      const given = locks.lock(name, { signal: stop.signal });
      stop.abort();
      // `expect` would keep the promise, and with it the signal.
      await given.catch(() => refused++);
    }
    expect(refused).toBe(signals.length);
    await until(
      () => {
        collectGarbage();
        return signals.filter((signal) => signal.deref()).length < 100;
      },
      { what: 'all but a few are let go of' },
    );
    await held.release();
    expect((await patient).held).toBe(true);
  });

  test.each([0, -1, 600_001, Number.NaN])('can’t wait for %d ms', async (waitMs) => {
    const locks = await stage.process();
    await expect(locks.lock(stage.name(), { waitMs })).rejects.toThrow(RangeError);
  });
});

test.each([
  [null, 'options must be an object'],
  [500, 'options must be an object'],
  [[], 'options must be an object'],
  [{ wait: 500 }, 'wait is not an option: the options are holder, waitMs, signal'],
  [{ signal: {} }, 'signal must be an AbortSignal'],
])('a lock with the options %j is refused with a message, and nothing is held', async (options, message) => {
  const locks = await stage.process();
  const name = stage.name();
  const work = () => expect.fail('it was acquired');
  await expect(locks.withLock(name, work, options as never)).rejects.toThrow(InvalidInput);
  await expect(locks.lock(name, options as never)).rejects.toThrow(message);
  expect(await stage.owner(name)).toBeNull();
});

test('a wait that is a text is refused as such', async () => {
  const locks = await stage.process();
  const waiting = locks.lock(stage.name(), { waitMs: '5' as never });
  await expect(waiting).rejects.toThrow('waitMs is "5", but must be a number from 1 to 600000');
});

describe('tryLock', () => {
  test('refuses options that it does not have', async () => {
    const locks = await stage.process();
    await expect(locks.tryLock(stage.name(), { waitMs: 500 } as never)).rejects.toThrow(
      'waitMs is not an option: the only option is holder',
    );
    await expect(locks.tryLock(stage.name(), null as never)).rejects.toThrow(InvalidInput);
  });

  test('does not wait, and does not overtake waiters', async () => {
    const locks = await stage.process();
    const name = stage.name();
    freezeTime();
    const held = await locks.lock(name);
    const waiting = locks.lock(name);
    const released = held.release();
    expect(await locks.tryLock(name)).toBeUndefined();
    await released;
    expect((await waiting).held).toBe(true);
    expect(await locks.tryLock(name)).toBeUndefined();
  });

  test('leaves no state when it is refused', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    const held = await one.lock(name);
    expect(await other.tryLock(name)).toBeUndefined();
    await held.release();
    expect(await stage.owner(name)).toBeNull();
    expect((await other.tryLock(name))?.held).toBe(true);
  });
});

describe('reentrance', () => {
  test('needs the handle: Redis is not asked, and the last release frees the lock', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const holder = await locks.lock(name);
    const before = await stage.scriptCalls();
    expect(await locks.lock(name, { holder })).toBe(holder);
    expect(await locks.tryLock(name, { holder })).toBe(holder);
    await locks.withLock(name, async (inner) => expect(inner.token).toBe(holder.token), { holder });
    await holder.release();
    await holder.release();
    expect(holder.held).toBe(true);
    expect(await stage.scriptCalls()).toBe(before);
    await holder.release();
    expect(holder.held).toBe(false);
    expect(await stage.owner(name)).toBeNull();
  });

  test('knows the lock by each of its names, and so do those who wait', async () => {
    const locks = await stage.process();
    const [name, key] = ['by-each-name', '{by-each-name}'];
    const holder = await locks.lock(name);
    expect(await locks.lock(key, { holder, waitMs: 20 })).toBe(holder);
    expect(await locks.tryLock(key, { holder })).toBe(holder);
    const waiting = locks.lock(key);
    const later = locks.lock(name);
    for (let i = 0; i < 3; i++) await holder.release();
    const first = await Promise.race([waiting, later]);
    expect(await waiting).toBe(first);
    await first.release();
    expect((await later).token).toBeGreaterThan(first.token);
  });

  test('is not for a handle of another lock, nor for one that was released', async () => {
    const locks = await stage.process();
    const [name, another] = [stage.name(), stage.name()];
    const holder = await locks.lock(another);
    const held = await locks.lock(name, { holder });
    expect(held).not.toBe(holder);
    await held.release();
    expect(await locks.lock(name, { holder: held })).not.toBe(held);
    expect(() => held.enter()).toThrow(LockLost);
  });

  test('is not for a handle of other locks, which may be in another Redis', async () => {
    const [locks, others] = [await stage.process(), await stage.process()];
    const name = stage.name();
    const holder = await others.lock(name);
    expect(await locks.tryLock(name, { holder })).toBeUndefined();
    await expect(locks.lock(name, { holder, waitMs: 20 })).rejects.toThrow(LockNotAcquired);
    expect(await others.tryLock(name, { holder })).toBe(holder);
  });

  test('a lock can’t be released more often than it is held', async () => {
    const locks = await stage.process();
    const held = await locks.lock(stage.name());
    await held.release();
    await expect(held.release()).rejects.toThrow(StockadeError);
  });
});

describe('withLock', () => {
  test('returns the work’s result, and releases the lock', async () => {
    const locks = await stage.process();
    const name = stage.name();
    expect(await locks.withLock(name, async () => 42)).toBe(42);
    expect(await stage.owner(name)).toBeNull();
  });

  test('throws the work’s error, and releases the lock', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const work = locks.withLock(name, async () => {
      throw new Error('no such card');
    });
    await expect(work).rejects.toThrow('no such card');
    expect(await stage.owner(name)).toBeNull();
  });

  test('throws LockLost if another process had the lock before the work ended', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const work = locks.withLock(name, () => stage.redis.set(name, 'somebody else', 'PX', 10_000));
    await expect(work).rejects.toThrow(LockLost);
    expect(await stage.owner(name)).toBe('somebody else');
  });
});

describe('the end of a process', () => {
  test('rejects waiters, tells holders, and releases held locks', async () => {
    const [one, other] = [await stage.process(), await stage.process()];
    const name = stage.name();
    const held = await one.lock(name);
    const waiting = expect(one.lock(name)).rejects.toThrow(/closed/);
    const elsewhere = other.lock(name);
    await one.close();
    await waiting;
    expect(held.signal.reason).toBeInstanceOf(LockLost);
    expect((await elsewhere).held).toBe(true);
    await expect(one.lock(name)).rejects.toThrow(LockNotAcquired);
  });

  test('does not cut off a release under way: the lock is free', async () => {
    const locks = await stage.process();
    const name = stage.name();
    const held = await locks.lock(name);
    const released = held.release();
    await locks.close();
    await released;
    await untilTurned(async () => (await stage.owner(name)) === null, 'the lock is free');
  });

  test('ends an attempt under way, and releases what it acquires', async () => {
    const locks = await stage.process({ proxied: true });
    const name = stage.name();
    const hold = stage.proxy.hold((request) => request.includes(name));
    const waiting = expect(locks.lock(name)).rejects.toThrow(/closed/);
    await hold.held;
    const closed = locks.close();
    await stage.proxy.release();
    await Promise.all([waiting, closed]);
    await untilTurned(async () => (await stage.owner(name)) === null, 'the lock is free');
  });
});

test('a process without locks, waiters and work has no timers', async () => {
  const locks = await stage.process();
  freezeTime();
  await locks.withLock(stage.name(), async () => {});
  // Only the heartbeat of the subscription is left, which began before time was frozen.
  expect(vi.getTimerCount()).toBe(0);
});
