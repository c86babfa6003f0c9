import { Locks, type LocksOptions } from '../../locks/locks.ts';
import type {
  AuditStore,
  Backend,
  BackendEvents,
  OrderLog,
  OwnerMark,
  SaleStore,
  TakeStore,
  TransferStore,
} from '../contract.ts';
import { Keys } from '../redis/keys.ts';
import { RedisBackend, type RedisBackendOptions } from '../redis/redis-backend.ts';
import { LockedTakes, type LockedTakesOptions } from './locked-takes.ts';

export interface LockedBackendOptions
  extends RedisBackendOptions,
    Pick<LocksOptions, 'ttlMs'>,
    Pick<LockedTakesOptions, 'inside' | 'insideMaxMs'> {}

/** The Redis backend with the `lock` strategy: each take runs under the lock of its segment. */
export class LockedBackend implements Backend {
  readonly durable: boolean;
  readonly takes: TakeStore;
  readonly sales: SaleStore;
  readonly log: OrderLog;
  readonly transfers: TransferStore;
  readonly audits: AuditStore;
  readonly owner: OwnerMark;
  readonly #redis: RedisBackend;
  readonly #locks: Locks;

  private constructor(redis: RedisBackend, locks: Locks, options: LockedBackendOptions) {
    const { keyPrefix, takeTimeoutMs: lockWaitMs, inside, insideMaxMs } = options;
    const keys = new Keys(keyPrefix);
    const lockOf: LockedTakesOptions['lockOf'] = (segment) => keys.segment(segment).lock;
    this.#redis = redis;
    this.#locks = locks;
    this.durable = redis.durable;
    this.takes = new LockedTakes(redis.takes, { locks, lockOf, lockWaitMs, inside, insideMaxMs });
    this.sales = redis.sales;
    this.log = redis.log;
    this.transfers = redis.transfers;
    this.audits = redis.audits;
    this.owner = redis.owner;
  }

  /** @throws as `RedisBackend.open` and `Locks.open` */
  static async open(options: LockedBackendOptions): Promise<LockedBackend> {
    const redis = await RedisBackend.open(options);
    try {
      return new LockedBackend(redis, await Locks.open(options), options);
    } catch (error) {
      await redis.close();
      throw error;
    }
  }

  subscribe(events: BackendEvents): Promise<() => Promise<void>> {
    return this.#redis.subscribe(events);
  }

  async close(): Promise<void> {
    await this.#locks.close();
    await this.#redis.close();
  }
}
