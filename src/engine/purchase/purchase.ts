/**
 * The state machine of a purchase, from the request to its answer. No other file keeps a part of its state. Each transition
 * is a method below, which throws ForbiddenTransition if the state does not allow it.
 *
 * | state | what is known | its deadline answers |
 * |---|---|---|
 * | queued | nothing was taken: nothing was sent, or the reply said so | busy |
 * | parked | the same; it waits until its sale is rebuilt or has new rules (parking.ts) | unavailable |
 * | sent | a first attempt is on its way, or its refusal waits for the buyer's record | unknown |
 * | unconfirmed | the reply to an attempt was lost, and no later attempt has shown whether it was taken | unknown |
 * | taken | it is in the order log and waits for its commit. Its order id, entry and generation are known | accepted, or unknown where the log dies with the process |
 * | checking | it was taken. No watermark can tell whether it is committed, so its buyer's record is read | unknown |
 * | settled | it is answered | |
 *
 *   queued, parked ──send──> sent ──take──> taken ──commit, accept, reject──> settled
 *         ^                   │ ^             │ ^
 *         └──requeue, park────┤ └─answered─┐  │ └──find──┐
 *                             └───lose──> unconfirmed    │
 *                                             └──check──> checking
 *
 * | transition | made by | from | to |
 * |---|---|---|---|
 * | letIn | live-sale: it was judged by these rules | queued, parked, unconfirmed | the same |
 * | send | take-attempts: the batch is about to be sent | queued, parked, sent | sent |
 * | | sent again | unconfirmed | unconfirmed |
 * | lose | settle: the reply is lost | sent, unconfirmed | unconfirmed |
 * | answered | settle: the segment has served the batch | unconfirmed | sent |
 * | | no earlier attempt was open | queued, parked, sent | the same |
 * | requeue | settle: nothing was taken, and it will be sent again | queued, parked, sent | queued |
 * | | the outcome of the earlier attempt stays unknown | unconfirmed | unconfirmed |
 * | park | parking: its sale is rebuilt or has new rules | queued, parked, sent | parked |
 * | | the outcome of the earlier attempt stays unknown | unconfirmed | unconfirmed |
 * | take | settle: this attempt has taken it | sent | taken |
 * | find | settle: the buyer's record holds its order, or an order with its key | queued, parked, sent, checking | taken |
 * | check | commit-waiters: the watermark does not name its entry | taken, once | checking |
 * | checkAnew | settle, live-sale: the sale is in a newer generation | taken, checking | checking |
 * | refuse | all: nothing was taken for it by the newest attempt | queued, parked, sent | settled |
 * | commit, accept, reject | settle, commit-waiters: it is in Postgres, in the log, refused by Postgres | taken | settled |
 * | giveUp | all: it is not known whether it was taken | any | settled |
 * | expire | under-way: its deadline has passed; lane: it has too little time left to be sent | any | settled |
 *
 * An unconfirmed purchase is never refused, because it may have been taken. The next served take tells: if the order was taken, the
 * buyer's record holds it. But the record no longer holds an order that has ended, or that Redis has lost. If that is possible
 * (`SegmentMark`), `refuse` and `accept` end the purchase as `unknown`.
 *
 * The deadline may settle a purchase between any two steps. So later transitions of a settled purchase do nothing and throw
 * nothing.
 */
import type { Linked } from '../../lib/linked-list.ts';
import type { Outcome, Purchase, PurchaseTrace, TakeOrder, TakeServer } from '../contract.ts';
import { StockadeError } from '../errors.ts';
import { NO_NOTE } from '../sale/order-note.ts';
import { NO_RULES } from '../sale/rules.ts';

export type PurchaseState = 'queued' | 'parked' | 'sent' | 'unconfirmed' | 'taken' | 'checking' | 'settled';

/** Called once, when a purchase has ended. */
export interface PurchaseEnds {
  ended(purchase: LivePurchase, outcome: Outcome): void;
}

/** A transition that the state does not allow: a bug of the engine. */
export class ForbiddenTransition extends StockadeError {
  constructor({ orderId, buyerId, saleId, state }: LivePurchase, transition: string) {
    const which = `the purchase of buyer ${buyerId} in sale ${saleId} (order ${orderId || 'not named yet'})`;
    super('forbidden_transition', `${which} is ${state}: "${transition}" is not allowed. This is a bug`);
  }
}

/**
 * What a lane knows of its segment. If none of it differs between two attempts, no order has left the buyers' records between them.
 * Exception: an order that Postgres rejects for lack of stock leaves its record, but gives no units back.
 */
