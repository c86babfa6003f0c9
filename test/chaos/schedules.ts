import type { Schedule } from './schedule.ts';
import { CLOCKS } from './schedules/clocks.ts';
import { EVICTION } from './schedules/eviction.ts';
import { NETWORK } from './schedules/network.ts';
import { POSTGRES } from './schedules/postgres.ts';
import { PROCESSES } from './schedules/processes.ts';
import { REDIS } from './schedules/redis.ts';
import { storm } from './schedules/storm.ts';

const SINGLE: readonly Schedule[] = [...PROCESSES, ...NETWORK, ...REDIS, ...EVICTION, ...POSTGRES, ...CLOCKS];

export const SCHEDULES: readonly Schedule[] = [...SINGLE, storm(SINGLE)];

/** @throws if no fault has this name */
export function scheduleNamed(name: string): Schedule {
  return namedAmong(SCHEDULES, name);
}

/** @throws if none of these has this name */
export function namedAmong<T extends Schedule>(all: readonly T[], name: string): T {
  const found = all.find((schedule) => schedule.name === name);
  if (found) return found;
  throw new Error(`there is no fault ${name}; there are ${all.map((one) => one.name).join(', ')}`);
}
