import { describe, expect, test } from 'vitest';
import type { Place } from '../../../src/queue/place.ts';
import { nextTurn } from '../../../src/queue/turn.ts';

const place = (number: number, quantity = 1) => ({ number, quantity }) as Place;
const everybody = () => true;
const offersOf = ({ offers }: ReturnType<typeof nextTurn>) =>
  offers.map(({ place: { number }, quantity }) => `${number}:${quantity}`);

test('units go to the places in their order', () => {
  const turn = nextTurn([place(3), place(5, 2), place(6)], { units: 3, offers: 9 }, 'wait', everybody);
  expect(offersOf(turn)).toEqual(['3:1', '5:2']);
  expect(turn.goesOn).toBe(false);
});

test('it goes on if units and offers are left after the last place', () => {
  expect(nextTurn([place(1)], { units: 2, offers: 2 }, 'wait', everybody).goesOn).toBe(true);
  expect(nextTurn([place(1)], { units: 1, offers: 2 }, 'wait', everybody).goesOn).toBe(false);
  expect(nextTurn([place(1)], { units: 2, offers: 1 }, 'wait', everybody).goesOn).toBe(false);
  expect(nextTurn([], { units: 1, offers: 1 }, 'wait', everybody).goesOn).toBe(true);
});

test('without units or offers nobody is looked at', () => {
  for (const free of [
    { units: 0, offers: 9 },
    { units: 9, offers: 0 },
  ])
    expect(nextTurn([place(1), place(2)], free, 'pass', () => false)).toEqual({
      offers: [],
      absent: [],
      goesOn: false,
    });
});

describe('a place that wants more than is free', () => {
  const waiting = [place(1, 2), place(2, 3), place(3, 1), place(4, 1)];
  test.each([
    ['wait', ['1:2'], false],
    ['less', ['1:2', '2:2'], false],
    ['pass', ['1:2', '3:1', '4:1'], false],
  ] as const)('with fit %s', (fit, offers, goesOn) => {
    const turn = nextTurn(waiting, { units: 4, offers: 9 }, fit, everybody);
    expect(offersOf(turn)).toEqual(offers);
    expect(turn.goesOn).toBe(goesOn);
  });
});

test('those who are absent are passed over, as far as units reach', () => {
  const present = new Set([2, 4]);
  const turn = nextTurn(
    [1, 2, 3, 4, 5].map((n) => place(n)),
    { units: 2, offers: 9 },
    'wait',
    (n) => present.has(n),
  );
  expect(offersOf(turn)).toEqual(['2:1', '4:1']);
  expect(turn.absent.map(({ number }) => number)).toEqual([1, 3]);
});
