import { describe, expect, it } from 'vitest';
import { ServerClock } from '../../../../../src/engine/redis/take/server-clock.ts';

/** Readings: the server's clock, when it was asked for, and when the reply came. */
type Reading = readonly [toldMs: number, askedMs: number, answeredMs: number];

function clockAfter(...readings: Reading[]): ServerClock {
  const clock = new ServerClock();
  for (const reading of readings) clock.read(...reading);
  return clock;
}

describe('the clock of a server', () => {
  it('is not known before it is read', () => {
    expect(new ServerClock().at(5)).toBeUndefined();
  });

  it('is taken as if it had been read when the reply came, in whole milliseconds', () => {
    expect(clockAfter([1_000.9, 10, 30]).at(30)).toBe(1_000);
    expect(clockAfter([1_000.9, 10, 30]).at(50.2)).toBe(1_021);
  });

  it.each<[string, Reading[], number]>([
    [
      'the faster of two replies counts, as the second',
      [
        [1_000, 0, 50],
        [2_000, 1_000, 1_010],
      ],
      990,
    ],
    [
      'and as the first',
      [
        [1_000, 0, 10],
        [2_000, 1_000, 1_050],
      ],
      990,
    ],
    [
      'a clock that was set back',
      [
        [1_000, 0, 10],
        [1_900, 1_000, 1_010],
      ],
      890,
    ],
    [
      'a clock that was set forward',
      [
        [1_000, 0, 10],
        [2_500, 1_000, 1_010],
      ],
      1_490,
    ],
    [
      'a clock that may have been set back, or the reply was slow',
      [
        [1_000, 0, 10],
        [1_990, 1_000, 1_010],
      ],
      990,
    ],
  ])('%s', (_, readings, lead) => {
    expect(clockAfter(...readings).at(0)).toBe(lead);
  });

  it('is never put back by a reply of which it is not known when it was asked for', () => {
    const clock = clockAfter([1_000, 0, 10]);
    clock.told(3_000, 2_900);
    expect(clock.at(0)).toBe(990);
    clock.told(5_000, 3_000);
    expect(clock.at(0)).toBe(2_000);
  });
});
