/** Changes that an operator can make to a sale, and their JSON. */
import { z } from 'zod';
import { InvalidInput } from '../errors.ts';
import { MAX_SEGMENTS, MAX_STOCK } from '../limits.ts';
import { reason } from './author.ts';
import { time, whole } from './json-values.ts';
import { QUEUE_FIELDS, QUEUE_NAMES, type QueueJson } from './queue-json.ts';
import { EDITABLE } from './sale-json.ts';

/** New values of fields. A missing field stays as it is; `null` removes an optional one. */
export interface SaleEdit {
  readonly title?: string | undefined;
  /** Never lower than before: buyers may hold as many units already. */
  readonly perBuyerLimit?: number | undefined;
  readonly payWithinSeconds?: number | null | undefined;
  readonly priceMinor?: number | null | undefined;
  readonly faceValueMinor?: number | null | undefined;
  readonly currency?: string | null | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export const EDITS = Object.keys(EDITABLE) as readonly (keyof SaleEdit)[];

export type SaleChange =
  | { readonly action: 'pause' | 'resume' | 'close' }
  /** A closed sale leaves the backend: it is in Postgres alone from then on. */
  | { readonly action: 'archive' }
  /** More units for sale, or fewer: never below what is sold. */
  | { readonly action: 'top-up'; readonly units: number }
  | { readonly action: 'withdraw'; readonly units: number }
  /** Milliseconds since the Unix epoch. A time that is missing stays as it is; `endsAt: null` removes the end. */
  | { readonly action: 'window'; readonly startsAt?: number; readonly endsAt?: number | null }
  /** Whether purchases need a purchase token from now on. */
  | { readonly action: 'require-token'; readonly requireToken: boolean }
  /** Another number of segments. */
  | { readonly action: 'resize'; readonly segments: number }
  /** Whether there is a queue, and how it works. A setting that is missing stays as it is. */
  | ({ readonly action: 'queue' } & QueueJson)
  | ({ readonly action: 'edit' } & SaleEdit);

export type SaleAction = SaleChange['action'];

/** What the ledger notes of a sale after its creation: its changes, and that a buyer was erased. */
export type NotedAction = SaleAction | 'erase';

const units = whole(1, MAX_STOCK);

const schema = z.discriminatedUnion(
  'action',
  [
    z.strictObject({ action: z.enum(['pause', 'resume', 'close', 'archive']), reason }),
    z.strictObject({ action: z.enum(['top-up', 'withdraw']), units, reason }),
    z.strictObject({ action: z.literal('resize'), segments: whole(1, MAX_SEGMENTS), reason }),
    z.strictObject({
      action: z.literal('require-token'),
      requireToken: z.boolean({ error: 'must be true or false' }),
      reason,
    }),
    z
      .strictObject({
        action: z.literal('queue'),
        queue: QUEUE_FIELDS.queue.optional(),
        offerSeconds: QUEUE_FIELDS.offerSeconds.optional(),
        presenceSeconds: QUEUE_FIELDS.presenceSeconds.optional(),
        maxWaiting: QUEUE_FIELDS.maxWaiting.optional(),
        fit: QUEUE_FIELDS.fit.optional(),
        reason,
      })
      .refine((change) => QUEUE_NAMES.some((name) => change[name] !== undefined), {
        error: `must give one of ${QUEUE_NAMES.join(', ')}`,
      }),
    z
      .strictObject({
        action: z.literal('edit'),
        title: EDITABLE.title.optional(),
        perBuyerLimit: EDITABLE.perBuyerLimit.optional(),
        payWithinSeconds: EDITABLE.payWithinSeconds.nullable().optional(),
        priceMinor: EDITABLE.priceMinor.nullable().optional(),
        faceValueMinor: EDITABLE.faceValueMinor.nullable().optional(),
        currency: EDITABLE.currency.nullable().optional(),
        metadata: EDITABLE.metadata.optional(),
        reason,
      })
      .refine((edit) => EDITS.some((name) => edit[name] !== undefined), {
        error: `must give one of ${EDITS.join(', ')}`,
      }),
    z
      .strictObject({
        action: z.literal('window'),
        startsAt: time.optional(),
        endsAt: time.nullable().optional(),
        reason,
      })
      .refine(({ startsAt, endsAt }) => startsAt !== undefined || endsAt !== undefined, {
        path: ['startsAt'],
        error: 'or endsAt must be given',
      }),
  ],
  {
    error:
      'must be one of pause, resume, close, archive, top-up, withdraw, window, resize, require-token, queue, edit',
  },
);

/** @throws InvalidInput with all faults at once */
export function parseChange(input: unknown): { readonly change: SaleChange; readonly reason: string } {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw new InvalidInput('the change is not valid', parsed.error.issues.map(fault));
  const { reason, ...change } = parsed.data;
  return { change: change as SaleChange, reason };
}

export function changeToJson(change: SaleChange): Record<string, unknown> {
  if (change.action !== 'window') return { ...change };
  const { action, startsAt, endsAt } = change;
  const iso = (ms: number | null | undefined) => (ms == null ? ms : new Date(ms).toISOString());
  return { action, startsAt: iso(startsAt), endsAt: iso(endsAt) };
}

function fault(issue: z.core.$ZodIssue): { field: string; problem: string } {
  if (issue.code === 'unrecognized_keys') {
    return { field: issue.keys.join(', '), problem: 'is not a part of this change' };
  }
  return { field: issue.path.join('.') || 'the change', problem: issue.message };
}
