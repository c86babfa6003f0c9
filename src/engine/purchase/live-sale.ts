/**
 * A sale in one worker. It lets purchases in, runs the lanes, and decides what happens to purchases that leave their lane.
 *
 *   judge ──let in──> lane of the home segment ──run──> settled, or waiting for the commit
 *     │                ^        └──left──┬──stale──> parking, or the next generation's lane
 *     │                │                 ├──outdated──> judged again
 *     │                │                 ├──refused, with a key──┐
 *     │                │                 └──checking─────────────┤
 *     ├──refused, with a key──────────────────────────────────> the buyer's record (purchase-resolver.ts) ──> settled, or waiting
 *     └──the sale is being rebuilt, or its rules change──> parking ──over──> judged again
 *
 * All calls go down from here: to the lanes, the parking and the records. They answer by what they return.
 *
 * The view is replaced when the sale changes. Lanes live as long as a generation. The next generation may have another number of
 * segments, so that buyers have other home segments, and its log entries are counted from 1 again.
 *
 * A sale that is gone (`end`) gets no new purchases, no watermarks and no news. Its segments answer `stale`. What is still in it:
 *
 * | the purchase is | it ends as |
 * |---|---|
 * | queued, parked, sent, unconfirmed | as in any sale, by the reply of its segment or its deadline; the board never calls it sold out |
 * | taken, and waits for its commit | `unknown` at once: neither a watermark nor the buyer's record will tell |
 * | checking | `unknown`, by its deadline |
 *
 * Orders that no watermark has confirmed are reported as after a rebuild: the logs were salvaged before their segments went.
 */
import pLimit from 'p-limit';
import { NO_SLOT } from '../board/board.ts';
import type { Directory, SaleView } from '../board/directory.ts';
import type { Outcome, SaleRecord, SegmentRef, Watermark } from '../contract.ts';
import { homeSegment } from '../sale/home-segment.ts';
import { NO_RULES } from '../sale/rules.ts';
import { Lane, type LaneParts, type LaneSale } from './lane.ts';
import { Parking } from './parking.ts';
import type { LivePurchase } from './purchase.ts';
import type { PurchaseResolver } from './purchase-resolver.ts';
import { type CheckToken, judge, type SaleFacts, type Verdict } from './refuse.ts';
import type { HandedBack } from './settle.ts';

/** Pause before a store that did not answer is asked again whether it has lost orders. */
const CHECK_PAUSE_MS = 1_000;

/** What the sales of a worker share. */
export interface LiveSaleParts extends LaneParts {
  readonly directory: Pick<Directory, 'refresh'>;
  readonly resolver: PurchaseResolver;
  readonly checkToken: CheckToken | undefined;
}

export class LiveSale implements LaneSale, SaleFacts {
  record: SaleRecord;
  slot: number;
  lanes: (Lane | undefined)[];
  isGone = false;
  readonly refills = pLimit(1);
  readonly #parts: LiveSaleParts;
  readonly #parking = new Parking(() => this.#endParking());
  /** Lanes that will be checked again, with their timers. */
  readonly #checks = new Map<Lane, NodeJS.Timeout>();

  constructor(parts: LiveSaleParts, view: SaleView) {
    this.#parts = parts;
    this.record = view.record;
    this.slot = view.slot;
    this.lanes = new Array(view.record.sale.segments);
  }

  /** Whether a purchase may have a token. When the queue is turned off, the offers that were made can still be accepted. */
  get asksForToken(): boolean {
    const { requireToken, queue, hadQueue } = this.record.sale;
    return requireToken || queue !== undefined || hadQueue === true;
  }

  get rules(): string {
    return this.record.rules ?? NO_RULES;
  }

  /** Whether every lane has just refused a purchase, so that the next one is refused in any lane. */
  get isShedding(): boolean {
    for (let i = 0; i < this.lanes.length; i++) if (!this.lanes[i]?.isShedding) return false;
    return !this.isParking && !this.isSoldOut;
  }

  get isSoldOut(): boolean {
    return this.#parts.board.isSoldOut(this.slot);
  }

  get now(): number {
    return Date.now();
  }

  get checkToken(): CheckToken | undefined {
    return this.#parts.checkToken;
  }

