/** What a worker knows of sales: a sale that it does not know is looked up. */
import { describe, expect, it } from 'vitest';
import type { Outcome, Purchase } from '../../../../../src/engine/contract.ts';
import { Busy } from '../../../../../src/engine/errors.ts';
import {
  advance,
  anOrder,
  answers,
  buy,
  codes,
  directory,
  ENDS_AT,
  engine,
  LIMIT,
  LIVES_MS,
  learn,
  lookingUp,
  recalls,
  remember,
  SLOT,
  stageEngine,
  takes,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { elapse, settledTurns } from '../../../../support/engine/frozen-time.ts';
import { TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageEngine();

describe('a sale that this worker does not know', () => {
  it('is looked up, and the purchase continues', async () => {
    const anna = buy();
    await (await takes.next()).serve([TAKEN], { seq: 1 });
    advance(1);
    expect(codes(anna)).toEqual(['committed']);
    buy({ buyerId: 'ben' });
    await takes.next();
    expect(directory.lookup).toHaveBeenCalledTimes(1);
  });

  it('is unknown if the directory does not know it', async () => {
    const anna = buy({ saleId: 'nothing' });
    await settledTurns();
    expect(codes(anna)).toEqual(['unknown_sale']);
  });

  it.each([
    ['rejects', async () => Promise.reject(new Error('away'))],
    [
      'throws',
      () => {
        throw new Error('away');
      },
    ],
  ])('is unavailable if the directory %s', async (_, lookup) => {
    directory.lookup.mockImplementation(lookup);
    const anna = buy();
    await settledTurns();
    expect(codes(anna)).toEqual(['unavailable']);
  });

  it('is unavailable at once while the store is away', async () => {
    takes.ready = false;
    directory.lookup.mockReturnValue(new Promise(() => {}));
    expect(codes(buy())).toEqual(['unavailable']);
  });

  it('is busy if too many sales are looked up', async () => {
    directory.lookup.mockRejectedValue(new Busy('1,000 lookups of sales wait'));
    const anna = buy();
    await settledTurns();
    expect(codes(anna)).toEqual(['busy']);
  });

  it('does not delay a purchase beyond its deadline if the directory does not answer', async () => {
    directory.lookup.mockReturnValue(new Promise(() => {}));
    const anna = buy();
    await elapse(LIVES_MS + 50);
    expect(codes(anna)).toEqual(['busy']);
  });

  it('is looked up within the deadline of the purchase, which does not start again', async () => {
    const found = lookingUp();
    const anna = buy();
    await elapse(LIVES_MS - 100);
    learn();
    found();
    await takes.next();
    expect(codes(anna)).toEqual(['waits']);
    await elapse(150);
    expect(codes(anna)).toEqual(['unknown']);
  });

  it('sells nothing if it is found after the deadline', async () => {
    const found = lookingUp();
    const anna = buy();
    await elapse(LIVES_MS + 50);
    learn();
    found();
    await settledTurns();
    expect(takes.asks).toEqual([]);
    expect(codes(anna)).toEqual(['busy']);
  });

  it('reads no record for a purchase whose deadline has passed before the sale was found', async () => {
    const found = lookingUp();
    buy({ key: 'click' });
    await elapse(LIVES_MS + 50);
    learn({}, 'paused');
    found();
    await settledTurns();
    expect(recalls).toEqual([]);
  });

  it('reads no record for a purchase whose refusal is final', async () => {
    answers.view = viewOf({}, 'paused');
    const anna = buy();
    await settledTurns();
    expect([codes(anna), recalls]).toEqual([['paused'], []]);
  });

  it.each<[string, Partial<Purchase>, Outcome]>([
    ['plain', {}, { code: 'ended', endedAt: ENDS_AT }],
    ['keyed', { key: 'click' }, { code: 'committed', orderId: '900', quantity: 1 }],
    [
      'too large',
      { quantity: 9 },
      { code: 'invalid_request', detail: `quantity must be a whole number from 1 to ${LIMIT}` },
    ],
  ])('answers a %s purchase after its end as a known sale does', async (_, spec, outcome) => {
    answers.view = viewOf({}, 'closed');
    remember(5, anOrder());
    const anna = buy(spec);
    await settledTurns();
    expect(anna.told).toEqual([outcome]);
  });
});

it('the view of a sale is what the directory told, and is looked up once', async () => {
  expect(await engine.view('sale')).toEqual({ record: answers.view.record, slot: SLOT });
  expect(await engine.view('sale')).toEqual({ record: answers.view.record, slot: SLOT });
  expect(directory.lookup).toHaveBeenCalledTimes(1);
});

describe('what a worker knows of a sale', () => {
  it('is its record, once it knows the sale', () => {
    expect(engine.knownRecord('sale')).toBeUndefined();
    learn();
    expect(engine.knownRecord('sale')).toBe(answers.view.record);
    expect(engine.knownRecord('nothing')).toBeUndefined();
  });

  it('is a buyer’s record, for which it looks the sale up', async () => {
    remember(5, anOrder());
    expect(await engine.recordOf('sale', 'anna')).toEqual({ committed: 5, orders: [anOrder()] });
    expect(await engine.recordOf('nothing', 'anna')).toBeUndefined();
    expect(recalls).toEqual([['anna']]);
  });
});
