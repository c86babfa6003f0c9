/**
 * A sale in one worker: it takes purchases in, runs the lanes, and decides where those go that leave their lane.
 *
 *   judge ──let in──> lane of the home segment ──run──> settled, or waiting for the commit
 *     │                ^        └──left──┬──stale──> parking, or the next generation's lane
 *     │                │                 ├──outdated──> judged anew
 *     │                │                 ├──refused, with a key──┐
 *     │                │                 └──checking─────────────┤
 *     ├──refused, with a key──────────────────────────────────> the buyer's record (check.ts) ──> settled, or waiting
 *     └──the sale stands still──> parking ──over──> judged anew
 *
 * All calls go down from here: to lanes, to the parking, to the records. What they have to say is what they return.
 *
 * The view is replaced when the sale changes. Lanes live as long as a generation: the next one may have another number of
 * segments, so that buyers have other homes, and it counts its log entries anew.
 */
import pLimit from 'p-limit';
import type { Directory, SaleView } from '../board/directory.ts';
import type { Outcome, SaleRecord, SegmentRef, Watermark } from '../contract.ts';
import { homeSegment } from '../sale/home-segment.ts';
import { NO_RULES } from '../sale/rules.ts';
import type { PurchaseResolver } from './check.ts';
import { Lane, type LaneParts, type LaneSale } from './lane.ts';
import { Parking } from './parking.ts';
import type { LivePurchase } from './purchase.ts';
import { type CheckToken, judge, type SaleFacts, type Verdict } from './refuse.ts';
import type { Left } from './settle.ts';

