/** The buyers of a point: bursts of purchases by new buyers, for given lanes. */
import type { Outcome, Purchase } from '../../src/engine/contract.ts';
import type { Engine } from '../../src/engine/purchase/engine.ts';
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { BenchFailure } from '../support/failure.ts';
import { BURST_ORDERS, type Setting } from './dimensions.ts';

export class Crowd {
  readonly #setting: Setting;
  readonly #saleIds: readonly string[];
  /** Buyers' names that are not used yet, by home segment. */
  readonly #names: string[][];
  #named = 0;
  #bursts = 0;

  constructor(setting: Setting, saleIds: readonly string[]) {
    this.#setting = setting;
    this.#saleIds = saleIds;
    this.#names = Array.from({ length: setting.segments }, () => []);
  }

  /** The next burst goes to the next sales; after all of them, to the next segments. */
  nextBurst(): Purchase[] {
    const { sales, segments, salesAtOnce, lanes } = this.#setting;
    const groups = sales / salesAtOnce;
    const number = this.#bursts++;
    const firstSale = (number % groups) * salesAtOnce;
    const lanesOfSale = lanes / salesAtOnce;
    const firstSegment = Math.floor(number / groups) * lanesOfSale;
    return Array.from({ length: BURST_ORDERS }, (_, i) => {
      const lane = i % lanes;
      const saleId = this.#saleIds[firstSale + Math.floor(lane / lanesOfSale)]!;
      const segment = (firstSegment + (lane % lanesOfSale)) % segments;
      return { saleId, buyerId: this.#buyerIn(segment), quantity: 1, key: '', awaitCommit: false };
    });
  }

  #buyerIn(segment: number): string {
    while (this.#names[segment]!.length === 0) {
      const name = `buyer-${String(++this.#named).padStart(8, '0')}`;
      this.#names[homeSegment(name, this.#setting.segments)]!.push(name);
    }
    return this.#names[segment]!.pop()!;
  }
}

/**
 * Sends bursts one after the other, each when the one before it is answered. @throws BenchFailure if an answer is a
 * refusal
 */
export async function buyAll(engine: Engine, bursts: readonly (readonly Purchase[])[]): Promise<void> {
  for (const burst of bursts) await buy(engine, burst);
}

function buy(engine: Engine, burst: readonly Purchase[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let open = burst.length;
    const done = (outcome: Outcome) => {
      if (outcome.code !== 'accepted') {
        reject(new BenchFailure(`a purchase was answered ${JSON.stringify(outcome)}`));
      }
      if (--open === 0) resolve();
    };
    for (const purchase of burst) engine.buy(purchase, done);
  });
}
