/** The settings of a sale's queue as they look in JSON: flat, beside the other fields of the sale. */
import { z } from 'zod';
import type { QueueSettings } from '../contract.ts';
import { whole } from './json-values.ts';

const ORDERS = ['off', 'fifo', 'draw'] as const;
const FITS = ['wait', 'less', 'pass'] as const;

/** Whether a sale has a queue, and the order of its places. */
export type QueueOrder = (typeof ORDERS)[number];

const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });

/** Each can be changed while the sale sells. */
export const QUEUE_FIELDS = {
  queue: oneOf(ORDERS),
  offerSeconds: whole(1, 31_536_000),
  presenceSeconds: whole(0, 86_400),
  maxWaiting: whole(1, 10_000_000),
  fit: oneOf(FITS),
};

/** What an operator sends. A field that is left out stays as it is, or gets its default. */
export interface QueueJson {
  readonly queue?: QueueOrder | undefined;
  readonly offerSeconds?: number | undefined;
  readonly presenceSeconds?: number | undefined;
  readonly maxWaiting?: number | undefined;
  readonly fit?: QueueSettings['fit'] | undefined;
}

export const QUEUE_NAMES = Object.keys(QUEUE_FIELDS) as readonly (keyof QueueJson)[];

/** The settings of a queue for which an operator gives none. With `less`, no unit lies free while somebody waits. */
export const QUEUE_DEFAULTS: Omit<QueueSettings, 'order'> = {
  offerSeconds: 120,
  presenceSeconds: 60,
  maxWaiting: 1_000_000,
  fit: 'less',
};

/** The settings of a queue that is off are not part of the JSON. */
export function queueToJson(queue: QueueSettings | undefined): QueueJson {
  if (!queue) return {};
  const { order, ...settings } = queue;
  return { queue: order, ...settings };
}

/** The settings after a change. @param before `undefined`: off, or a new sale */
export function changedQueue(
  before: QueueSettings | undefined,
  { queue: order = before?.order ?? 'off', ...given }: QueueJson,
): QueueSettings | undefined {
  if (order === 'off') return undefined;
  const { offerSeconds, presenceSeconds, maxWaiting, fit } = before ?? QUEUE_DEFAULTS;
  return {
    order,
    offerSeconds: given.offerSeconds ?? offerSeconds,
    presenceSeconds: given.presenceSeconds ?? presenceSeconds,
    maxWaiting: given.maxWaiting ?? maxWaiting,
    fit: given.fit ?? fit,
  };
}

/** The settings that mean nothing, because there is no queue. */
export function settingsWithoutQueue(given: QueueJson, after: QueueSettings | undefined): readonly string[] {
  return after ? [] : QUEUE_NAMES.filter((name) => name !== 'queue' && given[name] !== undefined);
}