/** Pause before a store that did not answer is asked again whether it has gone back. */
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
  readonly refills = pLimit(1);
  readonly #parts: LiveSaleParts;
  readonly #parking = new Parking(() => this.#endParking());
  /** Lanes that are to be checked again. */
  readonly #checks = new Map<Lane, NodeJS.Timeout>();

  constructor(parts: LiveSaleParts, view: SaleView) {
    this.#parts = parts;
    this.record = view.record;
    this.slot = view.slot;
    this.lanes = new Array(view.record.sale.segments);
  }

  get rules(): string {
    return this.record.rules ?? NO_RULES;
  }

  /** Whether every lane has just refused a purchase: the next one is refused too, whichever its lane is. */
  get isShedding(): boolean {
    for (let i = 0; i < this.lanes.length; i++) if (!this.lanes[i]?.isShedding) return false;
    return !this.standsStill && !this.isSoldOut;
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

  /** Whether purchases have to wait until the sale is built anew. */
  get standsStill(): boolean {
    return this.#parking.standsStill;
  }

  /** Purchases that wait for that. */
  get parked(): number {
    return this.#parking.size;
  }

  /** Where the buyer's record is. */
  homeOf(buyerId: string): SegmentRef {
    const { sale, generation } = this.record;
    return { saleId: sale.id, segment: homeSegment(buyerId, sale.segments), generation };
  }

  laneOf(buyerId: string): Lane {
    const segment = homeSegment(buyerId, this.record.sale.segments);
    this.lanes[segment] ??= new Lane(this.#parts, this, segment);
    return this.lanes[segment]!;
  }

  /** For one that comes for the first time, with what `judge` has said of it. */
  enter(purchase: LivePurchase, { refusal, isFinal, precheck }: Verdict): void {
    purchase.letIn(this.rules, precheck);
    if (refusal && isFinal) purchase.refuse(refusal);
    else if (this.standsStill) this.#parkIfRoom(purchase);
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
    if (isNewer) this.#moveOn();
    else if (this.rules !== before) this.#endParking();
  }

  /** The store is there again, and may have gone back. */
  check(): void {
    for (const lane of this.lanes) if (lane) this.#check(lane);
  }

  /** When no purchase waits any more. */
  close(): void {
    for (const timer of this.#checks.values()) clearTimeout(timer);
    for (const lane of this.lanes) lane?.settlement.close();
    this.#endParking();
  }

  #runIfWaiting(lane: Lane): void {
    if (lane.isWaiting) this.#inBackground(this.#run(lane));
  }

  async #run(lane: Lane): Promise<void> {
    for (let left = await lane.run(); left.length > 0; left = await lane.run()) {
      for (const some of left) this.#reroute(some, lane);
    }
  }

  #reroute(left: Left, from: Lane): void {
    switch (left.why) {
      case 'stale':
        // The rest of the queue would be answered the same.
        this.#park([...left.purchases, ...from.drain()], from.settlement.place.generation);
        break;
      case 'outdated':
        this.#letInAnew(left.purchases);
        break;
      case 'refused':
        this.#inBackground(this.#resolveKey(left.purchases[0], left.refusal));
        break;
      case 'checking':
        for (const purchase of left.purchases) this.#inBackground(this.#resolve(purchase));
        break;
      case 'unchecked':
        this.#checkLater(from);
    }
  }

  /** For one that was let in before: the sale has other lanes now, or its segments are to be asked again. */
  #enterAgain(purchase: LivePurchase): void {
    if (purchase.settled) return;
    const hasOtherRules = purchase.rules !== this.rules;
    // What is unconfirmed may have been taken: only its home segment can say more.
    if (purchase.isUnconfirmed && !hasOtherRules) {
      this.#readmit(purchase);
      return;
    }
    const { refusal, isFinal, precheck } = judge(purchase, this, hasOtherRules ? undefined : purchase);
    purchase.letIn(this.rules, precheck);
    if (!refusal) this.#readmit(purchase);
    // To ask for it again might take what the new rules refuse.
    else if (purchase.isUnconfirmed) purchase.giveUp();
    else if (isFinal) purchase.refuse(refusal);
    else this.#inBackground(this.#resolveKey(purchase, refusal));
  }

  #readmit(purchase: LivePurchase): void {
    const lane = this.laneOf(purchase.buyerId);
    lane.readmit(purchase);
    this.#runIfWaiting(lane);
  }

  /** Purchases that come while a sale stands still have the room of its lanes. */
  #parkIfRoom(purchase: LivePurchase): void {
    const capacity = this.#parts.laneCapacity * this.lanes.length;
    if (!this.#parts.takes.ready) purchase.refuse({ code: 'unavailable' });
    else if (this.parked >= capacity) purchase.refuse({ code: 'busy' });
    else this.#park([purchase], this.record.generation);
  }

  /** Purchases that were not served in this generation: they wait for the next one, if it is not there already. */
  #park(purchases: readonly LivePurchase[], generation: number): void {
    if (generation < this.record.generation) {
      for (const purchase of purchases) this.#enterAgain(purchase);
      return;
    }
    const begins = !this.standsStill;
    for (const purchase of purchases) this.#parking.add(purchase);
    if (begins) void this.#look(generation);
  }

  /** Purchases whose segments go by other rules (rules.ts): they are let in anew, once this sale's record has others too. */
  #letInAnew(purchases: readonly LivePurchase[]): void {
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

  /** What waits for the commit of an older generation is settled by the record of its buyer. */
  #moveOn(): void {
    const past = this.lanes.filter((lane) => lane !== undefined);
    this.lanes = new Array(this.record.sale.segments);
    for (const lane of past) {
      for (const purchase of lane.settlement.retire()) this.#inBackground(this.#resolve(purchase));
      for (const purchase of lane.drain()) this.#enterAgain(purchase);
    }
    this.#endParking();
  }

  /** A segment does not know this generation: there may be a newer one, or it has to be built. */
  async #look(generation: number): Promise<void> {
    try {
      const view = await this.#parts.directory.refresh(this.record.sale.id, generation);
      // A change within a generation is told by onChange, and what is told then may be newer than this answer.
      if (view && view.record.generation > this.record.generation) this.learn(view);
    } catch {
      // The next message or poll will tell.
    }
  }

  /** Of a refused purchase with a key. */
  async #resolveKey(purchase: LivePurchase, refusal: Outcome): Promise<void> {
    const home = this.laneOf(purchase.buyerId).settlement;
    const resolved = await this.#parts.resolver.byKey(purchase, refusal, home);
    if (resolved === 'stale') this.#park([purchase], home.place.generation);
    else if (resolved === 'checking') await this.#resolve(purchase);
  }

  /** Of a purchase that is `checking`: until it is known what became of it, or waits for a watermark. */
  async #resolve(purchase: LivePurchase): Promise<void> {
    while (!purchase.settled) {
      const home = this.laneOf(purchase.buyerId).settlement;
      const resolved = await this.#parts.resolver.byOrder(purchase, home);
      if (resolved === 'settled') return;
      // The sale is being built anew, or the backend is away.
      if (resolved === 'unread' && !home.isRetired) return home.waiters.keep(purchase);
      if (resolved === 'unread') purchase.checkAnew();
    }
  }

  /** What fails here is a bug. Deadlines answer the purchases that it concerns. */
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
