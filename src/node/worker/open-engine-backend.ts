import type { Config } from '../../config/config.ts';
import { type OpenRedisOptions, openRedis } from '../../engine/cluster/open-redis.ts';
import type { Backend } from '../../engine/contract.ts';
import { LockedBackend } from '../../engine/locked/locked-backend.ts';
import { loadLockWork } from './lock-work.ts';

export interface EngineBackendOptions extends Pick<Config, 'strategy' | 'lockWork'> {
  readonly redis: OpenRedisOptions;
}

/** Opens the backend that an engine takes from, by the strategy. */
export async function openEngineBackend(options: EngineBackendOptions): Promise<Backend> {
  const { strategy, lockWork, redis } = options;
  if (strategy === 'script') return (await openRedis(redis)).backend;
  const inside = lockWork === undefined ? undefined : await loadLockWork(lockWork);
  return LockedBackend.open({ ...redis, inside });
}
