/**
 * B10: B6 on several primaries that know nothing of each other. A client that has the lock on more than half of them holds it.
 *
 * Shows: survives the loss of a minority, which B9 doesn't. A holder that is frozen beyond the expiry still writes when it
 * resumes, as in B7; only B8 stops it.
 * From: Redlock (S. Sanfilippo), and the debate about it: M. Kleppmann, "How to do distributed locking" (2016).
 */
import { Redis } from 'ioredis';
import { needed, type SellingRow, type Setting } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { deleteIfMine, owned } from './b6-compare-and-delete.ts';
import { type Acquire, LOCK_TTL_MS, sellingUnder, spinning } from './lock.ts';

/** A slower server counts as lost, because the lock's time runs meanwhile. */
const ANSWER_LIMIT_MS = 500;
/** An allowance for servers' clocks that run faster than ours while the lock is held. */
const DRIFT_MS = LOCK_TTL_MS / 100;

export const b10: SellingRow = {
  kind: 'selling',
  id: 'B10',
  title: 'quorum over several primaries (Redlock)',
  stores: ['redis', 'lockRedis'],
  stock: 'while-held',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const servers = await Promise.all(needed(stores, 'lockRedis').map(server));
    const acquire = spinning(setting, byMajority(servers, shop.key('lock'), setting));
    const disconnect = () => {
      for (const redis of servers) redis.disconnect();
    };
    return shop.strategy(sellingUnder(acquire, shop, setting), { disconnect });
  },
};

function byMajority(servers: readonly Redis[], lock: string, { clock }: Setting): Acquire {
  const majority = Math.floor(servers.length / 2) + 1;
  const eachAcquire = servers.map((redis) => owned(redis, lock));
  return async (holder) => {
    const began = clock.now();
    const answers = await Promise.allSettled(eachAcquire.map((acquire) => acquire(holder)));
    const granted = answers.filter((answer) => answer.status === 'fulfilled' && answer.value !== undefined);
    // On all servers: one that did not answer may have granted it.
    const release = async () => {
      await Promise.allSettled(servers.map((redis) => deleteIfMine(redis, lock, holder)));
    };
    const validMs = LOCK_TTL_MS - DRIFT_MS - (clock.now() - began);
    if (granted.length >= majority && validMs > 0) return { release };
    await release();
    return undefined;
  };
}

/** A server that can't be reached is tried again each time, without waiting for it. */
async function server(url: string): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: ANSWER_LIMIT_MS,
  });
  redis.on('error', () => {});
  await redis.connect().catch(() => {});
  return redis;
}
