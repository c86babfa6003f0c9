import { expect, test } from 'vitest';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { decodeAudit, RedisAudits } from '../../../../src/engine/redis/redis-audits.ts';
import type { RedisClient } from '../../../../src/redis/clients.ts';

const COUNTS = { left: 7, taken: 3, supplied: 10, returned: 0, credited: 0, withdrawn: 0, seq: 3 };

test('a segment with a valid state and valid counters is sound', () => {
  const values = ['open', '7', '3', '10', '0', '0', '0', '3'];
  expect(decodeAudit(values)).toEqual({ found: 'sound', state: 'open', ...COUNTS, inTransit: 0 });
});

test('a segment in which others have written is a fault, which names each invalid field with its value', () => {
  expect(decodeAudit(['ajar', '7', '-3', '10', '0', '0', '0', null])).toEqual({
    found: 'fault',
    fault: 'state is "ajar", taken is "-3", seq is null',
  });
});

test('if only the units left are invalid, the other counters can be used', () => {
  expect(decodeAudit(['open', '7 or 8', '3', '10', '0', '0', '0', '3'])).toMatchObject({
    found: 'fault',
    fault: 'left is "7 or 8"',
    others: { ...COUNTS, left: Number.NaN, state: 'open' },
  });
});

test('a segment that is missing is nothing, and a key that is no segment is a fault', () => {
  expect(decodeAudit(null)).toEqual({ found: 'nothing' });
  expect(decodeAudit('WRONGTYPE no hash')).toEqual({ found: 'fault', fault: 'WRONGTYPE no hash' });
});

const REF = { saleId: 's', segment: 0, generation: 1 };

/** Audits of a Redis in which these are the pages of buyers' records, by cursor. */
function auditsOf(pages: Record<string, [next: string, flat: unknown[]]>) {
  const redis = {
    hscan: async (key: string, cursor: string, word: string, count: number) => {
      expect([key, word, count]).toEqual(['p:{s:0}:buyers', 'COUNT', 1_000]);
      return pages[cursor];
    },
  };
  return new RedisAudits(redis as unknown as RedisClient, {} as Scripts, new Keys('p:'));
}

test('the records of a segment are read page by page, up to the last one', async () => {
  const audits = auditsOf({ 0: ['17', ['anna', '1:2:3:k', 'ben', '']], 17: ['0', ['cleo', '4:1:5:']] });
  const [anna, cleo] = [
    { orderId: '1', quantity: 2, seq: 3, key: 'k' },
    { orderId: '4', quantity: 1, seq: 5, key: '' },
  ];
  expect(await audits.records(REF, '')).toEqual({
    holdings: [
      { buyerId: 'anna', orders: [anna] },
      { buyerId: 'ben', orders: [] },
    ],
    next: '17',
  });
  const holdings = [{ buyerId: 'cleo', orders: [cleo] }];
  expect(await audits.records(REF, '17')).toEqual({ holdings, next: '' });
});

test('an invalid record is a fault of its buyer alone; a failure of the program fails the page', async () => {
  const flat = ['anna', 'nonsense', 'ben', ''];
  expect((await auditsOf({ 0: ['0', flat] }).records(REF, '')).holdings).toEqual([
    { buyerId: 'anna', orders: [], fault: 'a buyer\'s record holds "nonsense"' },
    { buyerId: 'ben', orders: [] },
  ]);
  await expect(auditsOf({ 0: ['0', ['anna', 7]] }).records(REF, '')).rejects.toThrow(TypeError);
});

test('a counter is corrected if the script says so', async () => {
  for (const [reply, isCorrected] of [
    [1, true],
    [0, false],
  ]) {
    const scripts = { correct: async () => reply };
    const audits = new RedisAudits({} as RedisClient, scripts as unknown as Scripts, new Keys('p:'));
    expect(await audits.correct(REF, 'left', 0)).toBe(isCorrected);
  }
});
