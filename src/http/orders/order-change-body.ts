/** Parses the body of a request that changes an order. */
import { z } from 'zod';
import { InvalidInput } from '../../engine/errors.ts';
import { reason } from '../../engine/sale/author.ts';
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
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw new InvalidInput('the change is not valid', result.error.issues.map(fault));
}

function fault(issue: z.core.$ZodIssue): { field: string; problem: string } {
  if (issue.code !== 'unrecognized_keys') {
    return { field: issue.path.join('.') || 'the body', problem: issue.message };
  }
  const names = issue.keys.join(', ').slice(0, 80);
  return { field: names, problem: 'is not a field of this change' };
}
