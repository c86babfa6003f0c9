/**
 * A Redis of its own behind a network that can fail, processes that use locks on it, and a client that inspects the
 * keys.
 */
import { Redis } from 'ioredis';
import { vi } from 'vitest';
import { fenced } from '../../../src/locks/fenced.ts';
import { Locks } from '../../../src/locks/locks.ts';
import { turn } from '../engine/frozen-time.ts';
import { TcpProxy } from '../servers/network/tcp-proxy.ts';
import { RedisServer } from '../servers/redis-server.ts';

/** So short that a reconnection takes many steps, and that no ttl ends within one. */
const STEP_MS = 5;
/** Round trips within a step: behind a proxy, a reply takes several. */
const STEP_ROUND_TRIPS = 4;
const TURNS_LIMIT_MS = 10_000;
/** More successive round trips than anything that a test begins needs. */
const QUIET_ROUND_TRIPS = 40;

export class LockStage implements AsyncDisposable {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  readonly redis: Redis;
  readonly #open: Locks[] = [];
  #names = 0;

  private constructor(server: RedisServer, proxy: TcpProxy) {
    this.server = server;
    this.proxy = proxy;
    this.redis = new Redis(server.url);
  }

  static async start(): Promise<LockStage> {
    const server = await RedisServer.start();
    return new LockStage(server, await TcpProxy.start(server.port));
  }

  /** A user of locks that shares nothing with the others, like another process. Loads the scripts into Redis. */
  async process({ ttlMs, proxied = false }: { ttlMs?: number; proxied?: boolean } = {}): Promise<Locks> {
    const url = proxied ? this.proxy.through(this.server.url) : this.server.url;
    const locks = await Locks.open({ url, ttlMs });
    this.#open.push(locks);
    await locks.withLock(`warm-up-${this.#open.length}`, async () => {});
    return locks;
  }

  /** A name that no other test uses. It is also the lock's key. */
  name(): string {
    return `{test-${++this.#names}}:lock`;
  }

  /** The owner; `null` if the lock is free. */
  owner(name: string): Promise<string | null> {
    return this.redis.get(name);
  }

  async newestToken(name: string): Promise<number> {
    return Number(await this.redis.get(`${name}:fence`));
  }

  /** A write under a lock. @returns `OK`, or the error's message */
  async write(name: string, token: number, value: string): Promise<string> {
    const script = fenced("return redis.call('SET', KEYS[1], ARGV[1])");
    try {
      return String(await this.redis.eval(script, 2, `${name}:fence`, `${name}:value`, token, value));
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Lets everything happen that needs I/O and no time. */
  quiet(): Promise<void> {
    return quiet(this.redis, QUIET_ROUND_TRIPS);
  }

  /** Script calls so far: each attempt, renewal, release and fenced write is one. */
  async scriptCalls(): Promise<number> {
    const stats = await this.redis.info('commandstats');
    return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  }

  /** Repairs the network, lets time pass again, and closes what tests have opened. */
  async reset(): Promise<void> {
    vi.useRealTimers();
    this.proxy.refuse(false);
    await this.proxy.release();
    await Promise.all(this.#open.splice(0).map((locks) => locks.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reset();
    this.redis.disconnect();
    await this.proxy.stop();
    await this.server[Symbol.asyncDispose]();
  }
}

/** Waits for a condition while time is frozen: I/O works, timers don't. */
export async function untilTurned(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const began = process.hrtime.bigint();
  while (!(await condition())) {
    if (process.hrtime.bigint() - began > BigInt(TURNS_LIMIT_MS) * 1_000_000n)
      throw new Error(`not yet: ${what}`);
    await turn();
  }
}

/** Waits for a condition, and moves time in small steps, with I/O in between. */
export function untilLater(
  redis: Redis,
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  return untilTurned(async () => {
    await vi.advanceTimersByTimeAsync(STEP_MS);
    await quiet(redis, STEP_ROUND_TRIPS);
    return condition();
  }, what);
}

/** Waits until all earlier commands are answered: Redis executes commands one after the other. */
async function quiet(redis: Redis, roundTrips: number): Promise<void> {
  for (let i = 0; i < roundTrips; i++) {
    await redis.ping();
    await turn();
  }
}

/** Whether a promise is settled, without waiting for any I/O. */
export function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, turn().then(() => false)]);
}
