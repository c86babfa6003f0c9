import type { Config } from '../../config/config.ts';
import { type OpenRedisOptions, openRedis } from '../../engine/cluster/open-redis.ts';
import type { Backend } from '../../engine/contract.ts';
import { LockedBackend } from '../../engine/locked/locked-backend.ts';
import { loadLockWork } from './lock-work.ts';

export interface EngineBackendOptions extends Pick<Config, 'strategy' | 'lockWork'> {
  readonly redis: OpenRedisOptions;
}

/** Opens the backend that an engine takes from, by the strategy. `openStores` has refused locks on a cluster. */
export async function openEngineBackend(options: EngineBackendOptions): Promise<Backend> {
  const { strategy, lockWork, redis } = options;
  if (strategy === 'script') return (await openRedis(redis)).backend;
  const { urls, ...others } = redis;
  const inside = lockWork === undefined ? undefined : await loadLockWork(lockWork);
  return LockedBackend.open({ ...others, url: urls[0]!, inside });
}
