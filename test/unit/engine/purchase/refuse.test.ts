import { describe, expect, it, vi } from 'vitest';
import type { Outcome, Purchase, Sale, SaleState, TokenFault } from '../../../../src/engine/contract.ts';
import {
  isFinal,
  isRefusedWhenSoldOut,
  judge,
  type SaleFacts,
} from '../../../../src/engine/purchase/refuse.ts';
import { aLivePurchase, aPurchase } from '../../../support/engine/purchases.ts';
import { aSale } from '../../../support/shop/sales.ts';

const STARTS_AT = Date.UTC(2026, 0, 1);
const ENDS_AT = Date.UTC(2027, 0, 1);
const BEFORE = STARTS_AT - 1;
const DURING = Date.UTC(2026, 5, 1);
const LIMIT = 2;

interface Now {
  readonly sale?: Partial<Sale>;
  readonly state?: SaleState;
  readonly isSoldOut?: boolean;
  readonly now?: number;
  readonly checkToken?: SaleFacts['checkToken'];
}

function factsOf({ sale, state = 'open', isSoldOut = false, now = DURING, checkToken }: Now): SaleFacts {
  const definition = aSale({ perBuyerLimit: LIMIT, startsAt: STARTS_AT, endsAt: ENDS_AT, ...sale });
  return { record: { sale: definition, state, generation: 4, epoch: 1 }, isSoldOut, now, checkToken };
}

const judged = (spec: Partial<Purchase>, now: Now, known?: { precheck: Outcome | undefined }) =>
  judge(aPurchase(spec), factsOf(now), known);

const wrong = (fault: TokenFault | undefined): Now => ({
  sale: { requireToken: true },
  checkToken: () => fault,
});
const queued: Now = {
  sale: { queue: { order: 'fifo', offerSeconds: 60, presenceSeconds: 60, maxWaiting: 100, fit: 'wait' } },
};
const NO_OFFER: Outcome = { code: 'offer_required' };
const withToken: Partial<Purchase> = { token: 'a token' };
const late: Partial<Purchase> = { onBehalf: true, key: 'retake:1' };
const OVER: Outcome = { code: 'ended', endedAt: ENDS_AT };
const EARLY: Outcome = { code: 'not_started', startsAt: STARTS_AT };
const BAD_QUANTITY: Outcome = {
  code: 'invalid_request',
  detail: `quantity must be a whole number from 1 to ${LIMIT}`,
};

describe('what is refused without asking the store', () => {
  /** The purchase, the sale, and why it is refused; then whether that is final for a purchase with a key. */
  it.each<[string, Partial<Purchase>, Now, Outcome | undefined, boolean]>([
    ['nothing, in an open sale', {}, {}, undefined, false],
    ['nothing, up to the limit', { quantity: LIMIT }, {}, undefined, false],
    ['too many', { quantity: LIMIT + 1 }, {}, BAD_QUANTITY, true],
    ['none', { quantity: 0 }, {}, BAD_QUANTITY, true],
    ['half a unit', { quantity: 0.5 }, {}, BAD_QUANTITY, true],
    [
      'a bad quantity, before all else',
      { quantity: 0 },
      { isSoldOut: true, state: 'closed' },
      BAD_QUANTITY,
      true,
    ],
    ['a sale with a queue, before the board', {}, { ...queued, isSoldOut: true }, NO_OFFER, false],
    ['nothing, in a sale with a queue, for a buyer', { onBehalf: true }, queued, undefined, false],
    ['a sale that is sold out', {}, { isSoldOut: true }, { code: 'sold_out' }, false],
    ['the board, before the state', {}, { isSoldOut: true, state: 'closed' }, { code: 'sold_out' }, false],
    ['a sale that has not begun', {}, { now: BEFORE }, EARLY, false],
    ['nothing, in the first instant', {}, { now: STARTS_AT }, undefined, false],
    ['nothing, in the last instant', {}, { now: ENDS_AT - 1 }, undefined, false],
    ['a sale that is over', {}, { now: ENDS_AT }, OVER, false],
    ['a sale that is closed', {}, { state: 'closed' }, OVER, false],
    ['a sale that is paused', {}, { state: 'paused' }, { code: 'paused' }, false],
    ['the window, before the pause', {}, { now: BEFORE, state: 'paused' }, EARLY, false],
    ['no token', {}, wrong(undefined), { code: 'token_required' }, true],
    ['nothing, with a good token', withToken, wrong(undefined), undefined, false],
    ['an expired token', withToken, wrong('expired'), { code: 'token_invalid', reason: 'expired' }, false],
    [
      'an older token',
      withToken,
      wrong('generation'),
      { code: 'token_invalid', reason: 'generation' },
      false,
    ],
    ['an alien token', withToken, wrong('alien'), { code: 'token_invalid', reason: 'alien' }, true],
    ['nothing, where no token is asked for', {}, { checkToken: () => 'alien' }, undefined, false],
    ['nothing, where tokens can’t be checked', {}, { sale: { requireToken: true } }, undefined, false],
    [
      'a paused sale, before the token',
      withToken,
      { ...wrong('expired'), state: 'paused' },
      { code: 'paused' },
      false,
    ],
  ])('is %s', (_, spec, now, refusal, finalWithKey) => {
    const plain = judged(spec, now);
    expect([plain.refusal, plain.isFinal]).toEqual([refusal, refusal !== undefined]);
    const keyed = judged({ ...spec, key: 'click' }, now);
    expect([keyed.refusal, keyed.isFinal]).toEqual([refusal, finalWithKey]);
  });

  it.each<[string, Now, Outcome | undefined]>([
    ['is let in while the board says sold out', { isSoldOut: true }, undefined],
    ['is let in before the sale', { now: BEFORE }, undefined],
    ['is let in after the sale', { now: ENDS_AT }, undefined],
    ['is let in without a token', wrong('alien'), undefined],
    ['is refused by a sale that is closed', { state: 'closed' }, OVER],
    ['is refused by a sale that is paused', { state: 'paused' }, { code: 'paused' }],
  ])('as a late payment %s', (_, now, refusal) => {
    const verdict = judged(late, now);
    expect([verdict.refusal, verdict.isFinal]).toEqual([refusal, false]);
  });
});

