/** Orders for tests of what happens after the purchase. */
import { expect } from 'vitest';
import type { Purchase } from '../../../src/engine/contract.ts';
import { rows } from '../../../src/postgres/database.ts';
import type { Shop } from './shop.ts';
import type { Till } from './till.ts';

/** Buys an order and waits for its commit. @returns its id */
export async function placed(
  till: Till,
  saleId: string,
  buyerId: string,
  more: Partial<Purchase> = {},
): Promise<string> {
  const outcome = await till.buy(saleId, buyerId, more);
  expect(outcome).toMatchObject({ code: 'committed' });
  return 'orderId' in outcome ? outcome.orderId : '';
}

/** Lets the time to pay of these orders end, or of those among them that are `due`. */
export async function aged(
  shop: Shop,
  orderIds: readonly string[],
  due: (index: number) => boolean = () => true,
): Promise<void> {
  await rows(
    shop.db,
    "UPDATE orders SET expires_at = now() - interval '1 second' WHERE order_id = ANY (?::bigint[])",
    [orderIds.filter((_, i) => due(i))],
  );
}

/** The kinds of an order's events, in order. */
export async function kindsOf(shop: Shop, orderId: string): Promise<string[]> {
  const found = await rows<{ kind: string }>(
    shop.db,
    'SELECT kind FROM order_events WHERE ? = ANY (order_ids) ORDER BY id',
    [orderId],
  );
  return found.map(({ kind }) => kind);
}
