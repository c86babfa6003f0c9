/** A change as an operator sends it: nothing is made up or lost, and each fault is named with its field. */
import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../../src/engine/errors.ts';
import { changeToJson, parseChange } from '../../../../src/engine/sale/sale-change.ts';

const START = Date.UTC(2026, 10, 27, 19);
const START_TEXT = '2026-11-27T20:00:00+01:00';

function faultsOf(input: unknown): string[] | undefined {
  try {
    parseChange(input);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInput);
    return (error as InvalidInput).faults.map(({ field, problem }) => `${field}: ${problem}`);
  }
}

describe('a change', () => {
  it.each<{ action: string; [field: string]: unknown }>([
    ...['pause', 'resume', 'close', 'archive'].map((action) => ({ action })),
    ...['top-up', 'withdraw'].flatMap((action) => [
      { action, units: 1 },
      { action, units: 2 ** 31 },
    ]),
    { action: 'resize', segments: 1 },
    { action: 'resize', segments: 1_024 },
    { action: 'require-token', requireToken: true },
    { action: 'require-token', requireToken: false },
    { action: 'queue', queue: 'off' },
    { action: 'queue', queue: 'fifo' },
    { action: 'queue', queue: 'draw' },
    { action: 'queue', offerSeconds: 1 },
    { action: 'queue', offerSeconds: 31_536_000 },
    { action: 'queue', presenceSeconds: 0 },
    { action: 'queue', presenceSeconds: 86_400 },
    { action: 'queue', maxWaiting: 1 },
    { action: 'queue', maxWaiting: 10_000_000 },
    ...['wait', 'less', 'pass'].map((fit) => ({ action: 'queue', fit })),
    { action: 'edit', title: '' },
    { action: 'edit', perBuyerLimit: 1_000 },
    { action: 'edit', payWithinSeconds: 60 },
    { action: 'edit', priceMinor: 0 },
    { action: 'edit', faceValueMinor: 1 },
    { action: 'edit', currency: 'EUR' },
    { action: 'edit', metadata: { hall: 7 } },
    { action: 'edit', payWithinSeconds: null, priceMinor: null, faceValueMinor: null, currency: null },
  ])('%j is taken as it is', (input) => {
    expect(parseChange(input)).toEqual({ change: input, reason: '' });
    expect(parseChange({ ...input, reason: 'asked' })).toEqual({ change: input, reason: 'asked' });
    expect(changeToJson(parseChange(input).change)).toEqual(input);
  });

  it.each([
    [{ startsAt: START_TEXT }, { startsAt: START }],
    [{ endsAt: START_TEXT }, { endsAt: START }],
    [{ endsAt: null }, { endsAt: null }],
    [
      { startsAt: START_TEXT, endsAt: START_TEXT },
      { startsAt: START, endsAt: START },
    ],
  ])('of the window to %j has times in milliseconds, and in JSON as ISO 8601', (input, times) => {
    const { change } = parseChange({ action: 'window', ...input });
    expect(change).toEqual({ action: 'window', ...times });
    const iso = Object.entries(times).map(([name, ms]) => [name, ms && '2026-11-27T19:00:00.000Z']);
    expect(changeToJson(change)).toEqual({ action: 'window', ...Object.fromEntries(iso) });
  });
});

const QUEUE_NAMES = 'queue, offerSeconds, presenceSeconds, maxWaiting, fit';
const EDITS = 'title, perBuyerLimit, payWithinSeconds, priceMinor, faceValueMinor, currency, metadata';

describe('is refused:', () => {
  it.each([
    [
      { action: 'burn' },
      'action: must be one of pause, resume, close, archive, top-up, withdraw, window, resize, require-token, queue, edit',
    ],
    [
      {},
      'action: must be one of pause, resume, close, archive, top-up, withdraw, window, resize, require-token, queue, edit',
    ],
    [{ action: 'pause', units: 1, why: 2 }, 'units, why: is not a part of this change'],
    [{ action: 'withdraw', units: 1, segments: 2 }, 'segments: is not a part of this change'],
    [{ action: 'resize', segments: 2, units: 1 }, 'units: is not a part of this change'],
    [{ action: 'require-token', requireToken: true, units: 1 }, 'units: is not a part of this change'],
    [{ action: 'queue', queue: 'fifo', units: 1 }, 'units: is not a part of this change'],
    [{ action: 'edit', title: '', units: 1 }, 'units: is not a part of this change'],
    [{ action: 'window', endsAt: null, units: 1 }, 'units: is not a part of this change'],
    [{ action: 'pause', reason: 5 }, 'reason: must be a string'],
    [{ action: 'top-up' }, 'units: is required: a whole number, from 1 to 2147483648'],
    [{ action: 'top-up', units: 0 }, 'units: must be at least 1'],
    [{ action: 'withdraw', units: 2 ** 31 + 1 }, 'units: must be at most 2147483648'],
    [{ action: 'resize', segments: 0 }, 'segments: must be at least 1'],
    [{ action: 'resize', segments: 1_025 }, 'segments: must be at most 1024'],
    [{ action: 'require-token', requireToken: 1 }, 'requireToken: must be true or false'],
    [{ action: 'queue' }, `the change: must give one of ${QUEUE_NAMES}`],
    [{ action: 'queue', queue: 'lifo' }, 'queue: must be one of off, fifo, draw'],
    [{ action: 'queue', fit: 'more' }, 'fit: must be one of wait, less, pass'],
    [{ action: 'edit', reason: 'none' }, `the change: must give one of ${EDITS}`],
    [{ action: 'edit', title: null }, 'title: must be a string'],
    [{ action: 'edit', metadata: null }, 'metadata: must be an object, such as {"gate":"A"}'],
    [{ action: 'window' }, 'startsAt: or endsAt must be given'],
    [
      { action: 'window', startsAt: null },
      'startsAt: must be a time in ISO 8601 with zone, such as 2026-11-27T20:00:00+01:00',
    ],
  ])('%j', (input, fault) => {
    expect(faultsOf(input)).toEqual([fault]);
  });

  it('with all faults at once', () => {
    expect(faultsOf({ action: 'queue', maxWaiting: 0, presenceSeconds: -1 })).toEqual([
      'presenceSeconds: must be at least 0',
      'maxWaiting: must be at least 1',
    ]);
  });
});
