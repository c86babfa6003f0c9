/**
 * A purchase on its way from the request to its answer: one state machine. No other file keeps a part of its state. Each
 * change is a method below, which throws ForbiddenTransition if the change may not start from the state.
 *
 * | state | what is known | its deadline answers |
 * |---|---|---|
 * | queued | nothing was taken: nothing was sent, or the reply said so | busy |
 * | parked | the same; when it was last asked for, its sale stood still (parking.ts) | unavailable |
 * | sent | a first attempt is on its way, or its refusal waits for the buyer's record | unknown |
 * | unconfirmed | an attempt got no reply, and no later one has told what became of it | unknown |
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
 * | letIn | live-sale: it may be asked for by these rules | queued, parked, unconfirmed | the same |
 * | send | take-attempts: the store is about to execute the batch | queued, parked, sent | sent |
 * | | asked for again | unconfirmed | unconfirmed |
 * | lose | settle: the reply is lost | sent, unconfirmed | unconfirmed |
 * | answered | settle: the segment has served the batch, and thereby told of every attempt | unconfirmed | sent |
 * | | no earlier attempt was open | queued, parked, sent | the same |
 * | requeue | settle: nothing was taken, and it is to be asked for again | queued, parked, sent | queued |
 * | | says nothing of the earlier attempt | unconfirmed | unconfirmed |
 * | park | parking: its sale stands still | queued, parked, sent | parked |
 * | | says nothing of the earlier attempt | unconfirmed | unconfirmed |
 * | take | settle: this attempt has taken it | sent | taken |
 * | find | settle: the buyer's record holds it, or the order of its key | queued, parked, sent, checking | taken |
 * | check | commit-waiters: the watermark does not name its entry | taken, once | checking |
 * | checkAnew | settle, live-sale: the sale is in a newer generation | taken, checking | checking |
 * | refuse | all: nothing was taken for it | queued, parked, sent | settled |
 * | commit, accept, reject | settle, commit-waiters: it is in Postgres, in the log, refused by Postgres | taken | settled |
 * | giveUp | all: it is not known whether it was taken | any | settled |
 * | expire | under-way: its deadline has passed | any | settled |
 *
 * So an unconfirmed purchase is never refused: it may have been taken. Only a served take tells, which `answered` stands for.
 *
 * Its deadline may settle a purchase between any two steps. So a settled purchase ignores all that follows, without an error.
 */
import type { Outcome, Purchase, TakeOrder } from '../contract.ts';
import { StockadeError } from '../errors.ts';
import { NO_RULES } from '../sale/rules.ts';

export type PurchaseState = 'queued' | 'parked' | 'sent' | 'unconfirmed' | 'taken' | 'checking' | 'settled';

/** Where a purchase tells how it ended. Told once. */
export interface PurchaseEnds {
  ended(purchase: LivePurchase, outcome: Outcome): void;
}