export interface SegmentMark {
  readonly generation: number;
  /** Units that ended orders had given back to the segment, by its newest reply. */
  readonly returned: number;
  /** The server to which the newest attempt was sent. `undefined`: none was sent yet. */
  readonly server: TakeServer | undefined;
}

function isSameMark(one: SegmentMark, other: SegmentMark): boolean {
  return (
    one.generation === other.generation &&
    one.returned === other.returned &&
    one.server !== undefined &&
    other.server !== undefined &&
    one.server.isSame(other.server)
  );
}

const UNKNOWN: Outcome = { code: 'unknown' };

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A purchase under way. It is also the order in a batch, so that a take needs no further object. */
export class LivePurchase implements TakeOrder, Purchase, Linked<LivePurchase> {
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  readonly awaitCommit: boolean;
  readonly onBehalf: boolean;
  readonly token: string;
  readonly note: string;
  readonly trace: PurchaseTrace | undefined;
  /** On the clock of `monotonicMs`. */
  readonly deadline: number;
  /** `''` until the order is named. */
  readonly orderId: string = '';
  /** Sequence number of the log entry with the order; 0 before it is taken. */
  readonly seq: number = 0;
  /** Generation of the sale in which it was taken; 0 before. */
  readonly generation: number = 0;
  /** First order id of that entry; `''` if it is not known, because the order was found in the buyer's record. */
  readonly entry: string = '';
  /** The rules by which it was let in (rules.ts). */
  readonly rules: string = NO_RULES;
  /** Why these rules refuse it, unless its key names an order that the buyer has already. */
  readonly precheck: Outcome | undefined = undefined;
  /** When it joined the queue of its lane, on the clock of `monotonicMs`. Only the lane uses it. */
  queuedAt = 0;
  /** Its neighbours in the list of purchases under way. */
  before: LivePurchase | undefined = undefined;
  after: LivePurchase | undefined = undefined;
  /** Tells its caller the outcome. */
  readonly done: (outcome: Outcome) => void;
  readonly #ends: PurchaseEnds;
  #state: PurchaseState = 'queued';
  /** How many of its attempts have lost their reply so far. A later reply does not lower the number: `find` relies on that. */
  #lost = 0;
  /** The segment's mark when the purchase last became unconfirmed. `answered` compares it with the mark after the reply. */
  #markAtLoss: SegmentMark | undefined = undefined;
  /** An earlier attempt may have taken the order, and the buyer's record may have lost it since. */
  #mayHaveLeftRecord = false;
  /** See `wasChecked`. */
  #wasChecked = false;

