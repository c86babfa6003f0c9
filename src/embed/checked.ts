/** Checks what a program passes to its shop. */
import type { Purchase } from '../engine/contract.ts';
import { InvalidInput } from '../engine/errors.ts';
import { ID_PATTERN, MAX_ID_CHARACTERS, RESERVED_PREFIXES } from '../engine/limits.ts';
import { type Author, parseActor, parseReason } from '../engine/sale/author.ts';
import { encodeNote, faultsOf } from '../engine/sale/order-note.ts';
import { PAY_TYPES, type PayType } from '../operations/order-operations.ts';
import type { ChangeAuthor, NewPurchase, PurchaseOutcome } from './shop.ts';

const TYPES: Readonly<Record<keyof NewPurchase, string>> = {
  saleId: 'string',
  buyerId: 'string',
  quantity: 'number',
  key: 'string',
  awaitCommit: 'boolean',
  reference: 'string',
  metadata: 'object',
};
const REQUIRED: readonly string[] = ['saleId', 'buyerId'];

/** @throws InvalidInput for a mistake of the program: a member of the wrong type, one that a purchase does not have, a bad note */
export function checkedPurchase(input: NewPurchase): Purchase {
  const given = Object(input) as NewPurchase;
  const faults = [
    ...Object.keys(given)
      .filter((name) => !(name in TYPES))
      .map((field) => ({ field, problem: 'is not a member of a purchase' })),
    ...Object.entries(TYPES)
      .filter(([name]) => given[name as keyof NewPurchase] !== undefined || REQUIRED.includes(name))
      .filter(([name, type]) => typeof given[name as keyof NewPurchase] !== type)
      .map(([field, type]) => ({ field, problem: `must be a ${type}` })),
  ];
  const { saleId, buyerId, quantity = 1, key = '', awaitCommit = true, reference, metadata } = given;
  const note = { reference, metadata };
  if (faults.length === 0) faults.push(...faultsOf(note));
  if (faults.length > 0) throw new InvalidInput('the purchase is not valid', faults);
  return { saleId, buyerId, quantity, key, awaitCommit, note: encodeNote(note) };
}

/** The refusal of a purchase with values that a buyer may have sent wrong. The engine checks the quantity itself. */
export function refusedPurchase({ buyerId, key }: Purchase): PurchaseOutcome | undefined {
  const form = `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`;
  if (!ID_PATTERN.test(buyerId)) return invalid(`buyerId ${form}`);
  if (key !== '' && !ID_PATTERN.test(key)) return invalid(`key ${form}`);
  const reserved = RESERVED_PREFIXES.find((prefix) => key.startsWith(prefix));
  if (reserved) return invalid(`key must not begin with "${reserved}"`);
  return undefined;
}

function invalid(detail: string): PurchaseOutcome {
  return { code: 'invalid_request', detail };
}

/** @throws InvalidInput */
export function checkedAuthor({ actor = 'shop', reason = '' }: ChangeAuthor = {}): Author {
  return { actor: parseActor(String(actor), 'actor'), reason: parseReason(reason) };
}

/** @throws InvalidInput */
export function checkedPayType(payType: PayType): PayType {
  if (PAY_TYPES.includes(payType)) return payType;
  const problem = `must be one of ${PAY_TYPES.join(', ')}`;
  throw new InvalidInput('the payment is not valid', [{ field: 'payType', problem }]);
}
