/** A purchase with a key that would be refused: the buyer’s record tells whether it repeats an earlier one. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { HeldOrder, Outcome, Recall } from '../../../../../src/engine/contract.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import {
  advance,
  anOrder,
  answers,
  board,
  buy,
  codes,
  ENDS_AT,
  faults,
  LIVES_MS,
  learn,
  neighbours,
  recalls,
  remember,
  SLOT,
  STARTS_AT,
  stageEngine,
  takes,
  uncommitted,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';

stageEngine();

describe('a keyed purchase that would be refused', () => {
  const SITUATIONS: [string, () => void, Outcome['code']][] = [
    ['sold out', () => board.close(SLOT, 1, monotonicMs()), 'sold_out'],
    ['closed', () => learn({}, 'closed'), 'ended'],
    ['over', () => learn({ endsAt: STARTS_AT + 1 }), 'ended'],
    ['paused', () => learn({}, 'paused'), 'paused'],
    ['not begun', () => learn({ startsAt: ENDS_AT - 1 }), 'not_started'],
  ];

  beforeEach(() => learn());

  describe.each(SITUATIONS)('because the sale is %s', (_, arrange, refusal) => {
    beforeEach(() => arrange());

    it('is refused if its key is new', async () => {
      remember(9, anOrder({ key: 'another' }), anOrder({ key: '' }));
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(codes(anna)).toEqual([refusal]);
      expect(takes.asks).toEqual([]);
    });

    it('is committed if its order is committed', async () => {
      remember(5, anOrder({ key: 'another', orderId: '1' }), anOrder());
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
    });

    it('waits for the commit of its order', async () => {
      remember(4, anOrder());
      const anna = buy({ key: 'click' });
      await settledTurns();
      advance(4);
      await settledTurns();
      expect(codes(anna)).toEqual(['waits']);
      // The record was read once, and sync was told that somebody waits.
      expect(recalls).toHaveLength(1);
      expect(takes.hints).toEqual([expect.objectContaining({ awaited: true })]);
      advance(5);
      expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
    });

    it('is accepted if it has an order and does not wait for the commit', async () => {
      remember(4, anOrder());
      const anna = buy({ key: 'click', awaitCommit: false });
      await settledTurns();
      expect(anna.told).toEqual([{ code: 'accepted', orderId: '900', quantity: 1 }]);
    });

    it('is a mismatch if its order has another quantity', async () => {
      remember(5, anOrder({ quantity: 2 }));
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(anna.told).toEqual([{ code: 'idempotency_mismatch', orderId: '900', quantity: 2 }]);
    });
  });

  describe('when the record can’t be read', () => {
    beforeEach(() => learn({}, 'paused'));

    it('is unavailable', async () => {
      answers.recall = async () => Promise.reject(new Error('away'));
      const anna = buy({ key: 'click' });
      await settledTurns();
      expect(codes(anna)).toEqual(['unavailable']);
    });

    it('is unavailable at once while the store is away', () => {
      takes.ready = false;
      answers.recall = () => new Promise(() => {});
      expect(codes(buy({ key: 'click' }))).toEqual(['unavailable']);
    });

    it('is answered at its deadline: nothing was taken', async () => {
      answers.recall = () => new Promise(() => {});
      const anna = buy({ key: 'click' });
      await elapse(LIVES_MS + 50);
      expect(codes(anna)).toEqual(['busy']);
    });
  });

  it.each<[string, HeldOrder[], Outcome['code']]>([
    ['does not know its key', [], 'paused'],
    ['has its order', [anOrder()], 'committed'],
  ])('by its segment is answered by the record, which %s', async (_, held, code) => {
    remember(5, ...held);
    const anna = buy({ key: 'click' });
    await (await takes.next()).refuse('paused');
    await settledTurns();
    expect([codes(anna), recalls]).toEqual([[code], [['anna']]]);
  });

  it('is unknown, and reports nothing, if its order is missing when a watermark has passed it', async () => {
    learn({}, 'paused');
    remember(4, anOrder());
    const anna = buy({ key: 'click' });
    await settledTurns();
    expect(codes(anna)).toEqual(['waits']);
    remember(4);
    advance(5, { tails: ['77'] });
    await settledTurns();
    expect([codes(anna), uncommitted, faults]).toEqual([['unknown'], [], []]);
  });

  it('is answered at its deadline, and the bug is reported, if reading its record fails in the program', async () => {
    learn({}, 'paused');
    const bug = new Error('a bug');
    vi.spyOn(takes, 'ready', 'get').mockImplementationOnce(() => {
      throw bug;
    });
    const anna = buy({ key: 'click' });
    await settledTurns();
    expect([codes(anna), faults]).toEqual([['waits'], [bug]]);
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['busy']);
  });

  it('shares one read of records with the others of its turn', async () => {
    learn({}, 'paused');
    const [first, near] = neighbours();
    const bought = [first, near].map((buyerId) => buy({ buyerId, key: 'click' }));
    await settledTurns();
    expect(recalls).toEqual([[first, near]]);
    expect(codes(...bought)).toEqual(['paused', 'paused']);
  });

  it('is settled by the record of the newer generation, not by a log entry of an older one', async () => {
    learn({}, 'paused');
    let answer = (_: Recall) => {};
    answers.recall = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const anna = buy({ key: 'click' });
    await settledTurns();
    learn({}, 'paused', 2);
    remember(0, anOrder({ seq: 0 }));
    answer({ committed: 4, holdings: [{ buyerId: 'anna', orders: [anOrder()] }] });
    await settledTurns();
    expect(anna.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
  });
});
