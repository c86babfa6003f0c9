/** The queues of a worker: their tokens, and what buyers do with places and offers, a bounded number at a time. */
import { OfferTokens } from '../../admission/offer-token.ts';
import { PlaceTokens } from '../../admission/place-token.ts';
import type { SigningKeys } from '../../admission/signer.ts';
import type { Backend } from '../../engine/contract.ts';
import { QUEUE_SHARE } from '../../engine/limits.ts';
import type { PublicHost } from '../../http/public/public-server.ts';
import { Bulkhead } from '../../lib/bulkhead.ts';
import { applyReturnsOf } from '../../orders/returns.ts';
import type { Database } from '../../postgres/database.ts';
import { BuyersQueue } from '../../queue/buyers/buyers-queue.ts';
import { DrawReads } from '../../queue/buyers/draw-facts.ts';
import { acceptOffer } from '../../queue/offers.ts';

/** Single places and offers that are read or changed at a time: enough to keep both connections to Postgres busy. */
const PARALLEL = 16;
const MAX_WAITING = 4_096;

export interface QueueWorkParts {
  readonly keys: SigningKeys;
  readonly backend: Backend;
  readonly db: Database;
  readonly requestDeadlineMs: number;
  readonly fault: (error: unknown) => void;
}

export class QueueWork {
  readonly queueSigners: PublicHost['queueSigners'];
  readonly queue: BuyersQueue;
  readonly acceptOffer: PublicHost['acceptOffer'];
  readonly draws: DrawReads;

  constructor({ keys, backend, db, requestDeadlineMs, fault }: QueueWorkParts) {
    const bounds = {
      parallel: PARALLEL,
      maxWaiting: MAX_WAITING,
      maxWaitMs: requestDeadlineMs * QUEUE_SHARE,
    };
    // Those who accept an offer must not wait behind those who ask for their places.
    const [places, offers] = [new Bulkhead(bounds), new Bulkhead(bounds)];
    this.queueSigners = { places: new PlaceTokens(keys), offers: new OfferTokens(keys) };
    this.acceptOffer = (wish) => offers.run(() => acceptOffer(db, wish));
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
