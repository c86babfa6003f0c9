/** What a deadline answers, by what the lane knows of the purchase. */
import { describe, expect, it } from 'vitest';
import { elapse } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  buy,
  grew,
  handedBack,
  LIVES_MS,
  lane,
  open,
  SENT_AGAIN_MS,
  shortLived,
  stageLane,
  takes,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

/** Of the 100 ms that a short-lived purchase has. */
const NEARLY_ALL_MS = 85;

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

describe('a purchase with too little time left', () => {
  it('is answered when its batch is made, and the others are sent', async () => {
    buy('anna');
    const first = await takes.next();
    const [ben, cleo] = [buy('ben', {}, lane, shortLived), buy('cleo')];
    await elapse(NEARLY_ALL_MS);
    await first.serve([TAKEN], { seq: 1 });
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codesOf([ben, cleo])).toEqual(['busy', 'waits']);
  });

  it('is not answered before its deadline if an attempt may still be made', async () => {
    const ben = buy('ben', {}, lane, shortLived);
    await elapse(NEARLY_ALL_MS - SENT_AGAIN_MS);
    await (await takes.next()).loseReply();
    await elapse(SENT_AGAIN_MS);
    expect(codesOf([ben])).toEqual(['waits']);
    expect(takes.asks).toHaveLength(1);
    await elapse(30);
    expect(codesOf([ben])).toEqual(['unknown']);
  });

  it('is not sent again if its reply was lost, and the lane goes on', async () => {
    const ben = buy('ben', {}, lane, shortLived);
    await (await takes.next()).loseReply();
    takes.ready = false;
    await elapse(NEARLY_ALL_MS);
    await takes.becomeReady();
    await elapse(SENT_AGAIN_MS);
    expect(codesOf([ben])).toEqual(['unknown']);
    const cleo = buy('cleo');
    expect((await takes.next()).buyers).toEqual(['cleo']);
    expect(codesOf([cleo])).toEqual(['waits']);
  });
});

describe('a batch that came too late', () => {
  it('was not taken, and is sent again', async () => {
    const [anna, ben] = [buy('anna'), buy('ben', {}, lane, shortLived)];
    const first = await takes.next();
    expect(first.deadlines).toEqual([anna.deadline, ben.deadline]);
    await elapse(NEARLY_ALL_MS);
    await first.refuse('late');
    expect(codesOf([anna, ben])).toEqual(['waits', 'busy']);
    const again = await takes.next();
    expect(again.orders).toEqual(first.orders.slice(0, 1));
    await again.serve([TAKEN], { seq: 1 });
    advance(1);
    expect(codesOf([anna])).toEqual(['committed']);
  });

  it('is sent again only with purchases that have more time than the attempt took, by a quarter', async () => {
    const ben = buy('ben', {}, lane, shortLived);
    const first = await takes.next();
    await elapse(20);
    const cleo = buy('cleo', {}, lane, shortLived);
    await elapse(20);
    const dora = buy('dora', {}, lane, shortLived);
    await elapse(20);
    await first.refuse('late');
    expect((await takes.next()).buyers).toEqual(['dora']);
    expect(codesOf([ben, cleo, dora])).toEqual(['busy', 'busy', 'waits']);
  });

  it('stays unconfirmed if an earlier attempt was', async () => {
    const anna = buy('anna');
    await (await takes.next()).loseReply();
    await elapse(SENT_AGAIN_MS);
    await (await takes.next()).refuse('late');
    await elapse(LIVES_MS);
    expect(codesOf([anna])).toEqual(['unknown']);
  });
});
