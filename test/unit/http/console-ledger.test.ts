/** What the console's page says about an entry of the ledger. */
import { expect, test } from 'vitest';
// @ts-expect-error The page is JavaScript.
import { detailText } from '../../../src/http/ops/console/ledger.js';

const START = '2026-11-27T20:00:00.000Z';

test.each([
  [
    {
      action: 'create',
      detail: { stock: 3, segments: 8, perBuyerLimit: 2, startsAt: START, requireToken: false },
    },
    /^3 units in 8 segments; 2 per buyer; starts 27 Nov 2026, \d\d:00:00; ends never$/,
  ],
  [
    { action: 'window', detail: { from: [START, null], to: [START, '2026-11-28T20:00:00.000Z'] } },
    /^ends 28 Nov 2026, \d\d:00:00, was never$/,
  ],
  [{ action: 'resize', detail: { from: 8, to: 16 } }, 'from 8 to 16 segments'],
  [{ action: 'require-token', detail: { from: false, to: true } }, 'required now'],
  [{ action: 'withdraw', units: -5, detail: { wanted: 5 } }, ''],
  [{ action: 'withdraw', units: -3, detail: { wanted: 5 } }, 'wanted 5'],
  [{ action: 'withdraw', detail: { void: true, wanted: 5 } }, 'had no effect, wanted 5'],
  [
    {
      action: 'edit',
      detail: { from: { title: '', currency: 'EUR' }, to: { title: 'Row', currency: null } },
    },
    'title "Row", was ""; currency none, was "EUR"',
  ],
  [{ action: 'edit', detail: { from: { metadata: {} }, to: { metadata: { gate: 'A' } } } }, 'metadata'],
  [
    { action: 'queue', detail: { from: { allowed: 0, perMinute: 5 }, to: { allowed: 1, perMinute: 5 } } },
    'to hand out 1, was 0',
  ],
  [
    { action: 'queue', detail: { from: { queue: 'off' }, to: { queue: 'fifo', maxWaiting: 1_000_000 } } },
    'queue fifo, was off; maxWaiting 1,000,000',
  ],
  [{ action: 'erase', detail: { orders: 1, pseudonym: 'erased-1' } }, '1 order of one buyer, now erased-1'],
  [{ action: 'pause', detail: { from: 'open' } }, 'was open'],
  [{ action: 'top-up', units: 5, detail: {} }, ''],
])('%j', (entry, said) => {
  const text = detailText({ units: 0, ...entry });
  if (said instanceof RegExp) expect(text).toMatch(said);
  else expect(text).toBe(said);
});
