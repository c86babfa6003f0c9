/**
 * The product's sync as it runs beside an engine for a long time: it has taken over all sales and read all their logs once. While
 * it is held, it leaves the logs alone, as it does during a rush of buyers, so that taking and committing can be measured
 * separately. Only its sweeps go on, one a second.
 */
import { settings } from '../../src/config/settings.ts';
import type { Backend } from '../../src/engine/contract.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import type { Database } from '../../src/postgres/database.ts';
import { PostgresLocks } from '../../src/postgres/sale-locks.ts';
import { Sync } from '../../src/sync/sync.ts';
import { SyncWatch } from '../support/sync-watch.ts';

/** The first sweep takes over the sales. By the second, the loop has read their logs. */
const SWEEPS_OF_START = 2;
const NOT_YET = Number.NEGATIVE_INFINITY;

export class HeldSync {
  readonly watch = new SyncWatch();
  #isHeld = false;
  /** When sync, since it was last held, first found that it may go on. */
  #lookedAt = NOT_YET;
  #expected = 0;

  private constructor() {}

  /** @throws BenchFailure if sync has reported a fault */
  static async start(
    db: Database,
    databaseUrl: string,
    backend: Backend,
    teardown: Teardown,
  ): Promise<HeldSync> {
    const held = new HeldSync();
    const locks = new PostgresLocks(databaseUrl);
    teardown.add(() => locks.close());
    const sync = new Sync({
      db,
      backend,
      locks,
      events: held.watch.events,
      batchRows: Number(settings.syncBatchRows.fallback),
      backpressure: { isLoadHigh: () => held.#isLoadHigh(), maxMs: Number.POSITIVE_INFINITY },
    });
    await sync.start();
    teardown.add(() => sync.stop());
    await held.watch.swept(SWEEPS_OF_START);
    return held;
  }

  hold(): void {
    this.#isHeld = true;
    this.#lookedAt = NOT_YET;
  }

  /**
   * Resolves when `orders` more are committed. It polls: a hint from a waiting buyer would wake sync at once, and sync could not be
   * held again for a while.
   * @returns milliseconds until sync noticed
   * @throws as `start`
   */
  async release(orders: number): Promise<number> {
    this.#isHeld = false;
    this.#expected += orders;
    const began = performance.now();
    await this.watch.applied(this.#expected);
    return this.#lookedAt - began;
  }

  #isLoadHigh(): boolean {
    if (!this.#isHeld && this.#lookedAt === NOT_YET) this.#lookedAt = performance.now();
    return this.#isHeld;
  }
}
