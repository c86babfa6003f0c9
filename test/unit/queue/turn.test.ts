import { describe, expect, test } from 'vitest';
import { nextTurn } from '../../../src/queue/head/turn.ts';
import type { Place } from '../../../src/queue/place.ts';

const place = (number: number, quantity = 1) => ({ number, quantity }) as Place;
const offersOf = ({ offers }: ReturnType<typeof nextTurn>) =>
  offers.map(({ place: { number }, quantity }) => `${number}:${quantity}`);

test('units go to the places in their order', () => {
  const turn = nextTurn([place(3), place(5, 2), place(6)], { units: 3, offers: 9 }, 'wait');
  expect(offersOf(turn)).toEqual(['3:1', '5:2']);
  expect(turn.goesOn).toBe(false);
});

test('it goes on if units and offers are left after the last place', () => {
  expect(nextTurn([place(1)], { units: 2, offers: 2 }, 'wait').goesOn).toBe(true);
  expect(nextTurn([place(1)], { units: 1, offers: 2 }, 'wait').goesOn).toBe(false);
  expect(nextTurn([place(1)], { units: 2, offers: 1 }, 'wait').goesOn).toBe(false);
  expect(nextTurn([], { units: 1, offers: 1 }, 'wait').goesOn).toBe(true);
});

test('without units or offers nobody is looked at', () => {
  for (const free of [
    { units: 0, offers: 9 },
    { units: 9, offers: 0 },
  ])
    expect(nextTurn([place(1), place(2)], free, 'pass')).toEqual({
      offers: [],
      left: free,
      last: undefined,
      goesOn: false,
    });
});

test('an offer that was begun before is repeated, and uses up no other one', () => {
  const waiting = [place(1), place(2), place(3), place(4)];
  const turn = (offers: number) => nextTurn(waiting, { units: 9, offers }, 'wait', new Set([1, 3]));
  expect([offersOf(turn(0)), turn(0).left]).toEqual([['1:1'], { units: 8, offers: 0 }]);
  expect([offersOf(turn(1)), turn(1).left]).toEqual([['1:1', '2:1', '3:1'], { units: 6, offers: 0 }]);
});

describe('a place that wants more than is free', () => {
  const waiting = [place(1, 2), place(2, 3), place(3, 1), place(4, 1)];
  test.each([
    ['wait', ['1:2'], false],
    ['less', ['1:2', '2:2'], false],
    ['pass', ['1:2', '3:1', '4:1'], false],
  ] as const)('with fit %s', (fit, offers, goesOn) => {
    const turn = nextTurn(waiting, { units: 4, offers: 9 }, fit);
    expect(offersOf(turn)).toEqual(offers);
    expect(turn.goesOn).toBe(goesOn);
  });
});

test('the last place whose turn has come is the one that gets the last units, or waits for more', () => {
  const waiting = [place(1), place(2, 2), place(3)];
  expect(nextTurn(waiting, { units: 1, offers: 9 }, 'wait').last).toBe(waiting[0]);
  expect(nextTurn(waiting, { units: 2, offers: 9 }, 'wait').last).toBe(waiting[1]);
  expect(nextTurn(waiting, { units: 2, offers: 9 }, 'pass').last).toBe(waiting[2]);
});