describe('a purchase with a key that is refused by the sale', () => {
  const paused = (fault: TokenFault | undefined): Now => ({ ...wrong(fault), state: 'paused' });

  it.each<[string, Partial<Purchase>, TokenFault | undefined, Outcome, boolean]>([
    [
      'is refused by its missing token: nothing is read for it',
      {},
      undefined,
      { code: 'token_required' },
      true,
    ],
    [
      'is refused by an alien token: the same',
      withToken,
      'alien',
      { code: 'token_invalid', reason: 'alien' },
      true,
    ],
    ['may be a repetition, with a token that was good', withToken, 'expired', { code: 'paused' }, false],
    ['may be a repetition, with a good token', withToken, undefined, { code: 'paused' }, false],
  ])('%s', (_, spec, fault, refusal, final) => {
    const verdict = judged({ ...spec, key: 'click' }, paused(fault));
    expect([verdict.refusal, verdict.isFinal]).toEqual([refusal, final]);
  });
});

describe('the precheck', () => {
  it('is not made if the refusal is final without it: it is the most expensive check', () => {
    const checkToken = vi.fn();
    judged(withToken, { ...wrong(undefined), checkToken, isSoldOut: true });
    expect(checkToken).not.toHaveBeenCalled();
  });

  it('is made for the purchase and the sale’s generation', () => {
    const checkToken = vi.fn();
    judged(withToken, { ...wrong(undefined), checkToken });
    expect(checkToken).toHaveBeenCalledExactlyOnceWith(aPurchase(withToken), 4);
  });

  it('is kept with the verdict, also if another refusal comes first', () => {
    const precheck = { code: 'token_invalid', reason: 'expired' };
    const keyed = { ...withToken, key: 'click' };
    expect(judged(keyed, wrong('expired'))).toMatchObject({ refusal: precheck, precheck });
    expect(judged(keyed, { ...wrong('expired'), state: 'paused' })).toMatchObject({ precheck });
    expect(judged(keyed, wrong(undefined)).precheck).toBeUndefined();
  });

  it('is not made again for one that was let in by the same rules', () => {
    const checkToken = vi.fn(() => 'expired' as const);
    const now: Now = { ...wrong('expired'), checkToken };
    expect(judged(withToken, now, { precheck: undefined }).refusal).toBeUndefined();
    expect(judged(withToken, { ...now, isSoldOut: true }, { precheck: undefined }).refusal).toEqual({
      code: 'sold_out',
    });
    const precheck: Outcome = { code: 'token_invalid', reason: 'expired' };
    expect(judged({ ...withToken, key: 'click' }, now, { precheck })).toEqual({
      refusal: precheck,
      isFinal: false,
      precheck,
    });
    expect(checkToken).not.toHaveBeenCalled();
  });
});

describe('while a purchase is queued and the board closes', () => {
  it('it is refused if it was never sent, and no key may name an order', () => {
    expect(isRefusedWhenSoldOut(aLivePurchase())).toBe(true);
    expect(isRefusedWhenSoldOut(aLivePurchase({ key: 'click' }))).toBe(false);
    const sent = aLivePurchase();
    sent.send();
    expect(isRefusedWhenSoldOut(sent)).toBe(false);
    sent.requeue();
    expect(isRefusedWhenSoldOut(sent)).toBe(true);
    sent.send();
    sent.lose({ generation: 1, returned: 0, server: undefined });
    expect(isRefusedWhenSoldOut(sent)).toBe(false);
  });
});

describe('a refusal', () => {
  const outcomes: readonly [Outcome, boolean][] = [
    [{ code: 'limit_reached', limit: 1, orderIds: [] }, true],
    [{ code: 'insufficient_stock', remaining: 1 }, true],
    [{ code: 'refused', reason: 'risk' }, true],
    [{ code: 'busy' }, true],
    [{ code: 'unavailable' }, true],
    [{ code: 'unknown_sale' }, false],
    [{ code: 'idempotency_mismatch', orderId: '1', quantity: 1 }, false],
    [{ code: 'committed', orderId: '1', quantity: 1 }, false],
    [{ code: 'accepted', orderId: '1', quantity: 1 }, false],
    [{ code: 'unknown' }, false],
  ];

  it.each(outcomes)('%o may hide a repetition: %s', (outcome, mayHide) => {
    expect(isFinal(outcome, { key: 'click' })).toBe(!mayHide);
    expect(isFinal(outcome, { key: '' })).toBe(true);
  });
});
