/** The JSON of what the shop notes with an order. */
import { z } from 'zod';
import { reason } from '../engine/sale/author.ts';
import { NOTE_FIELDS } from '../engine/sale/order-note.ts';
import { checkedInput } from './checked-input.ts';
import type { OrderEdit } from './order.ts';

const schema = z
  .strictObject(
    {
      reference: NOTE_FIELDS.reference.nullable().optional(),
      metadata: NOTE_FIELDS.metadata.nullable().optional(),
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
  const { reason, ...edit } = checkedInput(schema, input, {
    invalid: 'the change is not valid',
    whole: 'the body',
    unknown: 'is not a field of this change',
  });
  return { edit, reason };
}
