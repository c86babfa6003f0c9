/** A sale that requires a token. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Purchase, QueueSettings, Sale, TokenFault } from '../../../../../src/engine/contract.ts';
import { rulesOf } from '../../../../../src/engine/sale/rules.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';
import {
  anOrder,
  answers,
  board,
  buy,
  codes,
  directory,
  engine,
  learn,
  recalls,
  remember,
  SLOT,
  stageEngine,
  start,
  takes,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

const QUEUE: QueueSettings = {
  order: 'fifo',
  offerSeconds: 60,
  presenceSeconds: 60,
  maxWaiting: 100,
  fit: 'wait',
};

describe('a sale that requires a token', () => {
  const ALL_FAULTS: TokenFault[] = ['expired', 'generation', 'alien'];

  /** The text of a token names its fault. */
  const checkToken = vi.fn(({ token }: Purchase) => ALL_FAULTS.find((fault) => fault === token));

  beforeEach(async () => {
    checkToken.mockClear();
    await start({ durable: true }, { checkToken });
    learn({ requireToken: true });
  });

  it('serves a purchase with a valid token', async () => {
    const anna = buy({ token: 'good' });
    expect((await takes.next()).buyers).toEqual(['anna']);
    expect(codes(anna)).toEqual(['waits']);
    expect(checkToken).toHaveBeenCalledExactlyOnceWith(anna.purchase, 1);
  });

  it.each(['', 'click'])(
    'refuses at once a purchase without a token or with a forged one, and reads nothing (key %j)',
    (key) => {
      const bought = [buy({ key }), buy({ key, token: '' }), buy({ key, token: 'alien' })];
      expect(codes(...bought)).toEqual(['token_required', 'token_required', 'token_invalid']);
      expect([takes.asks, recalls]).toEqual([[], []]);
    },
  );

  it('refuses at once a purchase whose token was valid once, if it has no key', () => {
    expect(ALL_FAULTS.map((token) => buy({ token }).told)).toEqual(
      ALL_FAULTS.map((reason) => [{ code: 'token_invalid', reason }]),
    );
    expect([takes.asks, recalls]).toEqual([[], []]);
  });

  it.each(['expired', 'generation'])('finds the order of a key although the token is %s', async (token) => {
    remember(5, anOrder());
    const repeated = buy({ key: 'click', token });
    const another = buy({ key: 'other', token });
    await settledTurns();
    expect(repeated.told).toEqual([{ code: 'committed', orderId: '900', quantity: 1 }]);
    expect(another.told).toEqual([{ code: 'token_invalid', reason: token }]);
    expect(takes.asks).toEqual([]);
  });

  it('answers that it is sold out or ended before it asks for a token', () => {
    board.close(SLOT, 1, monotonicMs());
    expect(codes(buy())).toEqual(['sold_out']);
    learn({ requireToken: true }, 'closed');
    expect(codes(buy({ token: 'alien' }))).toEqual(['sold_out']);
    expect(codes(buy({ token: 'alien', key: 'click' }))).toEqual(['token_invalid']);
    expect(recalls).toEqual([]);
  });

  it('serves a retake without a token', async () => {
    buy({ key: 'retake:900', onBehalf: true });
    await takes.next();
    expect(checkToken).not.toHaveBeenCalled();
  });

  it('asks for a token also if this worker still has to read the sale', async () => {
    await start({ durable: true }, { checkToken });
    expect(engine.asksForToken('sale')).toBe(true);
    answers.view = viewOf({ requireToken: true }, 'open', 3);
    const bought = [
      buy({ buyerId: 'bob' }),
      buy({ token: 'expired' }),
      buy({ buyerId: 'cleo', token: 'good' }),
    ];
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codes(...bought)).toEqual(['token_required', 'token_invalid', 'waits']);
    expect(checkToken).toHaveBeenLastCalledWith(expect.objectContaining(bought[2]!.purchase), 3);
    expect(engine.asksForToken('sale')).toBe(true);
    learn({ requireToken: false }, 'open', 3);
    expect(engine.asksForToken('sale')).toBe(false);
  });

  it.each<[string, Partial<Sale>, boolean]>([
    ['requires a token', { requireToken: true }, true],
    ['has a queue', { requireToken: false, queue: QUEUE }, true],
    ['had a queue, whose offers can still be accepted', { requireToken: false, hadQueue: true }, true],
    ['never had one', { requireToken: false, hadQueue: false }, false],
    ['says nothing of one', { requireToken: false }, false],
  ])('and one that %s: whether they ask for a token', (_, spec, asks) => {
    learn(spec);
    expect(engine.asksForToken('sale')).toBe(asks);
  });

  it('does not read the sale again for a purchase whose rules it has replaced already', async () => {
    learn({ requireToken: false });
    buy({ token: 'good' });
    const ask = await takes.next();
    learn({ requireToken: true });
    await ask.refuse('outdated');
    await takes.next();
    expect(directory.refresh).not.toHaveBeenCalled();
  });

  it('judges unsent purchases again when it gets other rules', async () => {
    learn({ requireToken: false });
    buy({ buyerId: 'first' });
    const first = await takes.next();
    const [bob, cleo] = [buy({ buyerId: 'bob' }), buy({ buyerId: 'cleo', token: 'good' })];
    learn({ requireToken: true });
    await first.serve([TAKEN]);
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codes(bob, cleo)).toEqual(['token_required', 'waits']);
  });

  it('judges purchases again whose segment has rules that this worker learns later, or has just learned', async () => {
    learn({ requireToken: false });
    const early = [buy({ buyerId: 'bob' }), buy({ buyerId: 'cleo', token: 'good' })];
    // Each has its own home segment.
    for (const ask of [await takes.next(), await takes.next()]) await ask.refuse('outdated');
    await settledTurns();
    expect(codes(...early)).toEqual(['waits', 'waits']);
    learn({ requireToken: true });
    const again = await takes.next();
    expect(again.buyers).toEqual(['cleo']);
    expect(again.batch.rules).toBe(rulesOf(answers.view.record.sale));
    expect(codes(...early)).toEqual(['token_required', 'waits']);
    learn({ requireToken: false });
    await again.refuse('outdated');
    expect((await takes.next()).buyers).toEqual(['cleo']);
  });

  it('does not send an unconfirmed purchase again if other rules refuse it', async () => {
    learn({ requireToken: false });
    const bob = buy({ buyerId: 'bob' });
    await (await takes.next()).loseReply();
    learn({ requireToken: true });
    await elapse(100);
    await (await takes.next()).refuse('outdated');
    await settledTurns();
    expect(codes(bob)).toEqual(['unknown']);
    expect(takes.asks).toHaveLength(2);
  });

  it('keeps the verdict on a purchase in the next generation: let in is served, refused is refused', async () => {
    const anna = buy({ token: 'good' });
    await (await takes.next()).refuse('stale');
    const bob = buy({ buyerId: 'bob', token: 'expired', key: 'click' });
    await settledTurns();
    expect(codes(anna, bob)).toEqual(['waits', 'waits']);
    learn({ requireToken: true }, 'open', 2);
    expect((await takes.next()).buyers).toEqual(['anna']);
    await settledTurns();
    expect(codes(anna, bob)).toEqual(['waits', 'token_invalid']);
    expect(takes.asks).toHaveLength(2);
  });
});