  constructor(purchase: Purchase, deadline: number, ends: PurchaseEnds, done: (outcome: Outcome) => void) {
    this.saleId = purchase.saleId;
    this.buyerId = purchase.buyerId;
    this.quantity = purchase.quantity;
    this.key = purchase.key;
    this.awaitCommit = purchase.awaitCommit;
    this.onBehalf = purchase.onBehalf ?? false;
    this.token = purchase.token ?? '';
    this.note = purchase.note ?? NO_NOTE;
    this.trace = purchase.trace;
    this.deadline = deadline;
    this.#ends = ends;
    this.done = done;
    this.trace?.entered(this.#state);
  }

  get state(): PurchaseState {
    return this.#state;
  }

  get settled(): boolean {
    return this.#state === 'settled';
  }

  get isUnconfirmed(): boolean {
    return this.#state === 'unconfirmed';
  }

  /** Nothing was taken, and no attempt is on its way. */
  get isUnsent(): boolean {
    return this.#state === 'queued' || this.#state === 'parked';
  }

  /** A watermark of this generation has already made the engine read the buyer's record. Reading it again would tell the same. */
  get wasChecked(): boolean {
    return this.#wasChecked;
  }

  /** Gives the order its id, once: the id shows that all its attempts are for one order. */
  name(orderId: string): void {
    if (this.orderId === '') this.#writable.orderId = orderId;
  }

  letIn(rules: string, precheck: Outcome | undefined): void {
    if (this.#state === 'settled') return;
    if (!this.isUnsent && this.#state !== 'unconfirmed') this.#forbid('letIn');
    this.#writable.rules = rules;
    this.#writable.precheck = precheck;
  }

  send(): void {
    if (this.#state === 'settled' || this.#state === 'unconfirmed') return;
    if (!this.isUnsent && this.#state !== 'sent') this.#forbid('send');
    this.#enter('sent');
  }

  /** @param at the mark of the segment when the reply was lost */
  lose(at: SegmentMark): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'sent' && this.#state !== 'unconfirmed') this.#forbid('lose');
    if (this.#state === 'sent') this.#markAtLoss = at;
    this.#lost++;
    this.#enter('unconfirmed');
  }

  /** @param now the mark of the segment after this attempt */
  answered(now: SegmentMark): void {
    if (this.#state === 'unconfirmed') {
      this.#mayHaveLeftRecord ||= this.#markAtLoss === undefined || !isSameMark(this.#markAtLoss, now);
      this.#enter('sent');
    } else if (this.#state === 'taken' || this.#state === 'checking') this.#forbid('answered');
  }

  requeue(): void {
    this.#backTo('requeue', 'queued');
  }

  park(): void {
    this.#backTo('park', 'parked');
  }

  /** @param seq number of the log entry with the order. @param entry name of that entry */
  take(seq: number, entry: string, generation: number): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'sent') this.#forbid('take');
    this.#becomeTaken(seq, entry, generation);
  }

  /** @param order the order in the buyer's record. It has another id if an earlier purchase had the same key */
  find(order: { readonly orderId: string; readonly seq: number }, generation: number): void {
    if (this.#state === 'settled') return;
    if (this.#state === 'unconfirmed' || this.#state === 'taken') this.#forbid('find');
    // Exactly one attempt was lost: it has taken this order, and the record still holds it. After two lost attempts, the record may hold the
    // second take. An order with another id belongs to another request with this key. Neither shows what became of the first take.
    if (order.orderId === this.orderId && this.#state === 'sent' && this.#lost === 1)
      this.#mayHaveLeftRecord = false;
    this.#writable.orderId = order.orderId;
    this.#becomeTaken(order.seq, '', generation);
  }

  check(): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'taken' || this.#wasChecked) this.#forbid('check');
    this.#wasChecked = true;
    this.#enter('checking');
  }

  checkAnew(): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'taken' && this.#state !== 'checking') this.#forbid('checkAnew');
    this.#wasChecked = false;
    this.#enter('checking');
  }

  refuse(refusal: Outcome): void {
    if (this.#state === 'settled') return;
    if (!this.isUnsent && this.#state !== 'sent') this.#forbid('refuse');
    this.#settle(this.#mayHaveLeftRecord ? UNKNOWN : refusal);
  }

  commit(): void {
    this.#afterTake('commit', { code: 'committed', orderId: this.orderId, quantity: this.quantity });
  }

  /** Ends as `unknown` if an earlier take with the same order id may have ended: Postgres would then reject this one. */
  accept(): void {
    const { orderId, quantity } = this;
    this.#afterTake('accept', this.#mayHaveLeftRecord ? UNKNOWN : { code: 'accepted', orderId, quantity });
  }

  /** Postgres has rejected the order. So it has no live order with this id, whatever became of an earlier take. */
  reject(outcome: Outcome): void {
    this.#afterTake('reject', outcome);
  }

  /** It is not known whether it was taken. */
  giveUp(): void {
    if (this.#state !== 'settled') this.#settle(UNKNOWN);
  }

  /** @param durable whether the order log outlives this process, so that a taken order may be called accepted */
  expire(durable: boolean): void {
    if (this.#state === 'settled') return;
    if (this.#state === 'queued') this.refuse({ code: 'busy' });
    else if (this.#state === 'parked') this.refuse({ code: 'unavailable' });
    else if (this.#state === 'taken' && durable) this.accept();
    else this.giveUp();
  }

  #becomeTaken(seq: number, entry: string, generation: number): void {
    this.#writable.seq = seq;
    this.#writable.entry = entry;
    this.#writable.generation = generation;
    this.#enter('taken');
  }

  /** An unconfirmed purchase stays unconfirmed: the attempt whose reply was lost may still have taken it. */
  #backTo(transition: string, next: 'queued' | 'parked'): void {
    if (this.#state === 'settled' || this.#state === 'unconfirmed') return;
    if (!this.isUnsent && this.#state !== 'sent') this.#forbid(transition);
    this.#enter(next);
  }

  #afterTake(transition: string, outcome: Outcome): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'taken') this.#forbid(transition);
    this.#settle(outcome);
  }

  #settle(outcome: Outcome): void {
    this.#enter('settled');
    this.#ends.ended(this, outcome);
  }

  #enter(state: PurchaseState): void {
    this.#state = state;
    this.trace?.entered(state);
  }

  #forbid(transition: string): never {
    throw new ForbiddenTransition(this, transition);
  }

  /** This purchase with writable fields, for this class only. */
  get #writable(): Writable<LivePurchase> {
    return this;
  }
}

/** No purchases: one list, shared by all lanes that have none. */
export const NO_PURCHASES: readonly LivePurchase[] = [];
