import type { Outcome, Purchase, TakeOrder } from '../contract.ts';
import { NO_RULES } from '../sale/rules.ts';

/**
 * How far a purchase has got, which decides what may truly be said of it when its deadline passes:
 * queued: nothing was sent, so nothing was taken. parked: the same, because its sale is being built anew, or was when it was
 * last asked for. sent: nobody knows. taken: it is in the order log.
 */
export type Phase = 'queued' | 'parked' | 'sent' | 'taken';

/** A purchase on its way, and at once the order that a take carries. Settled exactly once. */
export class Pending implements TakeOrder, Purchase {
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  readonly awaitCommit: boolean;
  readonly retake: boolean;
  readonly token: string;
  /** On the clock of `monotonicMs`. */
  readonly deadline: number;
  orderId = '';
  /** The log entry that carries the order, once it is taken, and the sale's generation that the entry is of. */
  seq = 0;
  generation = 0;
  /** First order id of that entry; `''` where only the buyer's record names the order. */
  entry = '';
  phase: Phase = 'queued';
  /** When it joined the queue of its lane, on the clock of `monotonicMs`. */
  queuedAt = 0;
  /** An attempt got no reply, and no later one has told what became of it. */
  inDoubt = false;
  settled = false;
  /** Its buyer's record was asked what became of it, because no watermark could tell. */
  wasAsked = false;
  /** By which it was let in. */
  rules = NO_RULES;
  /** Why it may not buy by these, unless its key names an order that it has bought already. */
  barred: Outcome | undefined;
  readonly #done: (outcome: Outcome) => void;

  constructor(purchase: Purchase, deadline: number, done: (outcome: Outcome) => void) {
    this.saleId = purchase.saleId;
    this.buyerId = purchase.buyerId;
    this.quantity = purchase.quantity;
    this.key = purchase.key;
    this.awaitCommit = purchase.awaitCommit;
    this.retake = purchase.retake ?? false;
    this.token = purchase.token ?? '';
    this.deadline = deadline;
    this.#done = done;
  }

  settle(outcome: Outcome): void {
    if (this.settled) return;
    this.settled = true;
    this.#done(outcome);
  }
}
