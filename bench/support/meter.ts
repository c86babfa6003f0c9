/** The cost of some work: wall time, and processor time of each process that takes part. */
import type { Redis } from 'ioredis';
import { measureCpu } from './cpu-meter.ts';
import type { StoreServers } from './stores.ts';

/** In microseconds; `undefined` where the system does not report it. */
export interface Cost {
  readonly wall: number;
  readonly node: number;
  readonly redis: number;
  readonly postgres: number | undefined;
}

/**
 * Node and Redis report their own time, and the scheduler's account is read for Postgres. These are exact to the microsecond. The
 * system's tables count in hundredths of a second, and a sample may cost Redis less than five of these.
 */
export class Meter {
  readonly #admin: Redis;
  readonly #stores: StoreServers;

  /** @param admin a connection to the measured Redis */
  constructor(admin: Redis, stores: StoreServers) {
    this.#admin = admin;
    this.#stores = stores;
  }

  /** Begins to measure. @returns a function that returns the use since */
  async begin(): Promise<() => Promise<Cost>> {
    const redisBefore = await this.#redisMicros();
    const postgres = measureCpu({ postgres: () => this.#stores.postgres.cpuSeconds() });
    const nodeBefore = process.cpuUsage();
    const began = performance.now();
    return async () => {
      const wall = (performance.now() - began) * 1_000;
      const { user, system } = process.cpuUsage(nodeBefore);
      const seconds = postgres().postgres;
      const redis = (await this.#redisMicros()) - redisBefore;
      return { wall, node: user + system, redis, postgres: seconds && seconds * 1e6 };
    };
  }

  async #redisMicros(): Promise<number> {
    const info = await this.#admin.info('cpu');
    const seconds = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
    return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
  }
}

/** The processor time of all processes together. */
export function cpuOf({ node, redis, postgres = 0 }: Cost): number {
  return node + redis + postgres;
}
