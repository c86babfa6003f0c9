import { expect, test } from 'vitest';
import { SegmentCache } from '../../../../src/engine/sale/segment-cache.ts';

test('each segment is computed once; with one sale too many, all start anew', () => {
  const computed: string[] = [];
  const cache = new SegmentCache(({ saleId, segment }) => {
    computed.push(`${saleId}:${segment}`);
    return computed.length;
  });
  const at = (saleId: string, segment: number) => cache.get({ saleId, segment });
  expect([at('a', 3), at('a', 0), at('b', 0), at('a', 3)]).toEqual([1, 2, 3, 1]);
  for (let i = 0; i < 1_022; i++) at(`other-${i}`, 0);
  expect(at('a', 3)).toBe(1);
  at('one-more', 0);
  expect(at('a', 3)).toBe(computed.length);
});