  /** Whether purchases have to wait: the sale is being rebuilt, or it has rules that this worker does not know yet. */
  get isParking(): boolean {
    return this.#parking.isActive;
  }

  /** How many purchases are parked. */
  get parked(): number {
    return this.#parking.size;
  }

  /** The home segment, which has the buyer's record. */
  homeOf(buyerId: string): SegmentRef {
    const { sale, generation } = this.record;
    return { saleId: sale.id, segment: homeSegment(buyerId, sale.segments), generation };
  }

  laneOf(buyerId: string): Lane {
    const segment = homeSegment(buyerId, this.record.sale.segments);
    this.lanes[segment] ??= new Lane(this.#parts, this, segment);
    return this.lanes[segment]!;
  }

  /** Takes in a new purchase. @param verdict what `judge` has said about it */
  enter(purchase: LivePurchase, verdict: Verdict): void {
    const { refusal, isFinal, precheck } = verdict;
    purchase.letIn(this.rules, precheck);
    if (refusal && isFinal) purchase.refuse(refusal);
    else if (this.isParking) this.#parkIfRoom(purchase);
    else if (refusal) this.#inBackground(this.#resolveKey(purchase, refusal));
    else {
      const lane = this.laneOf(purchase.buyerId);
      lane.push(purchase);
      this.#runIfWaiting(lane);
    }
  }

  advance(watermark: Watermark): void {
    for (const purchase of this.lanes[watermark.segment]?.advance(watermark) ?? [])
      this.#inBackground(this.#resolve(purchase));
  }

  learn(view: SaleView): void {
    if (view.record.generation < this.record.generation) return;
    const isNewer = view.record.generation > this.record.generation;
    const before = this.rules;
    this.record = view.record;
    this.slot = view.slot;
    if (isNewer) this.#enterGeneration();
    else if (this.rules !== before) this.#endParking();
  }

  /** The sale is gone. Its slot may belong to another sale from now on. */
  end(): void {
    this.isGone = true;
    this.slot = NO_SLOT;
    for (const timer of this.#checks.values()) clearTimeout(timer);
    for (const lane of this.lanes) lane?.settlement.end();
  }

  /** Call it when the store is connected again: it may have lost orders. */
  check(): void {
    for (const lane of this.lanes) if (lane) this.#check(lane);
  }

  /** Call it when no purchase waits any more. */
  close(): void {
    for (const timer of this.#checks.values()) clearTimeout(timer);
    for (const lane of this.lanes) lane?.settlement.close();
    this.#endParking();
  }

  #runIfWaiting(lane: Lane): void {
    if (lane.isWaiting) this.#inBackground(this.#run(lane));
  }

  async #run(lane: Lane): Promise<void> {
    for (let handedBack = await lane.run(); handedBack.length > 0; handedBack = await lane.run()) {
      for (const leaving of handedBack) this.#reroute(leaving, lane);
    }
  }

  #reroute(leaving: HandedBack, from: Lane): void {
    switch (leaving.why) {
      case 'stale':
        // The rest of the queue would get the same answer.
        this.#park([...leaving.purchases, ...from.drain()], from.settlement.place.generation);
        break;
      case 'outdated':
        this.#judgeAgain(leaving.purchases);
        break;
      case 'refused':
        this.#inBackground(this.#resolveKey(leaving.purchases[0], leaving.refusal));
        break;
      case 'checking':
        for (const purchase of leaving.purchases) this.#inBackground(this.#resolve(purchase));
        break;
      case 'unchecked':
        this.#checkLater(from);
    }
  }

