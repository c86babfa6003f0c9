/** The queues of a worker: what buyers do with places and offers, a bounded number at a time. */
import type { Backend } from '../../engine/contract.ts';
import { QUEUE_SHARE } from '../../engine/limits.ts';
import { Bulkhead } from '../../lib/bulkhead.ts';
import { applyReturnsOf } from '../../orders/returns.ts';
import type { Database } from '../../postgres/database.ts';
import { BuyersQueue } from '../../queue/buyers/buyers-queue.ts';
import { DrawReads } from '../../queue/buyers/draw-facts.ts';
import { type Acceptance, type Accepted, acceptOffer } from '../../queue/offers.ts';

/** Single places and offers that are read or changed at a time: enough to keep both connections to Postgres busy. */
const PARALLEL = 16;
const MAX_WAITING = 4_096;

export interface QueueWorkParts {
  readonly backend: Backend;
  readonly db: Database;
  readonly requestDeadlineMs: number;
  readonly fault: (error: unknown) => void;
}

export class QueueWork {
  readonly queue: BuyersQueue;
  /** @returns `undefined` if there is no such order. @throws Busy if nothing was done; or as `acceptOffer` (queue/offers.ts) */
  readonly acceptOffer: (wish: Acceptance, latestMs: number) => Promise<Accepted | undefined>;
  readonly draws: DrawReads;

  constructor({ backend, db, requestDeadlineMs, fault }: QueueWorkParts) {
    const bounds = {
      parallel: PARALLEL,
      maxWaiting: MAX_WAITING,
      maxWaitMs: requestDeadlineMs * QUEUE_SHARE,
    };
    // Those who accept an offer must not wait behind those who ask for their places.
    const [places, offers] = [new Bulkhead(bounds), new Bulkhead(bounds)];
    this.acceptOffer = (wish, latestMs) => offers.run(() => acceptOffer(db, wish, latestMs));
    this.draws = new DrawReads(db);
    this.queue = new BuyersQueue({
      db,
      guarded: (work) => places.run(work),
      applyReturn: (orderId) => applyReturnsOf(db, backend, [orderId]),
      deadlineMs: requestDeadlineMs,
      fault,
    });
  }
}
