/** The tokens of a queue: of a place, and of an offer. */
import { describe, expect, test } from 'vitest';
import { isOfferToken, OfferTokens } from '../../../src/admission/offer-token.ts';
import { PlaceTokens } from '../../../src/admission/place-token.ts';
import { PurchaseTokens } from '../../../src/admission/purchase-token.ts';
import type { SigningKeys } from '../../../src/admission/signer.ts';

const KEY = new Uint8Array(32).fill(1);
const NEXT_KEY = new Uint8Array(32).fill(2);
const ANN = { saleId: 'tickets', buyerId: 'ann' };
const PLACE = { number: 12, quantity: 3 };
const OFFER = { orderId: '662207995405477814', quantity: 3 };

describe.each([
  ['place', () => new PlaceTokens({ keys: [KEY] }).issue(ANN, PLACE), PlaceTokens, PLACE],
  ['offer', () => new OfferTokens({ keys: [KEY] }).issue(ANN, OFFER), OfferTokens, OFFER],
] as const)('a token of a %s', (_, issued, Tokens, content) => {
  const tokens = new Tokens({ keys: [KEY] });
  const token = issued();

  test('is read for its buyer in its sale, and for nobody else', () => {
    expect(tokens.read(token, ANN)).toMatchObject(content);
    expect(tokens.read(token, { ...ANN, buyerId: 'bob' })).toBeUndefined();
    expect(tokens.read(token, { ...ANN, saleId: 'other' })).toBeUndefined();
  });

  test('can’t be changed or made up', () => {
    const [version, what, quantity, mac] = token.split('.');
    const forged = [
      `${version}.${what}.${Number(quantity) + 1}.${mac}`,
      `${version}.${what}1.${quantity}.${mac}`,
      `${version}.0${what}.${quantity}.${mac}`,
      `x1.${what}.${quantity}.${mac}`,
      `${version}.${what}.${quantity}.${'A'.repeat(43)}`,
      `${version}.${what}.${quantity}.${mac!.slice(1)}`,
      ` ${token}`,
      `${token}\n`,
      '',
      '...',
      `${version}.`,
      'x'.repeat(8_000),
    ];
    for (const text of forged) expect(tokens.read(text, ANN), text).toBeUndefined();
  });

  test('is read with a second key, and with a former one until its time is over', () => {
    expect(new Tokens({ keys: [NEXT_KEY, KEY] }).read(token, ANN)).toMatchObject(content);
    expect(new Tokens({ keys: [NEXT_KEY] }).read(token, ANN)).toBeUndefined();
    const outgoing = (untilMs: number) => new Tokens({ keys: [NEXT_KEY], outgoing: { key: KEY, untilMs } });
    expect(outgoing(Date.now() + 60_000).read(token, ANN)).toMatchObject(content);
    expect(outgoing(Date.now() - 1).read(token, ANN)).toBeUndefined();
  });
});

test('a token of a place is replaced while the keys are being changed', () => {
  const token = new PlaceTokens({ keys: [KEY] }).issue(ANN, PLACE);
  const next = new PlaceTokens({ keys: [NEXT_KEY] }).issue(ANN, PLACE);
  const read = (keys: SigningKeys) => new PlaceTokens(keys).read(token, ANN)?.token;
  expect(read({ keys: [KEY, NEXT_KEY] })).toBe(token);
  expect(read({ keys: [NEXT_KEY, KEY] })).toBe(next);
  expect(read({ keys: [NEXT_KEY], outgoing: { key: KEY, untilMs: Date.now() + 60_000 } })).toBe(next);
});

test('no token is taken for one of another kind', () => {
  const keys = { keys: [KEY], ttlSeconds: 300 };
  const [purchases, places, offers] = [
    new PurchaseTokens(keys),
    new PlaceTokens(keys),
    new OfferTokens(keys),
  ];
  const purchase = purchases.issue(ANN, 1).token;
  const place = places.issue(ANN, PLACE);
  const offer = offers.issue(ANN, { orderId: String(PLACE.number), quantity: PLACE.quantity });
  expect([purchase, place, offer].map(isOfferToken)).toEqual([false, false, true]);
  expect([place, offer].map((token) => purchases.check(token, ANN, 1))).toEqual(['alien', 'alien']);
  expect([purchase, offer, `p1${offer.slice(2)}`].map((token) => places.read(token, ANN))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect([purchase, place, `o1${place.slice(2)}`].map((token) => offers.read(token, ANN))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
