import pLimit from 'p-limit';
import type { SaleView } from '../board/directory.ts';
import type { SaleRecord } from '../contract.ts';
import { homeSegment } from '../sale/home-segment.ts';
import { NO_RULES } from '../sale/rules.ts';
import { Lane, type LaneHost, type LaneSale } from './lane.ts';
import { Parking } from './parking.ts';
import type { Pending } from './pending.ts';

export interface LiveSaleHost extends LaneHost {
  /** It was let in before, and seeks its lane: the sale has other ones now, or its segments are to be asked again. */
  enterAgain(pending: Pending): void;
  /** A segment does not know this generation: there may be a newer one, or it has to be built. */
  look(saleId: string, generation: number): void;
}

/**
 * A sale in this worker. The view is replaced when the sale changes. Lanes live as long as a generation: the next one may
 * have another number of segments, so that buyers have other homes, and it counts its log entries anew.
 */
export class LiveSale implements LaneSale {
  record: SaleRecord;
  slot: number;
  lanes: (Lane | undefined)[];
  readonly refills = pLimit(1);
  readonly #host: LiveSaleHost;
  readonly #parking: Parking;

  constructor(host: LiveSaleHost, view: SaleView) {
    this.#host = host;
    this.record = view.record;
    this.slot = view.slot;
    this.lanes = new Array(view.record.sale.segments);
    this.#parking = new Parking((waiting) => {
      for (const pending of waiting) host.enterAgain(pending);
    });
  }

  get rules(): string {
    return this.record.rules ?? NO_RULES;
  }

  laneOf(buyerId: string): Lane {
    const segment = homeSegment(buyerId, this.record.sale.segments);
    this.lanes[segment] ??= new Lane(this.#host, this, segment);
    return this.lanes[segment]!;
  }

  /** Whether every lane has just refused somebody: whoever comes now is refused, whoever he is. */
  get isShedding(): boolean {
    for (let i = 0; i < this.lanes.length; i++) if (!this.lanes[i]?.isShedding) return false;
    return !this.standsStill;
  }

  /** Whether purchases have to wait until the sale is built anew. */
  get standsStill(): boolean {
    return this.#parking.standsStill;
  }

  /** Purchases that wait for that. */
  get parked(): number {
    return this.#parking.size;
  }

  /** Purchases that were not served in this generation: they wait for the next one, if it is not there already. */
  park(pendings: readonly Pending[], generation: number): void {
    if (generation < this.record.generation) {
      for (const pending of pendings) this.#host.enterAgain(pending);
      return;
    }
    const begins = !this.standsStill;
    for (const pending of pendings) this.#parking.add(pending);
    if (begins) this.#host.look(this.record.sale.id, generation);
  }

  /** Purchases whose segments go by other rules (rules.ts): they are let in anew, once this sale's record has others too. */
  letInAnew(pendings: readonly Pending[]): void {
    const tooEarly: Pending[] = [];
    for (const pending of pendings) {
      if (pending.rules === this.rules) tooEarly.push(pending);
      else this.#host.enterAgain(pending);
    }
    if (tooEarly.length > 0) this.park(tooEarly, this.record.generation);
  }

  learn(view: SaleView): void {
    if (view.record.generation < this.record.generation) return;
    const isNewer = view.record.generation > this.record.generation;
    const before = this.rules;
    this.record = view.record;
    this.slot = view.slot;
    if (isNewer) this.#moveOn();
    else if (this.rules !== before) this.#parking.end();
  }

  /** What waits for the commit of an older generation is settled by the record of its buyer. */
  #moveOn(): void {
    const past = this.lanes.filter((lane) => lane !== undefined);
    this.lanes = new Array(this.record.sale.segments);
    for (const lane of past) {
      lane.outlive();
      for (const pending of lane.waiters.drain()) {
        pending.wasAsked = false;
        this.#host.confirm(pending);
      }
      for (const pending of lane.drain()) this.#host.enterAgain(pending);
    }
    this.#parking.end();
  }

  /** The store is there again, and may have gone back. */
  check(): void {
    for (const lane of this.lanes) lane?.check();
  }

  /** When nobody waits any more. */
  close(): void {
    for (const lane of this.lanes) lane?.close();
    this.#parking.end();
  }
}
