import { expect, test } from 'vitest';
import { Turns } from '../../../src/queue/head/turns.ts';

const befores = (turns: Turns) => [1, 2, 3, 1_000].map((quantity) => turns.before(quantity));

test('the turn comes further for those who want less', () => {
  const turns = new Turns();
  turns.come(10);
  turns.come(20, 2);
  turns.come(30, 1);
  turns.come(15, 1);
  expect(befores(turns)).toEqual([30, 20, 10, 10]);
  expect([9, 10, 19, 20, 29, 30].map((rank) => turns.mostAt(rank))).toEqual([1_000, 2, 2, 1, 1, 0]);
});

test('units beyond the limit count as the limit, and no unit lets no turn come', () => {
  const turns = new Turns();
  turns.come(5, 1_000_000);
  turns.come(9, 0);
  expect(befores(turns)).toEqual([5, 5, 5, 5]);
});

test('turns of two rounds come together', () => {
  const [turns, other] = [new Turns(), new Turns()];
  turns.come(10, 3);
  other.come(20, 1);
  other.come(5);
  turns.add(other);
  expect(befores(turns)).toEqual([20, 10, 10, 5]);
});
