/** The settings of a queue: what an operator leaves out stays as it is, or gets its default. */
import { describe, expect, it } from 'vitest';
import type { QueueSettings } from '../../../../src/engine/contract.ts';
import { changedQueue, queueToJson, settingsWithoutQueue } from '../../../../src/engine/sale/queue-json.ts';

const BEFORE: QueueSettings = {
  ...{ order: 'draw', offerSeconds: 30, presenceSeconds: 10, maxWaiting: 500, fit: 'less' },
};
const DEFAULTS = { offerSeconds: 120, presenceSeconds: 60, maxWaiting: 1_000_000, fit: 'less' } as const;

it('has the order as `queue` in JSON, beside the settings; a queue that is off has none', () => {
  const { order, ...settings } = BEFORE;
  expect(queueToJson(BEFORE)).toEqual({ queue: order, ...settings });
  expect(queueToJson(undefined)).toEqual({});
});

describe('a change', () => {
  it('turns a queue on with the default settings, or with those given', () => {
    expect(changedQueue(undefined, { queue: 'fifo' })).toEqual({ order: 'fifo', ...DEFAULTS });
    const given = { offerSeconds: 5, presenceSeconds: 0, maxWaiting: 9, fit: 'pass' } as const;
    expect(changedQueue(undefined, { queue: 'draw', ...given })).toEqual({ order: 'draw', ...given });
  });

  it('leaves a queue as it is, except for what it names', () => {
    expect(changedQueue(BEFORE, {})).toEqual(BEFORE);
    expect(changedQueue(BEFORE, { queue: 'fifo' })).toEqual({ ...BEFORE, order: 'fifo' });
    for (const one of [
      { offerSeconds: 5 },
      { presenceSeconds: 0 },
      { maxWaiting: 9 },
      { fit: 'pass' },
    ] as const)
      expect(changedQueue(BEFORE, one)).toEqual({ ...BEFORE, ...one });
  });

  it('turns a queue off, or leaves it off', () => {
    expect(changedQueue(BEFORE, { queue: 'off', offerSeconds: 5 })).toBeUndefined();
    expect(changedQueue(undefined, { offerSeconds: 5 })).toBeUndefined();
  });
});

it('settings mean nothing without a queue', () => {
  expect(settingsWithoutQueue({ queue: 'off', offerSeconds: 5, fit: 'less' }, undefined)).toEqual([
    'offerSeconds',
    'fit',
  ]);
  expect(settingsWithoutQueue({ queue: 'off' }, undefined)).toEqual([]);
  expect(settingsWithoutQueue({ offerSeconds: 5 }, BEFORE)).toEqual([]);
});