  /** Takes in a purchase that was let in before, because the sale has new lanes or rules, or its segments are tried again. */
  #enterAgain(purchase: LivePurchase): void {
    if (purchase.settled) return;
    const hasOtherRules = purchase.rules !== this.rules;
    // An unconfirmed purchase may have been taken: only its home segment can tell.
    if (purchase.isUnconfirmed && !hasOtherRules) {
      this.#readmit(purchase);
      return;
    }
    const { refusal, isFinal, precheck } = judge(purchase, this, hasOtherRules ? undefined : purchase);
    purchase.letIn(this.rules, precheck);
    if (!refusal) this.#readmit(purchase);
    // Sending it again might take an order that the new rules refuse.
    else if (purchase.isUnconfirmed) purchase.giveUp();
    else if (isFinal) purchase.refuse(refusal);
    else this.#inBackground(this.#resolveKey(purchase, refusal));
  }

  #readmit(purchase: LivePurchase): void {
    const lane = this.laneOf(purchase.buyerId);
    lane.readmit(purchase);
    this.#runIfWaiting(lane);
  }

  /** Parks a new purchase. The parking has as much room as the sale's lanes. */
  #parkIfRoom(purchase: LivePurchase): void {
    const capacity = this.#parts.laneCapacity * this.lanes.length;
    if (!this.#parts.takes.ready) purchase.refuse({ code: 'unavailable' });
    else if (this.parked >= capacity) purchase.refuse({ code: 'busy' });
    else this.#park([purchase], this.record.generation);
  }

  /** Parks purchases that this generation did not serve. If the next generation is already known, they enter it at once. */
  #park(purchases: readonly LivePurchase[], generation: number): void {
    if (generation < this.record.generation) {
      for (const purchase of purchases) this.#enterAgain(purchase);
      return;
    }
    const begins = !this.isParking;
    for (const purchase of purchases) this.#parking.add(purchase);
    if (begins) void this.#readAgain(generation);
  }

  /** Judges purchases again whose segments have other rules (rules.ts). They wait until this sale's record has other rules too. */
  #judgeAgain(purchases: readonly LivePurchase[]): void {
    const tooEarly: LivePurchase[] = [];
    for (const purchase of purchases) {
      if (purchase.rules === this.rules) tooEarly.push(purchase);
      else this.#enterAgain(purchase);
    }
    if (tooEarly.length > 0) this.#park(tooEarly, this.record.generation);
  }

  #endParking(): void {
    for (const purchase of this.#parking.end()) this.#enterAgain(purchase);
  }

  /** Begins a new generation. Purchases that wait for a commit of the older one are settled by their buyers' records. */
  #enterGeneration(): void {
    const past = this.lanes.filter((lane) => lane !== undefined);
    this.lanes = new Array(this.record.sale.segments);
    for (const lane of past) {
      for (const purchase of lane.settlement.retire()) this.#inBackground(this.#resolve(purchase));
      for (const purchase of lane.drain()) this.#enterAgain(purchase);
    }
    this.#endParking();
  }

  /** Reads the sale again, because a segment does not serve this generation: there may be a newer one. */
  async #readAgain(generation: number): Promise<void> {
    try {
      // If there is one, `learn` is called before this resolves.
      await this.#parts.directory.refresh(this.record.sale.id, generation);
    } catch {
      // The next message or poll of the directory brings the news.
    }
  }

  /** Resolves a refused purchase with a key. */
  async #resolveKey(purchase: LivePurchase, refusal: Outcome): Promise<void> {
    const home = this.laneOf(purchase.buyerId).settlement;
    const resolved = await this.#parts.resolver.byKey(purchase, refusal, home);
    if (resolved === 'stale') this.#park([purchase], home.place.generation);
    else if (resolved === 'checking') await this.#resolve(purchase);
  }

  /** Resolves a purchase that is `checking`, until it is settled or waits for a watermark. */
  async #resolve(purchase: LivePurchase): Promise<void> {
    while (!purchase.settled) {
      const home = this.laneOf(purchase.buyerId).settlement;
      const resolved = await this.#parts.resolver.byOrder(purchase, home);
      if (resolved === 'done') return;
      // The sale is being rebuilt, or the backend does not answer.
      if (resolved === 'unread' && !home.isRetired) return home.waiters.keep(purchase);
      if (resolved === 'unread') purchase.checkAnew();
    }
  }

  /** Runs work whose failure would be a bug. Then deadlines answer the purchases that it concerns. */
  #inBackground(work: Promise<void>): void {
    work.catch((error) => this.#parts.events.onFault?.(error, this.record.sale.id));
  }

  #check(lane: Lane): void {
    lane.check();
    this.#runIfWaiting(lane);
  }

  #checkLater(lane: Lane): void {
    clearTimeout(this.#checks.get(lane));
    const again = () => {
      this.#checks.delete(lane);
      this.#check(lane);
    };
    this.#checks.set(lane, setTimeout(again, CHECK_PAUSE_MS).unref());
  }
}
