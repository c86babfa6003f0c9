/** Checks what a program passes to its shop. */

import type { TokenPlace } from '../admission/place-token.ts';
import type { Purchase } from '../engine/contract.ts';
import { InvalidInput } from '../engine/errors.ts';
import { ID_PATTERN, MAX_ID_CHARACTERS, RESERVED_PREFIXES } from '../engine/limits.ts';
import { isOrderId } from '../engine/order-id.ts';
import { type Author, parseActor, parseReason } from '../engine/sale/author.ts';
import { encodeNote, faultsOf } from '../engine/sale/order-note.ts';
import { PAY_TYPES, type PayType } from '../operations/order-operations.ts';
import type { Acceptance } from '../queue/offers.ts';
import type { PlaceWish } from '../queue/place.ts';
import type { ChangeAuthor, NewPurchase, PurchaseOutcome } from './shop.ts';
import type { BuyersPlace, NewAcceptance, NewPlace, PlaceHolder, PlaceOutcome } from './shop-places.ts';

const FORM = `must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`;

type Types<T> = Readonly<Record<keyof T, 'string' | 'number' | 'boolean' | 'object'>>;

const PURCHASE: Types<NewPurchase> = {
  saleId: 'string',
  buyerId: 'string',
  quantity: 'number',
  key: 'string',
  awaitCommit: 'boolean',
  reference: 'string',
  metadata: 'object',
};
const PLACE: Types<NewPlace> = { saleId: 'string', buyerId: 'string', quantity: 'number' };
const ACCEPTANCE: Types<NewAcceptance> = {
  buyerId: 'string',
  offer: 'object',
  reference: 'string',
  metadata: 'object',
};
const REQUIRED: readonly string[] = ['saleId', 'buyerId', 'offer'];

type Faults = { field: string; problem: string }[];

/** Faults of the program: members of the wrong type, and members that such an object does not have. */
function faultsOfTypes<T extends object>(given: T, types: Types<T>, what: string): Faults {
  return [
    ...Object.keys(given)
      .filter((name) => !(name in types))
      .map((field) => ({ field, problem: `is not a member of ${what}` })),
    ...Object.entries<string>(types)
      .filter(([name]) => given[name as keyof T] !== undefined || REQUIRED.includes(name))
      .filter(([name, type]) => typeof given[name as keyof T] !== type)
      .map(([field, type]) => ({ field, problem: `must be ${type === 'object' ? 'an' : 'a'} ${type}` })),
  ];
}

/** @throws InvalidInput for a mistake of the program: a member of the wrong type, one that a purchase does not have, a bad note */
export function checkedPurchase(input: NewPurchase): Purchase {
  const given = Object(input) as NewPurchase;
  const faults = faultsOfTypes(given, PURCHASE, 'a purchase');
  const { saleId, buyerId, quantity = 1, key = '', awaitCommit = true, reference, metadata } = given;
  const note = { reference, metadata };
  if (faults.length === 0) faults.push(...faultsOf(note));
  if (faults.length > 0) throw new InvalidInput('the purchase is not valid', faults);
  return { saleId, buyerId, quantity, key, awaitCommit, note: encodeNote(note) };
}

/** @throws InvalidInput for a mistake of the program */
export function checkedPlace(input: NewPlace): PlaceWish & PlaceHolder {
  const given = Object(input) as NewPlace;
  const faults = faultsOfTypes(given, PLACE, 'a request for a place');
  if (faults.length > 0) throw new InvalidInput('the request for a place is not valid', faults);
  const { saleId, buyerId, quantity = 1 } = given;
  return { saleId, buyerId, quantity };
}

/** @returns `undefined` if there was no place. @throws InvalidInput for what no earlier call can have told */
export function checkedKnown(known: PlaceOutcome | undefined): TokenPlace | undefined {
  if (known === undefined) return undefined;
  const { code, number, quantity } = Object(known) as Partial<BuyersPlace>;
  if (typeof code === 'string' && code !== 'place') return undefined;
  if (isWhole(number, MAX_PLACE) && isWhole(quantity, MAX_QUANTITY)) return { number, quantity };
  const problem = 'must be what an earlier call told of this place';
  throw new InvalidInput('the request for a place is not valid', [{ field: 'last', problem }]);
}

/** As many digits as a place token may have (admission/place-token.ts). */
const MAX_PLACE = 1e15 - 1;
const MAX_QUANTITY = 1e9 - 1;

function isWhole(value: unknown, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most;
}

/** @throws InvalidInput for a mistake of the program */
export function checkedAcceptance(input: NewAcceptance): Acceptance {
  const given = Object(input) as NewAcceptance;
  const faults = faultsOfTypes(given, ACCEPTANCE, 'an acceptance');
  const { buyerId, offer, reference, metadata } = given;
  const { orderId, quantity } = Object(offer) as NewAcceptance['offer'];
  const isOffer = typeof orderId === 'string' && isOrderId(orderId) && isWhole(quantity, MAX_QUANTITY);
  if (faults.length === 0 && !isOffer)
    faults.push({ field: 'offer', problem: 'must have the orderId and the quantity of an offer' });
  if (faults.length === 0) faults.push(...faultsOf({ reference, metadata }));
  if (faults.length > 0) throw new InvalidInput('the acceptance is not valid', faults);
  return { orderId, quantity, buyerId, reference, metadata };
}

/** The refusal of a purchase with values that a buyer may have sent wrong. The engine checks the quantity itself. */
export function refusedPurchase({ buyerId, key }: Purchase): PurchaseOutcome | undefined {
  const wrong = invalidBuyer(buyerId);
  if (wrong) return wrong;
  if (key !== '' && !ID_PATTERN.test(key)) return invalid(`key ${FORM}`);
  const reserved = RESERVED_PREFIXES.find((prefix) => key.startsWith(prefix));
  if (reserved) return invalid(`key must not begin with "${reserved}"`);
  return undefined;
}

/** The refusal of a buyer's id that may come from a buyer. */
export function invalidBuyer(buyerId: string): InvalidRequest | undefined {
  return ID_PATTERN.test(buyerId) ? undefined : invalid(`buyerId ${FORM}`);
}

interface InvalidRequest {
  readonly code: 'invalid_request';
  readonly detail: string;
}

function invalid(detail: string): InvalidRequest {
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
