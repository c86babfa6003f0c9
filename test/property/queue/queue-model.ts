/** The queue of a sale as it must be, by its rules alone: whose turn it is, and what becomes of each place. */
import type { QueueSettings, SaleState } from '../../../src/engine/contract.ts';
import type { PlaceState } from '../../../src/queue/place.ts';

export interface ModelPlace {
  readonly buyerId: string;
  readonly quantity: number;
  state: PlaceState;
  /** Units of its offer; 0: it never had one. */
  units: number;
  orderId: string | undefined;
  /** Whether the time of its offer is over. */
  overdue: boolean;
  /** Whether its order was cancelled after it was bought. */
  isReturned: boolean;
}

export interface QueueSale {
  readonly stock: number;
  readonly segments: number;
  readonly limit: number;
  readonly fit: QueueSettings['fit'];
}

export class QueueModel {
  readonly places: ModelPlace[] = [];
  readonly limit: number;
  readonly fit: QueueSettings['fit'];
  state: SaleState = 'open';
  /** Units that nobody has. */
  free: number;

  constructor({ stock, limit, fit }: QueueSale) {
    this.free = stock;
    this.limit = limit;
    this.fit = fit;
  }

  /** The place of this buyer that waits or has an offer. */
  live(buyerId: string): ModelPlace | undefined {
    return this.places.find(
      (place) => place.buyerId === buyerId && (place.state === 'waiting' || place.state === 'offered'),
    );
  }

  newest(buyerId: string): ModelPlace | undefined {
    return this.places.findLast((place) => place.buyerId === buyerId);
  }

  give(buyerId: string, quantity: number): void {
    const held = this.#held(buyerId);
    if (held > 0 && held + quantity > this.limit) return;
    if (this.live(buyerId) || this.state === 'closed') return;
    const begun = { units: 0, orderId: undefined, overdue: false, isReturned: false };
    this.places.push({ buyerId, quantity, state: 'waiting', ...begun });
  }

  /** Ends a place that waits or has an offer. */
  end(place: ModelPlace, state: 'left' | 'lapsed'): void {
    if (place.state === 'offered') this.free += place.units;
    place.state = state;
  }

  /** After a pause, each offer has its time again. */
  endPause(): void {
    if (this.state === 'paused') for (const place of this.places) place.overdue = false;
  }

  /** @returns whether anything has changed */
  round(): boolean {
    if (this.state !== 'open') return false;
    let left = this.free;
    const turns: { place: ModelPlace; units: number }[] = [];
    for (const place of this.places.filter(({ state }) => state === 'waiting')) {
      const units = place.quantity <= left || this.fit === 'less' ? Math.min(place.quantity, left) : 0;
      if (units > 0) turns.push({ place, units });
      else if (this.fit === 'wait' || left === 0) break;
      left -= units;
    }
    for (const { place, units } of turns) {
      if (this.#held(place.buyerId) + units > this.limit) place.state = 'left';
      else {
        Object.assign(place, { state: 'offered', units });
        this.free -= units;
      }
    }
    return turns.length > 0;
  }

  #held(buyerId: string): number {
    return this.places
      .filter((place) => place.buyerId === buyerId && !place.isReturned)
      .reduce((sum, { state, units }) => sum + (state === 'bought' || state === 'offered' ? units : 0), 0);
  }
}
