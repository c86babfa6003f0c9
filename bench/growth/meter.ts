/** What some work costs: time that passes, and processor time of each process that has to do with it. */
import type { Redis } from 'ioredis';
import { measureCpu } from '../support/cpu-meter.ts';
import type { StoreServers } from '../support/stores.ts';

/** In microseconds; `undefined` where the system doesn't tell. */
export interface Cost {
  readonly wall: number;
  readonly node: number;
  readonly redis: number;
  readonly postgres: number | undefined;
}

/**
 * Node and Redis are asked themselves, and of Postgres the scheduler's account is read, because they know to the
 * microsecond: the system's tables count in hundredths of a second, and a sample may cost Redis no more than five of these.
 */
export class Meter {
  readonly #admin: Redis;
  readonly #stores: StoreServers;

  /** @param admin a connection to the Redis that is measured */
  constructor(admin: Redis, stores: StoreServers) {
    this.#admin = admin;
    this.#stores = stores;
  }

  /** Begins to measure. @returns a function that gives what was used since */
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
