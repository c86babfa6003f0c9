import { expect, test } from 'vitest';
import { readUntilStable } from '../../../../src/engine/cluster/stable-read.ts';

/** Looks that find these one after the other, the last one for ever. */
function finding(...seen: { units: number; at?: number }[]) {
  const looks = { count: 0, look: async () => seen[Math.min(looks.count++, seen.length - 1)]! };
  return looks;
}

const units = (seen: { units: number }) => seen.units;

test('returns what two reads in a row have found', async () => {
  const looks = finding({ units: 1 }, { units: 2 }, { units: 1 }, { units: 1 });
  expect(await readUntilStable(looks.look, units)).toEqual({ seen: { units: 1 }, isStable: true });
  expect(looks.count).toBe(4);
});

test('returns the newer of two reads that may differ', async () => {
  expect(await readUntilStable(finding({ units: 1, at: 1 }, { units: 1, at: 2 }).look, units)).toEqual({
    seen: { units: 1, at: 2 },
    isStable: true,
  });
});

test('returns the last read if they never agree, and says so', async () => {
  let at = 0;
  const { seen, isStable } = await readUntilStable(async () => ({ units: ++at }), units);
  expect([seen.units, isStable]).toEqual([at, false]);
  expect(at).toBe(10);
});
