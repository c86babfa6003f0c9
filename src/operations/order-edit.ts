/** The JSON of what the shop notes with an order. */
import { z } from 'zod';
import { InvalidInput } from '../engine/errors.ts';
import { reason } from '../engine/sale/author.ts';
import { metadataOf } from '../engine/sale/sale-json.ts';
import { text } from '../engine/storable.ts';
import type { OrderEdit } from './order.ts';

const MAX_REFERENCE_CHARACTERS = 200;
const MAX_METADATA_BYTES = 4_096;

const schema = z
  .strictObject(
    {
      reference: text(MAX_REFERENCE_CHARACTERS).nullable().optional(),
      metadata: metadataOf(MAX_METADATA_BYTES).nullable().optional(),
      reason,
    },
    { error: ({ code }) => (code === 'invalid_type' ? 'must be a JSON object' : undefined) },
  )
  .refine(({ reference, metadata }) => reference !== undefined || metadata !== undefined, {
    path: ['reference'],
    error: 'or metadata must be given',
  });

/** @throws InvalidInput with all faults at once */
export function parseOrderEdit(input: unknown): { readonly edit: OrderEdit; readonly reason: string } {
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw new InvalidInput('the change is not valid', parsed.error.issues.map(fault));
  const { reason, ...edit } = parsed.data;
  return { edit, reason };
}

function fault(issue: z.core.$ZodIssue): { field: string; problem: string } {
  if (issue.code !== 'unrecognized_keys')
    return { field: issue.path.join('.') || 'the body', problem: issue.message };
  return { field: issue.keys.join(', ').slice(0, 80), problem: 'is not a field of this change' };
}