/** A step that the state does not allow: a bug of the engine. */
export class ForbiddenTransition extends StockadeError {
  constructor({ orderId, buyerId, saleId, state }: LivePurchase, transition: string) {
    const which = `the purchase of buyer ${buyerId} in sale ${saleId} (order ${orderId || 'not named yet'})`;
    super('forbidden_transition', `${which} is ${state}: "${transition}" is not allowed. This is a bug`);
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** At once the order that a take carries. */
export class LivePurchase implements TakeOrder, Purchase {
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  readonly awaitCommit: boolean;
  readonly retake: boolean;
  readonly token: string;
  /** On the clock of `monotonicMs`. */
  readonly deadline: number;
  /** `''`: not named yet. */
  readonly orderId: string = '';
  /** The log entry that carries the order, and the sale's generation that the entry is of; 0 before it is taken. */
  readonly seq: number = 0;
  readonly generation: number = 0;
  /** First order id of that entry; `''` where only the buyer's record names the order. */
  readonly entry: string = '';
  /** The rules by which it was let in (rules.ts). */
  readonly rules: string = NO_RULES;
  /** Why it may not buy by these, unless its key names an order that it has bought already. */
  readonly precheck: Outcome | undefined = undefined;
  /** When it joined the queue of its lane, on the clock of `monotonicMs`. The lane's own. */
  queuedAt = 0;
  /** Tells its caller the outcome. */
  readonly done: (outcome: Outcome) => void;
  readonly #ends: PurchaseEnds;
  #state: PurchaseState = 'queued';
  /** As a taken one, in this generation. */
  #wasChecked = false;

  constructor(purchase: Purchase, deadline: number, ends: PurchaseEnds, done: (outcome: Outcome) => void) {
    this.saleId = purchase.saleId;
    this.buyerId = purchase.buyerId;
    this.quantity = purchase.quantity;
    this.key = purchase.key;
    this.awaitCommit = purchase.awaitCommit;
    this.retake = purchase.retake ?? false;
    this.token = purchase.token ?? '';
    this.deadline = deadline;
    this.#ends = ends;
    this.done = done;
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

  /** Nothing was taken, and nothing is on its way. */
  get isUnsent(): boolean {
    return this.#state === 'queued' || this.#state === 'parked';
  }

  /** Its buyer's record was read because of a watermark of this generation: it would tell the same again. */
  get wasChecked(): boolean {
    return this.#wasChecked;
  }

  /** Gives the order its id. It keeps the one that it has: by that its attempts are told to be one order. */
  name(orderId: string): void {
    if (this.orderId === '') this.#own.orderId = orderId;
  }

  letIn(rules: string, precheck: Outcome | undefined): void {
    if (this.#state === 'settled') return;
    if (!this.isUnsent && this.#state !== 'unconfirmed') this.#forbid('letIn');
    this.#own.rules = rules;
    this.#own.precheck = precheck;
  }

  send(): void {
    if (this.#state === 'settled' || this.#state === 'unconfirmed') return;
    if (!this.isUnsent && this.#state !== 'sent') this.#forbid('send');
    this.#state = 'sent';
  }

  lose(): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'sent' && this.#state !== 'unconfirmed') this.#forbid('lose');
    this.#state = 'unconfirmed';
  }

  answered(): void {
    if (this.#state === 'unconfirmed') this.#state = 'sent';
    else if (this.#state === 'taken' || this.#state === 'checking') this.#forbid('answered');
  }

  requeue(): void {
    this.#unless('requeue', 'queued');
  }

  park(): void {
    this.#unless('park', 'parked');
  }

  /** @param seq of the log entry, whose name is `entry` */
  take(seq: number, entry: string, generation: number): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'sent') this.#forbid('take');
    this.#isIn(seq, entry, generation);
  }

  /** @param order as the buyer's record holds it; under another id if an earlier purchase had the same key */
  find(order: { readonly orderId: string; readonly seq: number }, generation: number): void {
    if (this.#state === 'settled') return;
    if (this.#state === 'unconfirmed' || this.#state === 'taken') this.#forbid('find');
    this.#own.orderId = order.orderId;
    this.#isIn(order.seq, '', generation);
  }

  check(): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'taken' || this.#wasChecked) this.#forbid('check');
    this.#wasChecked = true;
    this.#state = 'checking';
  }

  checkAnew(): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'taken' && this.#state !== 'checking') this.#forbid('checkAnew');
    this.#wasChecked = false;
    this.#state = 'checking';
  }

  refuse(refusal: Outcome): void {
    if (this.#state === 'settled') return;
    if (!this.isUnsent && this.#state !== 'sent') this.#forbid('refuse');
    this.#settle(refusal);
  }

  commit(): void {
    this.#afterTake('commit', { code: 'committed', orderId: this.orderId, quantity: this.quantity });
  }

  accept(): void {
    this.#afterTake('accept', { code: 'accepted', orderId: this.orderId, quantity: this.quantity });
  }

  /** Postgres has not taken the order. */
  reject(outcome: Outcome): void {
    this.#afterTake('reject', outcome);
  }

  /** It is not known whether it was taken. */
  giveUp(): void {
    if (this.#state !== 'settled') this.#settle({ code: 'unknown' });
  }

  /** @param durable whether the order log outlives this process, so that a taken order may be called accepted */
  expire(durable: boolean): void {
    if (this.#state === 'settled') return;
    if (this.#state === 'queued') this.refuse({ code: 'busy' });
    else if (this.#state === 'parked') this.refuse({ code: 'unavailable' });
    else if (this.#state === 'taken' && durable) this.accept();
    else this.giveUp();
  }

  #isIn(seq: number, entry: string, generation: number): void {
    this.#own.seq = seq;
    this.#own.entry = entry;
    this.#own.generation = generation;
    this.#state = 'taken';
  }

  /** What says that nothing was done now says nothing of an attempt whose reply was lost. */
  #unless(transition: string, next: 'queued' | 'parked'): void {
    if (this.#state === 'settled' || this.#state === 'unconfirmed') return;
    if (!this.isUnsent && this.#state !== 'sent') this.#forbid(transition);
    this.#state = next;
  }

  #afterTake(transition: string, outcome: Outcome): void {
    if (this.#state === 'settled') return;
    if (this.#state !== 'taken') this.#forbid(transition);
    this.#settle(outcome);
  }

  #settle(outcome: Outcome): void {
    this.#state = 'settled';
    this.#ends.ended(this, outcome);
  }

  #forbid(transition: string): never {
    throw new ForbiddenTransition(this, transition);
  }

  /** Read-only for all others. */
  get #own(): Writable<LivePurchase> {
    return this;
  }
}

/** No purchases: one list, shared by all lanes that have none. */
export const NO_PURCHASES: readonly LivePurchase[] = [];
