/** Faults of callers and counters, and messages that the backend can’t read: other purchases are not affected. */
import { describe, expect, it, vi } from 'vitest';
import type { Outcome } from '../../../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../../../src/engine/errors.ts';
import {
  advance,
  buy,
  codes,
  engine,
  events,
  faults,
  LIVES_MS,
  learn,
  neighbours,
  stageEngine,
  start,
  takes,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { aPurchase } from '../../../../support/engine/purchases.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('a caller who throws', () => {
  const thrower = (told: Outcome[]) => (outcome: Outcome) => {
    told.push(outcome);
    throw new Error('a bug of the caller');
  };

  it('does not affect other purchases, and is reported', async () => {
    learn();
    const [first, near] = neighbours();
    const told: Outcome[] = [];
    engine.buy(aPurchase({ buyerId: first, awaitCommit: false }), thrower(told));
    const ben = buy({ buyerId: near });
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    expect(codes(ben)).toEqual(['waits']);
    advance(1, { buyerId: first });
    expect(codes(ben)).toEqual(['committed']);
    expect(told.map((outcome) => outcome.code)).toEqual(['accepted']);
    expect(faults).toHaveLength(1);
    await engine.close();
  });

  it('does not prevent the commits and deadlines of other purchases', async () => {
    learn();
    const [first, near] = neighbours();
    engine.buy(aPurchase({ buyerId: first }), thrower([]));
    const ben = buy({ buyerId: near });
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1, { buyerId: first });
    expect(codes(ben)).toEqual(['committed']);
    engine.buy(aPurchase({ buyerId: first }), thrower([]));
    const cleo = buy({ buyerId: near });
    await elapse(LIVES_MS + 50);
    expect(codes(cleo)).toEqual(['busy']);
    expect(faults).toHaveLength(2);
  });

  it('is called once, also for an unknown sale', async () => {
    const told: Outcome[] = [];
    engine.buy(aPurchase({ saleId: 'nothing' }), thrower(told));
    await settledTurns();
    expect(told).toEqual([{ code: 'unknown_sale' }]);
    expect(faults).toHaveLength(1);
  });
});

describe('a worker that counts batches', () => {
  it('leaves no purchase without an answer if the counter throws', async () => {
    await start(
      { durable: true },
      {
        onBatch: () => {
          throw new Error('a bug');
        },
      },
    );
    learn();
    const anna = buy();
    await settledTurns();
    for (const ask of takes.asks) await ask.serve([TAKEN], { seq: 1 });
    advance(1);
    expect(anna.told).toHaveLength(1);
    expect(faults).toHaveLength(1);
    await engine.close();
  });
});

describe('messages of a newer version', () => {
  it('that the backend can’t read are reported', async () => {
    const onForeign = vi.fn();
    await start({ durable: true }, { onForeign });
    const error = new BackendCorrupt('version 9');
    events.at(-1)!.foreign?.(error);
    expect(onForeign).toHaveBeenCalledExactlyOnceWith(error);
  });
});
