import type { LocksOptions } from '../../locks/lock-options.ts';
import { Locks } from '../../locks/locks.ts';
import { ClusterBackend } from '../cluster/cluster-backend.ts';
import { type OpenRedisOptions, openRedis } from '../cluster/open-redis.ts';
import type {
  AuditStore,
  Backend,
  BackendEvents,
  OrderLog,
  OwnerMark,
  SaleStore,
  SyncChannel,
  TakeStore,
  TransferStore,
} from '../contract.ts';
import { Keys } from '../redis/protocol/keys.ts';
import { ClusterLocks } from './cluster-locks.ts';
import { LockedTakes, type LockedTakesOptions } from './locked-takes.ts';
import { type SegmentLocks, ServerLocks } from './segment-locks.ts';

export interface LockedBackendOptions
  extends OpenRedisOptions,
    Pick<LocksOptions, 'ttlMs'>,
    Pick<LockedTakesOptions, 'inside' | 'insideMaxMs'> {}

/** The backend whose takes get locks. */
type Unlocked = Backend & Required<Pick<Backend, 'owner' | 'syncs'>>;

/** The backend of one Redis or of a Redis Cluster with the `lock` strategy: each take runs under the lock of its segment. */
export class LockedBackend implements Backend {
  readonly durable: boolean;
  readonly isSpread: boolean;
  readonly takes: TakeStore;
  readonly sales: SaleStore;
  readonly log: OrderLog;
  readonly transfers: TransferStore;
  readonly audits: AuditStore;
  readonly owner: OwnerMark;
  readonly syncs: SyncChannel;
  readonly #unlocked: Backend;
  readonly #locks: SegmentLocks;

  private constructor(unlocked: Unlocked, locks: SegmentLocks, options: LockedBackendOptions) {
    // A batch waits for its lock no longer than for the reply to its take.
    const { takeTimeoutMs: lockWaitMs, inside, insideMaxMs } = options;
    this.#unlocked = unlocked;
    this.#locks = locks;
    this.durable = unlocked.durable;
    this.isSpread = unlocked.isSpread ?? false;
    this.takes = new LockedTakes(unlocked.takes, { locks, lockWaitMs, inside, insideMaxMs });
    this.sales = unlocked.sales;
    this.log = unlocked.log;
    this.transfers = unlocked.transfers;
    this.audits = unlocked.audits;
    this.owner = unlocked.owner;
    this.syncs = unlocked.syncs;
  }

  /** @throws as `openRedis` and `Locks.open` */
  static async open(options: LockedBackendOptions): Promise<LockedBackend> {
    const { backend } = await openRedis(options);
    const { urls, keyPrefix, ttlMs } = options;
    const keys = new Keys(keyPrefix);
    try {
      const locks =
        backend instanceof ClusterBackend
          ? new ClusterLocks(backend.primaries, keys, { ttlMs })
          : new ServerLocks(await Locks.open({ url: urls[0]!, ttlMs }), keys);
      return new LockedBackend(backend, locks, options);
    } catch (error) {
      await backend.close();
      throw error;
    }
  }

  subscribe(events: BackendEvents): Promise<() => Promise<void>> {
    return this.#unlocked.subscribe(events);
  }

  async close(): Promise<void> {
    await this.#locks.close();
    await this.#unlocked.close();
  }
}
