/** Every crash point of the lock (src/locks/locks.ts), forced: replies lost, holders frozen and killed, Redis gone. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { NotExecuted } from '../../../src/engine/errors.ts';
import { LockLost, LockNotAcquired } from '../../../src/locks/lock-errors.ts';
import type { LockHandle } from '../../../src/locks/lock-handle.ts';
import { FALLBACK_POLL_MS, lockTimes } from '../../../src/locks/lock-limits.ts';
import { freezeTime } from '../../support/engine/frozen-time.ts';
import { until } from '../../support/fixtures.ts';
import { LockHolder } from '../../support/locks/lock-holder.ts';
import { isSettled, LockStage, untilLater, untilTurned } from '../../support/locks/locks.ts';
import type { Predicate } from '../../support/servers/network/tcp-proxy.ts';

const TTL_MS = 10_000;
/** For tests that let Redis itself end a ttl: nothing else can make it do so. */
const SHORT_TTL_MS = 300;
const { trustMs, renewEveryMs } = lockTimes(TTL_MS);

let stage: LockStage;
let name: string;

beforeAll(async () => {
  stage = await LockStage.start();
});
beforeEach(() => {
  name = stage.name();
});
afterEach(() => stage.reset());
afterAll(() => stage[Symbol.asyncDispose]());

const isSubscription: Predicate = (request) => request.includes('subscribe');
/** A release alone names the channel; all others name the fence. */
const isRelease: Predicate = (request) => request.includes(`${name}:released`) && !isSubscription(request);
const isAttempt: Predicate = (request) => request.includes(`${name}:fence`);

function lossOf({ signal }: LockHandle): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });
}

describe('the reply to an acquisition is lost', () => {
  test('a repeat with the same owner adopts the lock: one token was drawn', async () => {
    const locks = await stage.process({ proxied: true });
    const loss = stage.proxy.loseReplies(isAttempt);
    const acquired = locks.lock(name);
    await loss.lost;
    const drawn = await stage.newestToken(name);
    const held = await acquired;
    expect(held.token).toBe(drawn);
    expect(await stage.newestToken(name)).toBe(drawn);
    await held.release();
    expect(await stage.owner(name)).toBeNull();
  });

  test('the same holds for tryLock', async () => {
    const locks = await stage.process({ proxied: true });
    const loss = stage.proxy.loseReplies(isAttempt);
    const held = await locks.tryLock(name);
    expect(loss.count).toBe(1);
    expect(held?.token).toBe(await stage.newestToken(name));
  });

  test('and all callers have left: the lock is released', async () => {
    const locks = await stage.process({ proxied: true });
    const stop = new AbortController();
    const loss = stage.proxy.loseReplies(isAttempt);
    const waiting = locks.lock(name, { signal: stop.signal });
    await loss.lost;
    expect(await stage.owner(name)).not.toBeNull();
    stop.abort(new Error('no more'));
    await expect(waiting).rejects.toThrow('no more');
    await until(async () => (await stage.owner(name)) === null, { what: 'the lock is given back' });
  });

  test('and its caller has left: the next waiter gets the lock', async () => {
    const locks = await stage.process({ proxied: true });
    const stop = new AbortController();
    const loss = stage.proxy.loseReplies(isAttempt);
    const first = locks.lock(name, { signal: stop.signal });
    const second = locks.lock(name);
    await loss.lost;
    const drawn = await stage.newestToken(name);
    stop.abort(new Error('no more'));
    await expect(first).rejects.toThrow('no more');
    expect((await second).token).toBe(drawn);
  });
});

describe('an acquisition arrives late, after its waiter has left', () => {
  test('no handle has it, and its ttl ends it', async () => {
    const late = await stage.process({ proxied: true, ttlMs: SHORT_TTL_MS });
    const other = await stage.process({ ttlMs: SHORT_TTL_MS });
    const hold = stage.proxy.hold(isAttempt);
    const waiting = late.lock(name, { waitMs: 50 });
    await hold.held;
    await expect(waiting).rejects.toThrow(LockNotAcquired);
    stage.proxy.cutAll();
    stage.proxy.refuse(true);
    await stage.proxy.release();
    expect(await stage.newestToken(name), 'it was acquired').toBeGreaterThan(0);
    expect((await other.lock(name)).held).toBe(true);
  });
});

