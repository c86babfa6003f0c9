/** A worker that uses the locks alone: one of any number of processes counts at a time. */
import { fenced, fenceKey, Locks } from '@stockade-engine/stockade/locks';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');
const locks = await Locks.open({ redis });

const name = '{report}:count';
/** Refused if another process has had the lock since: a check in this process could come too early. */
const write = fenced("return redis.call('SET', KEYS[1], ARGV[1])");

const count = await locks.withLock(name, async (lock) => {
  const before = Number(await redis.get('{report}:counted'));
  await redis.eval(write, 2, fenceKey(name), '{report}:counted', lock.token, before + 1);
  return before + 1;
});
console.log('counted', count);

await locks.close();
redis.disconnect();
