/** The rules of a sale and the ids of rehearsals are stored as text: other versions read it too. */
import { describe, expect, it } from 'vitest';
import { isRehearsal, newRehearsalId } from '../../../../src/engine/sale/rehearsal.ts';
import { NO_RULES, rulesOf } from '../../../../src/engine/sale/rules.ts';

describe('the rules of a sale', () => {
  const open = { startsAt: 1_000, endsAt: undefined, requireToken: false, perBuyerLimit: 2 };

  it.each([
    [{}, '1000:::2'],
    [{ endsAt: 2_000 }, '1000:2000::2'],
    [{ requireToken: true }, '1000::token:2'],
    [{ queue: { order: 'fifo' } }, '1000:::2:queue'],
    [{ endsAt: 0, requireToken: true, queue: {} }, '1000:0:token:2:queue'],
  ])('with %j are %j', (others, rules) => {
    expect(rulesOf({ ...open, ...others })).toBe(rules);
  });

  it('are never empty, which means that there are none', () => {
    expect(NO_RULES).toBe('');
  });
});

describe('the id of a rehearsal', () => {
  it('is another one each time, and is known by its beginning', () => {
    const id = newRehearsalId();
    expect(id).toMatch(/^stockade-rehearsal-[0-9a-f]{12}$/);
    expect(newRehearsalId()).not.toBe(id);
    expect([id, 'tickets', `x-${id}`, ''].map(isRehearsal)).toEqual([true, false, false, false]);
  });
});
