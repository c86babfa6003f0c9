/** What the shop notes with one order, and who has noted it: no other order, and nothing else of the order, changes. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { editOrder } from '../../../src/orders/order-edits.ts';
import { rows } from '../../../src/postgres/database.ts';
import { insertOrders } from '../../support/events/event-log.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let one: string;
let other: string;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

beforeEach(async () => {
  const { id } = await shop.sell({ stock: 10 });
  [one, other] = (await insertOrders(shop.db, id, 2)) as [string, string];
});

const BY = { actor: 'ann', reason: 'a call' };

async function stored(): Promise<unknown> {
  return rows(
    shop.db,
    'SELECT order_id::text AS id, reference, metadata FROM orders WHERE order_id = ANY (?::bigint[]) ORDER BY order_id',
    [`{${one},${other}}`],
  );
}

const changes = (orderId: string) =>
  rows<{ change: string; actor: string; reason: string; at: Date }>(
    shop.db,
    'SELECT change, actor, reason, changed_at AS at FROM order_changes WHERE order_id = ?',
    [orderId],
  );

test('only what is given changes, of this order alone', async () => {
  const untouched = { id: other, reference: null, metadata: null };
  const edited = await editOrder(shop.db, one, { reference: 'ref', metadata: { a: 1 } }, BY);
  expect(edited).toMatchObject({ orderId: one, reference: 'ref', metadata: { a: 1 } });
  expect(await stored()).toEqual([{ id: one, reference: 'ref', metadata: { a: 1 } }, untouched]);
  await editOrder(shop.db, one, { reference: 'new' }, BY);
  expect(await stored()).toEqual([{ id: one, reference: 'new', metadata: { a: 1 } }, untouched]);
  await editOrder(shop.db, one, { metadata: { b: 2 } }, BY);
  expect(await stored()).toEqual([{ id: one, reference: 'new', metadata: { b: 2 } }, untouched]);
  expect(await changes(other)).toEqual([]);
});

test('the last edit is noted with its author, reason and time', async () => {
  await editOrder(shop.db, one, { reference: 'ref' }, BY);
  const [first] = await changes(one);
  expect(first).toMatchObject({ change: 'edit', ...BY });
  await editOrder(shop.db, one, { reference: 'new' }, { actor: 'ben', reason: 'a letter' });
  const after = await changes(one);
  expect(after).toMatchObject([{ change: 'edit', actor: 'ben', reason: 'a letter' }]);
  expect(after[0]!.at.getTime()).toBeGreaterThan(first!.at.getTime());
});

test('an order that does not exist, or whose sale is being deleted, is not edited', async () => {
  expect(await editOrder(shop.db, '9000000000000000000', { reference: 'ref' }, BY)).toBeUndefined();
  const [{ id } = { id: '' }] = await rows<{ id: string }>(
    shop.db,
    'SELECT sale_id AS id FROM orders WHERE order_id = ?',
    [one],
  );
  await shop.db.raw('UPDATE sales SET deleting_since = now() WHERE id = ?', [id]);
  expect(await editOrder(shop.db, one, { reference: 'ref' }, BY)).toBeUndefined();
  expect(await stored()).toMatchObject([{ reference: null }, { reference: null }]);
  expect(await changes(one)).toEqual([]);
});
