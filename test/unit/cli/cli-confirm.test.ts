/** What is said before changes that can't be undone. */
import { describe, expect, test } from 'vitest';
import { toldOf } from '../../../src/cli/order/final-changes.ts';
import { told } from '../../../src/cli/sale/delete.ts';
import { finalChange } from '../../../src/cli/sale/final-changes.ts';
import type { Order } from '../../../src/operations/order-operations.ts';
import type { SaleStatus } from '../../../src/operations/sale-operations.ts';

const sale = {
  ...{ id: 'tickets', state: 'open', remaining: 12, segments: 8, perBuyerLimit: 2 },
  ...{ committedOrders: 1, committedUnits: 2, generation: 1 },
} as unknown as SaleStatus;

describe('a sale', () => {
  test('that is closed already is not asked about', () => {
    const close = finalChange({ action: 'close' })!;
    expect(close.tell(sale)[0]).toContain('Left: 12 units');
    expect(close.tell({ ...sale, remaining: undefined })[0]).toContain('not known now');
    expect(close.tell({ ...sale, state: 'closed' })).toEqual([]);
  });

  test('in which buyers wait to be erased is closed, and they are erased', () => {
    const told = (waitingErasures?: number) =>
      finalChange({ action: 'close' })!.tell({ ...sale, waitingErasures });
    expect(told(2)).toContain('To be erased: 2 buyers. That is done once the sale is closed.');
    expect(told().join()).not.toContain('erased');
  });

  test('is archived only when it is closed', () => {
    const archive = finalChange({ action: 'archive' })!;
    expect(archive.tell(sale)).toEqual([]);
    expect(archive.tell({ ...sale, state: 'closed' }).join()).toContain('1 order and the ledger stay');
    expect(archive.tell({ ...sale, state: 'closed', archivedAt: 'T' })).toEqual([]);
  });

  test('that is edited is asked about only if its limit is raised', () => {
    expect(finalChange({ action: 'edit', title: 'x' })).toBeUndefined();
    const raise = (to: number) => finalChange({ action: 'edit', perBuyerLimit: to })!.tell(sale);
    expect(raise(3)[0]).toBe('A buyer may hold 2 now, 3 after.');
    expect(raise(2)).toEqual([]);
    expect(raise(1)).toEqual([]);
    const closed = { ...sale, state: 'closed' } as const;
    expect(finalChange({ action: 'edit', perBuyerLimit: 3 })!.tell(closed)).toEqual([]);
  });

  test('is deleted with a number of orders, those that are not live too', () => {
    const archived = { ...sale, title: 'Row', archivedAt: 'T' };
    expect(told(archived, 0, undefined)).toEqual([
      'The sale "Row" and its ledger leave Postgres. It was archived at T.',
      'It has no orders.',
    ]);
    expect(told(archived, 1, 'f')[1]).toBe(
      '1 order is deleted after it was written to f: 1 live, 0 cancelled, expired, refunded or rejected.',
    );
    const [, orders, erasures] = told({ ...archived, waitingErasures: 1 }, 1_235, 'f');
    expect(orders).toBe(
      '1,235 orders are deleted after they were written to f: 1 live, 1,234 cancelled, expired, refunded or rejected.',
    );
    expect(erasures).toBe('Still to be erased: 1 buyer. The file has the ids, not pseudonyms.');
  });

  test.each([
    { action: 'pause' },
    { action: 'withdraw', units: 1 },
    { action: 'resize', segments: 3 },
  ] as const)('can take back %o', (change) => expect(finalChange(change)).toBeUndefined());
});

describe('an order', () => {
  const order = (status: Order['status'], refundDue?: true) =>
    ({ status, refundDue, buyerId: 'ann', saleId: 'tickets', quantity: 2 }) as Order;

  test.each([
    ['cancel', order('unpaid'), 'For sale again: 2 units. The buyer can’t pay this order any more.'],
    ['redeem', order('paid'), 'can’t be cancelled or refunded any more'],
    ['refund', order('paid'), 'For sale again: 2 units.'],
    ['refund', order('expired', true), 'The 2 units went back when the order expired.'],
  ] as const)('%s: %o', (kind, given, text) => {
    const [first, ...rest] = toldOf(kind, given, sale);
    expect(first).toBe(`Order of ann in tickets: 2 units, ${given.status}.`);
    expect(rest.join(' ')).toContain(text.replace('’', "'"));
  });

  test.each([
    [{ state: 'closed' }, 'closed'],
    [{ state: 'closed', archivedAt: 'T' }, 'archived'],
  ] as const)('of a sale that sells nothing more does not promise that: %o', (part, word) => {
    for (const [kind, status] of [
      ['cancel', 'unpaid'],
      ['refund', 'paid'],
    ] as const) {
      const told = toldOf(kind, order(status), { ...sale, ...part }).join(' ');
      expect(told).toContain(`Going back to the sale: 2 units. It is ${word}, so it sells nothing more.`);
      expect(told).not.toContain('For sale again');
    }
  });

  test('that can’t be changed so, or was already, is not asked about', () => {
    expect(toldOf('cancel', order('paid'), sale)).toEqual([]);
    expect(toldOf('refund', order('expired'), sale)).toEqual([]);
    expect(toldOf('redeem', order('redeemed'), sale)).toEqual([]);
  });
});
