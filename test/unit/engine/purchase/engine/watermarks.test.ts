/** A watermark that names another entry under the same number: writes were lost. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Recall } from '../../../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../../../src/engine/errors.ts';
import {
  advance,
  anOrder,
  answers,
  type Bought,
  buy,
  codes,
  faults,
  LIVES_MS,
  learn,
  recalls,
  remember,
  stageEngine,
  takes,
  uncommitted,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('a watermark that names another entry under the same number', () => {
  let anna: Bought;

  beforeEach(async () => {
    learn();
    anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 3 });
  });

  async function nameAnother(): Promise<void> {
    advance(3, { tails: ['77'] });
    await settledTurns();
  }

  it('does not settle the purchase: the record tells', async () => {
    remember(3, anOrder({ orderId: '1001', seq: 3 }));
    await nameAnother();
    expect(recalls).toEqual([['anna']]);
    expect(anna.told).toEqual([{ code: 'committed', orderId: '1001', quantity: 1 }]);
  });

  it('lets the purchase wait if the record has the order beyond the cursor', async () => {
    remember(2, anOrder({ orderId: '1001', seq: 3 }));
    await nameAnother();
    expect(codes(anna)).toEqual(['waits']);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['accepted']);
  });

  it('shows a loss if the record lacks the order and the cursor has not reached its entry', async () => {
    remember(2, anOrder({ orderId: '900' }));
    await nameAnother();
    expect(codes(anna)).toEqual(['unknown']);
    expect(faults).toHaveLength(1);
  });

  it('makes Postgres tell whether the order is lost or was returned if the cursor has passed its entry', async () => {
    remember(3, anOrder({ orderId: '900' }));
    await nameAnother();
    expect(codes(anna)).toEqual(['unknown']);
    expect(faults).toEqual([]);
    // Its lane has reported it too, because the number of its entry belongs to another one.
    expect(new Set(uncommitted)).toEqual(new Set(['1001']));
  });

  it('makes Postgres tell about the orders of the replaced entry although no purchase waits', async () => {
    const another = buy({ awaitCommit: false });
    await (await takes.next()).serve([TAKEN], { seq: 4 });
    expect(codes(another)).toEqual(['accepted']);
    remember(4, anOrder({ orderId: '900' }));
    advance(4, { tails: ['1001', '77'] });
    await settledTurns();
    expect(uncommitted).toEqual(['1002']);
  });

  it('makes Postgres tell about an order of an entry that it does not name, if the record lacks it', async () => {
    const ben = buy();
    await (await takes.next()).serve([TAKEN], { seq: 4 });
    remember(4);
    advance(4, { tails: ['1002'] });
    await settledTurns();
    expect(codes(anna, ben)).toEqual(['unknown', 'committed']);
    expect([uncommitted, faults]).toEqual([['1001'], []]);
  });

  it('makes the record be read also if it comes before the reply to the take', async () => {
    const ben = buy();
    const ask = await takes.next();
    advance(4, { tails: ['1001', '77'] });
    remember(4, anOrder({ orderId: '1002', seq: 4 }));
    await ask.serve([TAKEN], { seq: 4 });
    await settledTurns();
    expect(recalls).toContainEqual(['anna']);
    expect(ben.told).toEqual([{ code: 'committed', orderId: '1002', quantity: 1 }]);
  });

  it('makes the purchase unknown if the record can’t be read', async () => {
    answers.recall = async () => Promise.reject(new Error('away'));
    await nameAnother();
    expect(codes(anna)).toEqual(['waits']);
    expect(recalls).toHaveLength(1);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('makes the record of the newer generation be read if the sale was rebuilt meanwhile', async () => {
    let refuse = (_: Error) => {};
    answers.recall = () =>
      new Promise((_, reject) => {
        refuse = reject;
      });
    await nameAnother();
    learn({}, 'open', 2);
    remember(0, anOrder({ orderId: '1001', seq: 0 }));
    refuse(new StaleGeneration('sale', 1));
    await settledTurns();
    expect(anna.told).toEqual([{ code: 'committed', orderId: '1001', quantity: 1 }]);
  });

  it('has that record read exactly once more if a newer watermark does not name the order either', async () => {
    const reads: { answer(found: Recall): void; fail(error: Error): void }[] = [];
    answers.recall = () => new Promise((answer, fail) => reads.push({ answer, fail }));
    await nameAnother();
    learn({}, 'open', 2);
    reads[0]!.fail(new StaleGeneration('sale', 1));
    await settledTurns();
    advance(5, { generation: 2, tails: ['88'] });
    remember(3, anOrder({ orderId: '1001', seq: 4 }));
    reads[1]!.answer(await answers.recall(['anna'], 'sale'));
    await settledTurns();
    expect(recalls).toHaveLength(3);
    expect(codes(anna)).toEqual(['waits']);
  });
});
