/** Parses the body of a request that changes an order. */
import { z } from 'zod';
import { reason } from '../../engine/sale/author.ts';
import { checkedInput } from '../../operations/checked-input.ts';
import { type OrderChange, PAY_TYPES } from '../../operations/order-operations.ts';

const NOT_AN_OBJECT = 'must be a JSON object';
const payType = z.enum(PAY_TYPES, { error: `must be one of ${PAY_TYPES.join(', ')}` });
const payment = z.strictObject({ payType }, { error: NOT_AN_OBJECT });
const nothing = z.strictObject({}, { error: NOT_AN_OBJECT });
/** Operators may give a reason. */
const notedPayment = z.strictObject({ payType, reason }, { error: NOT_AN_OBJECT });
const noted = z.strictObject({ reason }, { error: NOT_AN_OBJECT });

/** A change by a buyer. @param input the body as JSON, `{}` if there is none. @throws InvalidInput with all faults at once */
export function parseOrderChange(kind: OrderChange['kind'], input: unknown): OrderChange {
  if (kind === 'pay') return { kind, payType: checked(payment, input).payType };
  checked(nothing, input);
  return { kind };
}

/** A change by an operator, which may have a reason. @throws InvalidInput with all faults at once */
export function parseNotedChange(
  kind: OrderChange['kind'],
  input: unknown,
): { readonly change: OrderChange; readonly reason: string } {
  if (kind !== 'pay') return { change: { kind }, ...checked(noted, input) };
  const { payType, reason } = checked(notedPayment, input);
  return { change: { kind, payType }, reason };
}

function checked<T>(schema: z.ZodType<T>, input: unknown): T {
  return checkedInput(schema, input, {
    invalid: 'the change is not valid',
    whole: 'the body',
    unknown: 'is not a field of this change',
  });
}
