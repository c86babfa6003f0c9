import type { Outcome } from '../../src/engine/contract.ts';
import type { Engine } from '../../src/engine/purchase/engine.ts';
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { BenchFailure } from '../support/failure.ts';
import type { RebalanceParameters } from './options.ts';

/** Buyers that all have segment 0 as their home. Made in advance, because finding such names takes many tries. */
export function crowdOf({ orders, segments }: RebalanceParameters): string[] {
  const crowd: string[] = [];
  for (let i = 0; crowd.length < orders; i++) {
    if (homeSegment(`buyer-${i}`, segments) === 0) crowd.push(`buyer-${i}`);
  }
  return crowd;
}

/** Runs a closed loop. @returns the waiting times in milliseconds. @throws BenchFailure if an answer was a refusal */
export function buyAll(
  engine: Engine,
  saleId: string,
  crowd: readonly string[],
  atOnce: number,
): Promise<Float64Array> {
  const waits = new Float64Array(crowd.length);
  let [next, answered] = [0, 0];
  return new Promise((resolve, reject) => {
    const ask = () => {
      const number = next++;
      const began = performance.now();
      const done = (outcome: Outcome) => {
        waits[number] = performance.now() - began;
        if (outcome.code !== 'accepted')
          return reject(new BenchFailure(`a purchase was answered ${JSON.stringify(outcome)}`));
        if (++answered === crowd.length) resolve(waits);
        else if (next < crowd.length) ask();
      };
      engine.buy({ saleId, buyerId: crowd[number]!, quantity: 1, key: '', awaitCommit: false }, done);
    };
    for (let i = 0; i < Math.min(atOnce, crowd.length); i++) ask();
  });
}