describe('the reply to a release is lost', () => {
  test('a repeated release does not affect the next holder', async () => {
    const [one, other] = [await stage.process({ proxied: true }), await stage.process()];
    const held = await one.lock(name);
    const waiting = other.lock(name);
    const loss = stage.proxy.loseReplies(isRelease);
    const released = held.release();
    await loss.lost;
    const next = await waiting;
    // The second release finds another holder, which is no sign that the lock was lost.
    await released;
    expect(next.held).toBe(true);
    expect(await stage.owner(name)).not.toBeNull();
  });
});

describe('the reply to a pass within the process is lost', () => {
  test('it is repeated: the next holder has the one token that was drawn', async () => {
    const locks = await stage.process({ proxied: true });
    const held = await locks.lock(name);
    const next = locks.lock(name);
    const loss = stage.proxy.loseReplies(isAttempt);
    await held.release();
    expect(loss.count).toBe(1);
    expect((await next).token).toBe(await stage.newestToken(name));
  });

  test('and Redis can’t be reached until the ttl is over: the release returns, the next waiter seeks the lock', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS, proxied: true });
    freezeTime();
    const held = await locks.lock(name);
    const next = locks.lock(name, { waitMs: 60_000 });
    const loss = stage.proxy.loseReplies(isAttempt);
    stage.proxy.refuse(true);
    const released = held.release();
    await loss.lost;
    const drawn = await stage.newestToken(name);
    await vi.advanceTimersByTimeAsync(trustMs);
    await released;
    expect(await isSettled(next)).toBe(false);
    stage.proxy.refuse(false);
    await untilLater(stage.redis, () => isSettled(next), 'the next one has it');
    expect((await next).token).toBe(drawn);
  });
});

describe('the watchdog', () => {
  test('prolongs the lock at a third of the ttl, for as long as it is held', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS });
    freezeTime();
    const held = await locks.lock(name);
    for (let round = 0; round < 4; round++) {
      await stage.redis.pexpire(name, TTL_MS / 2);
      vi.advanceTimersByTime(renewEveryMs);
      await untilTurned(async () => (await stage.redis.pttl(name)) > TTL_MS / 2, 'the lock is prolonged');
      await stage.quiet();
    }
    expect(held.held).toBe(true);
    await held.release();
    const calls = await stage.scriptCalls();
    vi.advanceTimersByTime(TTL_MS);
    await stage.quiet();
    expect(await stage.scriptCalls()).toBe(calls);
  });

  test('repeats a renewal whose reply is lost, and the holder keeps the lock', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS, proxied: true });
    freezeTime();
    const held = await locks.lock(name);
    const loss = stage.proxy.loseReplies(isAttempt);
    vi.advanceTimersByTime(renewEveryMs);
    await loss.lost;
    await stage.redis.pexpire(name, TTL_MS / 2);
    await untilLater(stage.redis, async () => (await stage.redis.pttl(name)) > TTL_MS / 2, 'it is renewed');
    await stage.quiet();
    expect(held.signal.aborted).toBe(false);
    expect(held.held).toBe(true);
  });
});

