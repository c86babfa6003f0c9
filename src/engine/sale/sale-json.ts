/** A sale as it looks in JSON: times are ISO 8601 with zone, missing values are left out. */
import { z } from 'zod';
import type { Sale } from '../contract.ts';
import { InvalidInput } from '../errors.ts';
import {
  MAX_PER_BUYER_LIMIT,
  MAX_SALE_ID_CHARACTERS,
  MAX_SEGMENTS,
  MAX_STOCK,
  SALE_ID_PATTERN,
} from '../limits.ts';
import { text } from '../storable.ts';
import { reason } from './author.ts';
import { time, whole } from './json-values.ts';
import { metadataOf } from './metadata.ts';
import {
  changedQueue,
  QUEUE_FIELDS,
  type QueueJson,
  queueToJson,
  settingsWithoutQueue,
} from './queue-json.ts';

const DEFAULT_SEGMENTS = 8;
const MAX_METADATA_BYTES = 16 * 1_024;
const ID_FORM = `1 to ${MAX_SALE_ID_CHARACTERS} letters, digits, dots, dashes or underscores, beginning with a letter or digit`;

/** Fields that can be edited while the sale sells. */
export const EDITABLE = {
  title: text(200),
  perBuyerLimit: whole(1, MAX_PER_BUYER_LIMIT),
  payWithinSeconds: whole(1, 31_536_000),
  priceMinor: whole(0, Number.MAX_SAFE_INTEGER),
  faceValueMinor: whole(0, Number.MAX_SAFE_INTEGER),
  currency: z.string().regex(/^[A-Z]{3}$/, { error: 'must be an ISO 4217 code such as EUR' }),
  metadata: metadataOf(MAX_METADATA_BYTES),
};

const FIELDS = {
  id: z
    .string({ error: ({ input }) => (input === undefined ? `is required: ${ID_FORM}` : 'must be a string') })
    .regex(SALE_ID_PATTERN, { error: `must be ${ID_FORM}` }),
  title: EDITABLE.title.default(''),
  stock: whole(1, MAX_STOCK, 'the units for sale'),
  segments: whole(1, MAX_SEGMENTS).default(DEFAULT_SEGMENTS),
  startsAt: time.optional(),
  endsAt: time.optional(),
  perBuyerLimit: EDITABLE.perBuyerLimit.default(1),
  requireToken: z.boolean({ error: 'must be true or false' }).default(false),
  payWithinSeconds: EDITABLE.payWithinSeconds.optional(),
  priceMinor: EDITABLE.priceMinor.optional(),
  faceValueMinor: EDITABLE.faceValueMinor.optional(),
  currency: EDITABLE.currency.optional(),
  shopId: text(128).optional(),
  metadata: EDITABLE.metadata.default({}),
  queue: QUEUE_FIELDS.queue.optional(),
  offerSeconds: QUEUE_FIELDS.offerSeconds.optional(),
  presenceSeconds: QUEUE_FIELDS.presenceSeconds.optional(),
  maxWaiting: QUEUE_FIELDS.maxWaiting.optional(),
  fit: QUEUE_FIELDS.fit.optional(),
};

const schema = z.strictObject(
  { ...FIELDS, reason },
  { error: ({ code }) => (code === 'invalid_type' ? 'must be a JSON object' : undefined) },
);

export type Price = Pick<Sale, 'priceMinor' | 'faceValueMinor' | 'currency'>;

export interface NewSale {
  readonly sale: Sale;
  /** Why the sale is created; `''`: no reason was given. */
  readonly reason: string;
}

/**
 * A sale from what an operator sent. Only `id` and `stock` are required.
 * @throws InvalidInput with all faults at once
 */
export function parseNewSale(input: unknown, now = Date.now()): NewSale {
  const parsed = schema.safeParse(input);
  const faults = parsed.success ? [] : parsed.error.issues.map(fault);
  if (parsed.success) {
    const startsAt = parsed.data.startsAt ?? now;
    const { endsAt } = parsed.data;
    if (endsAt !== undefined && endsAt <= startsAt)
      faults.push({ field: 'endsAt', problem: 'must be after startsAt' });
    const { queue } = parsed.data;
    for (const field of settingsWithoutQueue(parsed.data, changedQueue(undefined, parsed.data)))
      faults.push({ field, problem: `needs \`queue\` fifo or draw; it is ${queue ?? 'off'}` });
    faults.push(...priceFaults(parsed.data));
    if (faults.length === 0) {
      const { reason, ...data } = parsed.data;
      return { sale: complete(data, startsAt), reason };
    }
  }
  throw new InvalidInput('the sale is not valid', faults);
}

/** An amount of minor units says nothing without its currency. */
export function priceFaults({
  currency,
  ...amounts
}: Partial<Price>): { field: keyof Price; problem: string }[] {
  if (currency !== undefined) return [];
  return (['priceMinor', 'faceValueMinor'] as const)
    .filter((field) => amounts[field] !== undefined)
    .map((field) => ({ field, problem: 'needs a `currency`, such as EUR' }));
}

/** The sale alone. @throws as `parseNewSale` */
export function parseSale(input: unknown, now = Date.now()): Sale {
  return parseNewSale(input, now).sale;
}

function fault(issue: z.core.$ZodIssue): { field: string; problem: string } {
  if (issue.code === 'unrecognized_keys') {
    return { field: issue.keys.map((key) => key || '""').join(', '), problem: 'is not a field of a sale' };
  }
  return { field: issue.path.join('.') || 'the sale', problem: issue.message };
}

function complete(data: Omit<z.output<typeof schema>, 'reason'>, startsAt: number): Sale {
  const { endsAt, payWithinSeconds, priceMinor, faceValueMinor, currency, shopId, ...others } = data;
  const { queue: _, offerSeconds, presenceSeconds, maxWaiting, fit, ...rest } = others;
  const queue = changedQueue(undefined, data);
  const optional = { endsAt, payWithinSeconds, priceMinor, faceValueMinor, currency, shopId };
  return { ...rest, startsAt, ...optional, ...(queue && { queue }) };
}

export interface SaleJson extends Omit<Sale, 'startsAt' | 'endsAt' | 'queue' | 'hadQueue'>, QueueJson {
  readonly startsAt: string;
  readonly endsAt: string | undefined;
}

export function saleToJson({ queue, hadQueue: _, ...sale }: Sale): SaleJson {
  return {
    ...sale,
    ...queueToJson(queue),
    startsAt: new Date(sale.startsAt).toISOString(),
    endsAt: sale.endsAt === undefined ? undefined : new Date(sale.endsAt).toISOString(),
  };
}
