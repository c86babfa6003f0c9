import { expect, test } from 'vitest';
import { Pace } from '../../../src/queue/head/pace.ts';

test('offers come as fast as the pace says, and no faster after a lull', () => {
  const pace = new Pace();
  expect(pace.allowed(600, 0)).toBe(0);
  expect(pace.allowed(600, 500)).toBe(5);
  pace.used(5);
  expect(pace.allowed(600, 600)).toBe(1);
  expect(pace.allowed(600, 60_000)).toBe(10);
});

test('a slow pace allows one offer after the other', () => {
  const pace = new Pace();
  pace.allowed(6, 0);
  expect(pace.allowed(6, 9_000)).toBe(0);
  expect(pace.allowed(6, 10_000)).toBe(1);
  pace.used(1);
  expect(pace.allowed(6, 15_000)).toBe(0);
  expect(pace.allowed(6, 90_000)).toBe(1);
});
