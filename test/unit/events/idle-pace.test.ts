import { describe, expect, test } from 'vitest';
import { IdlePace } from '../../../src/events/idle-pace.ts';

describe('a relay that has found nothing looks again', () => {
  test('within 100 ms while the last event is less than 10 s ago', () => {
    const pace = new IdlePace(0);
    pace.restMs(0, 50_000);
    expect(pace.restMs(undefined, 50_100)).toBe(100);
    expect(pace.restMs(undefined, 59_999)).toBe(100);
  });

  test('within 250 ms after that, until there is an event', () => {
    const pace = new IdlePace(0);
    pace.restMs(0, 50_000);
    expect(pace.restMs(undefined, 60_000)).toBe(250);
    expect(pace.restMs(undefined, 90_000)).toBe(250);
    pace.restMs(0, 90_250);
    expect(pace.restMs(undefined, 90_250)).toBe(100);
  });

  test('within 100 ms after its start', () => {
    const pace = new IdlePace(50_000);
    expect(pace.restMs(undefined, 59_999)).toBe(100);
    expect(pace.restMs(undefined, 60_000)).toBe(250);
  });
});

test('a step that asks for a rest gets it, and counts as an event', () => {
  const pace = new IdlePace(0);
  expect(pace.restMs(750, 50_000)).toBe(750);
  expect(pace.restMs(undefined, 50_750)).toBe(100);
});
