/** Which purchases are refused without asking the store, and which are not. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Outcome, Sale, SaleState } from '../../../../../src/engine/contract.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import {
  answers,
  board,
  buy,
  codes,
  ENDS_AT,
  LIMIT,
  learn,
  recalls,
  SLOT,
  STARTS_AT,
  stageEngine,
  takes,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { settledTurns } from '../../../../support/engine/frozen-time.ts';

stageEngine();

describe('refusals without asking the store', () => {
  beforeEach(() => learn());

  it.each([0, -1, 1.5, LIMIT + 1, Number.NaN])(
    'are made of a quantity of %d, before all other checks',
    (quantity) => {
      const detail = `quantity must be a whole number from 1 to ${LIMIT}`;
      const refused = { code: 'invalid_request', detail };
      expect(buy({ quantity }).told).toEqual([refused]);
      board.close(SLOT, 1, monotonicMs());
      learn({}, 'closed');
      expect(buy({ quantity, key: 'click' }).told).toEqual([refused]);
    },
  );

  it.each<[string, Partial<Sale>, SaleState, Outcome]>([
    ['is closed', {}, 'closed', { code: 'ended', endedAt: ENDS_AT }],
    ['is paused', {}, 'paused', { code: 'paused' }],
    ['has not begun', { startsAt: ENDS_AT - 1 }, 'open', { code: 'not_started', startsAt: ENDS_AT - 1 }],
    ['is over', { endsAt: STARTS_AT + 1 }, 'open', { code: 'ended', endedAt: STARTS_AT + 1 }],
    ['is over and paused', { endsAt: STARTS_AT + 1 }, 'paused', { code: 'ended', endedAt: STARTS_AT + 1 }],
    [
      'has not begun and is paused',
      { startsAt: ENDS_AT - 1 },
      'paused',
      { code: 'not_started', startsAt: ENDS_AT - 1 },
    ],
    ['has not begun and is closed', { startsAt: ENDS_AT - 1 }, 'closed', { code: 'ended', endedAt: ENDS_AT }],
  ])('are made in a sale that %s', async (_, spec, state, outcome) => {
    learn(spec, state);
    expect(buy().told).toEqual([outcome]);
    await settledTurns();
    expect([takes.asks, recalls]).toEqual([[], []]);
  });

  it('are not counted as under way: they start no timer', () => {
    learn({}, 'paused');
    const timers = vi.getTimerCount();
    expect(codes(buy())).toEqual(['paused']);
    expect(vi.getTimerCount()).toBe(timers);
  });

  it('are made in a sale that is sold out on the board', async () => {
    board.close(SLOT, 1, monotonicMs());
    expect(codes(buy())).toEqual(['sold_out']);
    await settledTurns();
    expect([takes.asks, recalls]).toEqual([[], []]);
  });

  it('depend on the time: the window includes its first instant and excludes its last', () => {
    const codeAt = (now: number) => {
      vi.setSystemTime(now);
      return codes(buy())[0];
    };
    expect([STARTS_AT - 1, STARTS_AT, ENDS_AT - 1, ENDS_AT].map(codeAt)).toEqual([
      'not_started',
      'waits',
      'waits',
      'ended',
    ]);
  });

  it('are not made for the time in a sale without an end', async () => {
    learn({ endsAt: undefined });
    vi.setSystemTime(Date.UTC(2080, 0, 1));
    buy();
    await takes.next();
  });
});

describe('a retake after a late payment', () => {
  const retake = { key: 'retake:900', onBehalf: true };

  it.each<[string, () => void]>([
    ['over', () => learn({ endsAt: STARTS_AT + 1 })],
    ['sold out by the board', () => board.close(SLOT, 1, monotonicMs())],
  ])('is sent to the segment in a sale that is %s', async (_, happens) => {
    learn();
    happens();
    buy(retake);
    expect((await takes.next()).orders).toMatchObject([{ key: 'retake:900' }]);
    expect(recalls).toEqual([]);
  });

  it('is sent to the segment by a worker that did not know the sale', async () => {
    answers.view = viewOf({ endsAt: STARTS_AT + 1 });
    buy(retake);
    await takes.next();
  });

  it.each<[SaleState, Outcome['code']]>([
    ['paused', 'paused'],
    ['closed', 'ended'],
  ])('is refused in a sale that is %s', async (state, code) => {
    learn({}, state);
    const bought = buy(retake);
    await settledTurns();
    expect([codes(bought), takes.asks]).toEqual([[code], []]);
  });
});
