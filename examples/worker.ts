/** A worker that uses the locks alone: one of any number of processes counts at a time. */
import { Locks } from '@stockade-engine/stockade/locks';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');
const locks = await Locks.open({ redis });

const count = await locks.withLock('{report}:count', async (lock) => {
  const before = Number(await redis.get('{report}:counted'));
  lock.assertHeld();
  await redis.set('{report}:counted', before + 1);
  return before + 1;
});
console.log('counted', count);

await locks.close();
redis.disconnect();
