/** What a deadline answers, by what the lane knows of the purchase. */
import { describe, expect, it } from 'vitest';
import { elapse } from '../../../../support/engine/frozen-time.ts';
import {
  buy,
  grew,
  handedBack,
  LIVES_MS,
  open,
  SENT_AGAIN_MS,
  stageLane,
  takes,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a deadline', () => {
  it.each([
    ['queued', true, 'busy'],
    ['sent', true, 'unknown'],
    ['short, and sent with a refill', true, 'unknown'],
    ['taken', true, 'accepted'],
    ['taken', false, 'unknown'],
  ])('finds the purchase %s (durable: %s) and answers %s', async (how, durable, code) => {
    open({ durable });
    let pending = buy('anna');
    const ask = await takes.next();
    if (how === 'queued') pending = buy('ben');
    if (how === 'taken') await ask.serve([TAKEN], { seq: 1 });
    if (how.startsWith('short')) await ask.serve([SHORT]);
    await elapse(LIVES_MS + 50);
    expect(codesOf([pending])).toEqual([code]);
  });

  it('answers busy while the store delays the purchase: nothing was sent', async () => {
    takes.isDelayed = true;
    const anna = buy('anna');
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    expect(codesOf([anna])).toEqual(['busy']);
    await ask.serve([{ kind: 'unsent' }], { seq: 0 });
    expect(codesOf([anna])).toEqual(['busy']);
    expect(grew).not.toHaveBeenCalled();
  });

  it('ends the purchase: no record is read when its segment refuses it later', async () => {
    const anna = buy('anna', { key: 'click' });
    const ask = await takes.next();
    await elapse(LIVES_MS + 50);
    await ask.refuse('paused');
    expect(codesOf([anna])).toEqual(['unknown']);
    expect(handedBack).toEqual([]);
  });

  it('answers busy while the purchase waits for a refill', async () => {
    const anna = buy('anna');
    const ask = await takes.next();
    takes.isDelayed = true;
    await ask.serve([SHORT]);
    await takes.next();
    await elapse(LIVES_MS + 50);
    expect(codesOf([anna])).toEqual(['busy']);
  });

  it('answers unknown while the purchase is delayed and an earlier attempt is unconfirmed', async () => {
    const anna = buy('anna');
    const first = await takes.next();
    takes.isDelayed = true;
    await first.loseReply();
    await elapse(SENT_AGAIN_MS);
    await takes.next();
    await elapse(LIVES_MS);
    expect(codesOf([anna])).toEqual(['unknown']);
  });
});
