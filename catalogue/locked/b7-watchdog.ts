/**
 * B7: B6 with a watchdog: the lock is renewed for as long as its holder's process lives. A hash counts how often the holder has
 * acquired it, so that it can acquire it again (reentrance). Waiters sleep until a message wakes them.
 *
 * Shows: outlives any work, however long; freed within the expiry when the process dies. But the watchdog can't run in a frozen
 * process (B8), nor reach a primary that has failed over (B9).
 * From: the design of Redisson's RLock: a hash of holder -> count, 30 s, renewed every 10 s, publish on release.
 */
import type { Redis } from 'ioredis';
import { subscriberClient, takeClient } from '../../src/redis/clients.ts';
import { needed, type SellingRow, type Setting } from '../parts/contract.ts';
import { connected, RedisShop } from '../parts/redis-shop.ts';
import { script } from '../parts/script.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { Bells } from './bells.ts';
import { type Acquire, type Hold, LOCK_WAIT_MS, sellingUnder } from './lock.ts';

export const WATCHDOG_TTL_MS = 30_000;

export const b7: SellingRow = {
  kind: 'selling',
  id: 'B7',
  title: 'B6 with a watchdog, reentrant, waiters woken by message',
  stores: ['redis'],
  stock: 'while-held',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const locks = await WatchdogLocks.open(needed(stores, 'redis'), setting);
    const sell = sellingUnder(locks.acquire(shop.key('lock')), shop, setting);
    return shop.strategy(sell, locks);
  },
};

/** Returns the milliseconds until the lock expires; nothing if the holder has it now. */
const ACQUIRE = `
local lock, holder, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', lock) == 1 and redis.call('HEXISTS', lock, holder) == 0 then
  return redis.call('PTTL', lock)
end
redis.call('HINCRBY', lock, holder, 1)
redis.call('PEXPIRE', lock, ttl)
return false
`;

/** The lock's name is also the channel on which its waiters listen. */
const RELEASE = `
local lock, holder, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('HEXISTS', lock, holder) == 0 then return 0 end
if redis.call('HINCRBY', lock, holder, -1) > 0 then return redis.call('PEXPIRE', lock, ttl) end
redis.call('DEL', lock)
return redis.call('PUBLISH', lock, 'free')
`;

const RENEW = `
local lock, holder, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('HEXISTS', lock, holder) == 1 then return redis.call('PEXPIRE', lock, ttl) end
return 0
`;

/** The locks of one node on one Redis. */
export class WatchdogLocks {
  readonly #redis: Redis;
  readonly #subscriber: Redis;
  readonly #bells: Bells;
  readonly #setting: Setting;
  readonly #tryOnce;
  readonly #release;
  readonly #renew;

  private constructor(redis: Redis, subscriber: Redis, setting: Setting) {
    this.#redis = redis;
    this.#subscriber = subscriber;
    this.#bells = new Bells(subscriber);
    this.#setting = setting;
    this.#tryOnce = script<number | null>(redis, 1, ACQUIRE);
    this.#release = script<number>(redis, 1, RELEASE);
    this.#renew = script<number>(redis, 1, RENEW);
  }

  static async open(url: string, setting: Setting): Promise<WatchdogLocks> {
    const redis = await connected(takeClient(url));
    return new WatchdogLocks(redis, await connected(subscriberClient(url)), setting);
  }

  /** A holder that has the lock acquires it again, and must release it as often. */
  acquire(lock: string): Acquire {
    const { steps, clock } = this.#setting;
    return async (holder) => {
      const giveUpAt = clock.now() + LOCK_WAIT_MS;
      let ttl = await this.#tryOnce(lock, holder, WATCHDOG_TTL_MS);
      while (ttl !== null && clock.now() < giveUpAt) {
        const bell = await this.#bells.listen(lock);
        try {
          // The lock may have become free before the waiter began to listen.
          ttl = await this.#tryOnce(lock, holder, WATCHDOG_TTL_MS);
          if (ttl === null) break;
          await steps.at('waiting');
          await clock.sleep(Math.min(ttl, giveUpAt - clock.now()), bell.signal);
          ttl = await this.#tryOnce(lock, holder, WATCHDOG_TTL_MS);
        } finally {
          bell.leave();
        }
      }
      return ttl === null ? this.#hold(lock, holder) : undefined;
    };
  }

  disconnect(): void {
    this.#redis.disconnect();
    this.#subscriber.disconnect();
  }

  #hold(lock: string, holder: string): Hold {
    // If a renewal fails, the next one makes up for it, provided that it comes in time.
    const stop = this.#setting.clock.every(WATCHDOG_TTL_MS / 3, async () => {
      await this.#renew(lock, holder, WATCHDOG_TTL_MS).catch(() => {});
    });
    return {
      release: async () => {
        stop();
        await this.#release(lock, holder, WATCHDOG_TTL_MS);
      },
    };
  }
}