describe('the lock is lost', () => {
  test('to another holder: the next renewal is refused, and the first holder is notified at once', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS });
    freezeTime();
    const held = await locks.lock(name);
    await stage.redis.set(name, 'somebody else', 'PX', 60_000);
    const lost = lossOf(held);
    vi.advanceTimersByTime(renewEveryMs);
    expect(await lost).toMatchObject({ name: 'LockLost', lock: name, token: held.token });
    expect(held.held).toBe(false);
    expect(() => held.assertHeld()).toThrow(LockLost);
    await expect(held.release()).rejects.toThrow(LockLost);
    expect(await stage.owner(name)).toBe('somebody else');
  });

  test('with its fence: without a token to compare, a lock protects nothing', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS });
    freezeTime();
    const held = await locks.lock(name);
    await stage.redis.del(`${name}:fence`);
    const lost = lossOf(held);
    vi.advanceTimersByTime(renewEveryMs);
    expect(await lost).toBeInstanceOf(LockLost);
  });

  test('by the holder’s own clock if no renewal can be confirmed, before Redis frees it', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS, proxied: true });
    freezeTime();
    const held = await locks.lock(name);
    stage.proxy.refuse(true);
    stage.proxy.cutAll();
    await stage.quiet();
    await vi.advanceTimersByTimeAsync(trustMs - 1);
    expect(held.held).toBe(true);
    expect(held.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(2);
    expect(held.signal.reason).toBeInstanceOf(LockLost);
    expect(held.signal.reason.cause).toBeInstanceOf(NotExecuted);
    expect(await stage.owner(name)).not.toBeNull();
  });

  test('by a time that counts from the sending of the last confirmed renewal', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS, proxied: true });
    freezeTime();
    const held = await locks.lock(name);
    await stage.redis.pexpire(name, TTL_MS / 2);
    vi.advanceTimersByTime(renewEveryMs);
    await untilTurned(async () => (await stage.redis.pttl(name)) > TTL_MS / 2, 'the lock is renewed');
    await stage.quiet();
    stage.proxy.refuse(true);
    stage.proxy.cutAll();
    await stage.quiet();
    await vi.advanceTimersByTimeAsync(trustMs - 2);
    expect(held.held).toBe(true);
    await vi.advanceTimersByTimeAsync(4);
    expect(held.signal.reason).toBeInstanceOf(LockLost);
  });

  test('when Redis hangs: the holder is notified, then the ttl ends', async () => {
    const locks = await stage.process({ ttlMs: SHORT_TTL_MS });
    const held = await locks.lock(name);
    await stage.server.pause();
    expect(await lossOf(held)).toBeInstanceOf(LockLost);
    stage.server.resume();
    await until(async () => (await stage.owner(name)) === null, { what: 'the ttl has ended it' });
  });

  test('a process that was frozen sees it as soon as it runs, before any timer has fired', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS });
    freezeTime();
    const held = await locks.lock(name);
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now + trustMs + 1);
    expect(held.held).toBe(false);
    await expect(held.release()).rejects.toThrow(LockLost);
    clock.mockRestore();
  });

  describe('while its renewal was under way, and its confirmation comes afterwards', () => {
    /** The renewal was sent in time; when its reply is read, the time of the lease is over, and no timer has fired yet. */
    async function overslept() {
      const locks = await stage.process({ ttlMs: TTL_MS });
      freezeTime();
      const held = await locks.lock(name);
      vi.advanceTimersByTime(renewEveryMs);
      const now = performance.now.bind(performance);
      vi.spyOn(performance, 'now').mockImplementation(() => now() + trustMs - renewEveryMs + 1);
      expect(held.held).toBe(false);
      return { locks, held };
    }

    afterEach(() => vi.restoreAllMocks());

    test('the holder has lost it in spite of that', async () => {
      const { held } = await overslept();
      await stage.quiet();
      expect(held.held).toBe(false);
      expect(held.signal.reason).toBeInstanceOf(LockLost);
    });

    test('a holder that has released it stops renewing it', async () => {
      const { locks, held } = await overslept();
      await expect(held.release()).rejects.toThrow(LockLost);
      await stage.quiet();
      const calls = await stage.scriptCalls();
      vi.advanceTimersByTime(renewEveryMs);
      await stage.quiet();
      expect(await stage.scriptCalls()).toBe(calls);
      expect(await stage.owner(name)).toBeNull();
      expect(await locks.tryLock(name)).toBeDefined();
    });
  });

  test('the waiters of the same process continue', async () => {
    const locks = await stage.process({ ttlMs: TTL_MS });
    freezeTime();
    const held = await locks.lock(name);
    const waiting = locks.lock(name);
    await stage.redis.del(name);
    vi.advanceTimersByTime(renewEveryMs);
    const next = await waiting;
    expect(held.held).toBe(false);
    expect(next.token).toBeGreaterThan(held.token);
  });
});

