import { describe, expect, test } from 'vitest';
import { MAX_ASKED_PER_SECOND, Sampling } from '../../../src/traces/sampling.ts';

type Settings = ConstructorParameters<typeof Sampling>[0];

/** What a sampler with the share 0.25 decides: for a random number below the share, and for one above it. */
function decisions(sampler: Settings['sampler'], parent: boolean | undefined): [boolean, boolean] {
  const at = (random: number) => new Sampling({ sampler, share: 0.25 }, () => random).isSampled(parent);
  return [at(0.2), at(0.25)];
}

const ALL = [true, true];
const NONE = [false, false];
const SHARE = [true, false];

test.each([
  ['always_on', ALL, ALL, ALL],
  ['always_off', NONE, NONE, NONE],
  ['traceidratio', SHARE, SHARE, SHARE],
  ['parentbased_always_on', ALL, ALL, NONE],
  ['parentbased_always_off', NONE, ALL, NONE],
  ['parentbased_traceidratio', SHARE, ALL, NONE],
] as const)('%s', (sampler, withoutParent, ofTraced, ofUntraced) => {
  expect(decisions(sampler, undefined)).toEqual(withoutParent);
  expect(decisions(sampler, true)).toEqual(ofTraced);
  expect(decisions(sampler, false)).toEqual(ofUntraced);
});

test.each([
  [0, 0, false],
  [1, 0.999999, true],
])('a share of %d', (share, random, isSampled) => {
  expect(new Sampling({ sampler: 'traceidratio', share }, () => random).isSampled(undefined)).toBe(isSampled);
});

describe('clients that trace', () => {
  let now = 0;
  const asked = (sampling: Sampling, requests: number) =>
    Array.from({ length: requests }, () => sampling.isSampled(true)).filter(Boolean).length;

  test('are believed for a bounded number of purchases a second', () => {
    const sampling = new Sampling(
      { sampler: 'parentbased_always_off', share: 0 },
      () => 0,
      () => now,
    );
    expect(asked(sampling, MAX_ASKED_PER_SECOND + 500)).toBe(MAX_ASKED_PER_SECOND);
    now += 999;
    expect(asked(sampling, 10)).toBe(0);
    now += 1;
    expect(asked(sampling, 10)).toBe(10);
  });

  test('get the share of all others beyond that', () => {
    let draws = 0;
    const sampling = new Sampling(
      { sampler: 'parentbased_traceidratio', share: 0.5 },
      () => (draws++ % 2 === 0 ? 0.1 : 0.9),
      () => now,
    );
    asked(sampling, MAX_ASKED_PER_SECOND);
    expect(asked(sampling, 100)).toBe(50);
  });
});
