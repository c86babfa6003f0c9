import { describe, expect, test } from 'vitest';
import { parseErasure } from '../../../src/operations/buyer-operations.ts';

const fault = [{ field: 'reason', problem: "must not contain the buyer's id, because the ledger keeps it" }];

describe('the reason of an erasure', () => {
  test.each([
    ['ann', 'ann'],
    ['ann', '(ann), by letter'],
    ['ann', 'joann wrote: "erase ann"'],
    ['ann@shop.example', 'asked by ann@shop.example.'],
    ['o.ann:7', 'letter of o.ann:7, in November'],
    ['(x)', 'erase (x)'],
    ['a.a', 'a.a.a'],
    ['"', 'this is "'],
    ['ann@shop.example', 'letter of Ann <ann@shop.example>'],
    ['ann', '“ann” wants it'],
    ['ann', 'buyer=ann'],
    ['ann', 'ann/bob'],
  ])('may not name the buyer %s: %s', (buyerId, reason) => {
    expect(() => parseErasure({ buyerId, reason }, 'bert')).toThrow(
      expect.objectContaining({ faults: fault }),
    );
  });

  test.each([
    ['ann', ''],
    ['ann', 'asked by joann and anna, on the annexed page'],
    ['ann@shop.example', 'asked by joann@shop.example'],
    ['1', 'request 12 of 21 November'],
    ['ann', 'asked by ann-marie, mary_ann and ann@shop.example'],
    ['nn', 'asked by jänn'],
  ])('may have the letters of the buyer %s in other words: %s', (buyerId, reason) => {
    expect(parseErasure({ buyerId, reason }, 'bert')).toMatchObject({ reason, wish: { buyerId } });
  });
});

test.each([
  ['ann', 'ann', undefined, 'X-Operator'],
  ['ann@shop.example', 'the buyer (ann@shop.example)', 'by', 'by'],
])('the operator who erases the buyer %s may not be called %s', (buyerId, actor, given, field) => {
  const faults = [{ ...fault[0], field }];
  expect(() => parseErasure({ buyerId }, actor, given)).toThrow(expect.objectContaining({ faults }));
  expect(parseErasure({ buyerId }, 'joanna', given)).toMatchObject({ wish: { buyerId } });
});