describe('a message is lost', () => {
  test('a waiter tries again after the poll interval', async () => {
    const [one, other] = [await stage.process({ ttlMs: TTL_MS }), await stage.process({ ttlMs: TTL_MS })];
    freezeTime();
    await one.lock(name);
    const waiting = other.lock(name);
    await stage.quiet();
    // Like a release whose message is lost.
    await stage.redis.del(name);
    vi.advanceTimersByTime(FALLBACK_POLL_MS - 1);
    await stage.quiet();
    expect(await isSettled(waiting)).toBe(false);
    vi.advanceTimersByTime(1);
    expect((await waiting).held).toBe(true);
  });

  test('the connection for messages is down: locks can still be acquired', async () => {
    const [one, other] = [await stage.process(), await stage.process({ proxied: true })];
    const loss = stage.proxy.loseRequests((request) => isSubscription(request) && request.includes(name), {
      times: 1_000,
    });
    const held = await one.lock(name);
    const waiting = other.lock(name);
    await until(() => loss.count > 0, { what: 'the subscription is lost' });
    await held.release();
    expect((await waiting).held).toBe(true);
    loss.cancel();
  });
});

describe('Redis restarts without its data', () => {
  test('the holder loses the lock, the next one has a greater token, and the old one’s writes are refused', async () => {
    const locks = await stage.process({ ttlMs: SHORT_TTL_MS * 10 });
    const held = await locks.lock(name);
    const waiting = locks.lock(name);
    await stage.server.restart();
    expect(await lossOf(held)).toBeInstanceOf(LockLost);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(held.token);
    expect(await stage.write(name, held.token, 'late')).toMatch(/^FENCED/);
    expect(await stage.write(name, next.token, 'right')).toBe('OK');
  });

  test('a release that finds nothing reports the loss, and the next one has the lock', async () => {
    const locks = await stage.process();
    const held = await locks.lock(name);
    const waiting = locks.lock(name);
    await stage.redis.flushall();
    await expect(held.release()).rejects.toThrow(LockLost);
    expect((await waiting).held).toBe(true);
  });

  test('Redis can’t be reached: tryLock fails at once, lock at its wait limit, with the reason', async () => {
    const locks = await stage.process({ proxied: true });
    stage.proxy.refuse(true);
    stage.proxy.cutAll();
    await until(
      () =>
        locks.tryLock(name).then(
          () => false,
          (error) => error instanceof NotExecuted,
        ),
      {
        what: 'the end is noticed',
      },
    );
    const refused = await locks.lock(name, { waitMs: 100 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LockNotAcquired);
    expect(refused).toMatchObject({ cause: expect.any(NotExecuted) });
  });
});

describe('a holder in another process', () => {
  test('is killed: the lock is free within its ttl', async () => {
    const locks = await stage.process({ ttlMs: SHORT_TTL_MS });
    await using holder = await LockHolder.start({ url: stage.server.url, name, ttlMs: SHORT_TTL_MS });
    const waiting = locks.lock(name);
    await holder.kill();
    expect((await waiting).token).toBeGreaterThan(holder.token);
  });

  test('is frozen beyond its ttl: another one gets the lock, and the first one’s writes are refused', async () => {
    const locks = await stage.process({ ttlMs: SHORT_TTL_MS });
    await using holder = await LockHolder.start({ url: stage.server.url, name, ttlMs: SHORT_TTL_MS });
    await holder.freeze();
    const held = await locks.lock(name);
    expect(held.token).toBeGreaterThan(holder.token);
    expect(await stage.write(name, held.token, 'from the new holder')).toBe('OK');
    holder.thaw();
    expect(await holder.write()).toMatch(/^FENCED/);
    expect(await holder.loss()).toMatch(/^LockLost/);
    expect(await stage.redis.get(`${name}:value`)).toBe('from the new holder');
  });
});
