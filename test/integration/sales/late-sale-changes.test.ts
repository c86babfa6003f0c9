/** Each change of a sale that gets the lock of its row after its latest time is refused, and changes nothing. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StockadeError } from '../../../src/engine/errors.ts';
import { BoundedSales } from '../../../src/node/operations/bounded-sales.ts';
import { BoundedWork } from '../../../src/node/operations/bounded-work.ts';
import { openDatabase, rows } from '../../../src/postgres/database.ts';
import { controlOffers } from '../../../src/queue/operators/offer-control.ts';
import { makeChange } from '../../../src/sales/sale-changes.ts';
import { withdraw } from '../../../src/sales/withdrawal.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { BY } from '../../support/author.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { expectRefusedIfLate, IN_TIME_MS } from '../../support/shop/late-change.ts';
import { QUEUE } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let saleId: string;

beforeEach(async () => {
  shop = await Shop.open({ backend: 'memory' });
  ({ id: saleId } = await shop.sell({ stock: 10, ...QUEUE }));
});

afterEach(() => shop[Symbol.asyncDispose]());

const CHANGES: [string, (latestMs: number) => Promise<unknown>][] = [
  ['a top-up', (latestMs) => makeChange(shop.db, saleId, { action: 'top-up', units: 5 }, BY, { latestMs })],
  ['a pause', (latestMs) => makeChange(shop.db, saleId, { action: 'pause' }, BY, { latestMs })],
  ['a withdrawal', (latestMs) => withdraw(shop.db, shop.backend, saleId, 5, BY, latestMs)],
  ['a change of the offers', (latestMs) => controlOffers(shop.db, saleId, { action: 'pause' }, BY, latestMs)],
];

const everything = () =>
  rows(
    shop.db,
    `SELECT to_jsonb(s) AS found FROM sales s UNION ALL SELECT to_jsonb(q) FROM queues q
     UNION ALL SELECT to_jsonb(m) FROM stock_movements m`,
  );

test.each(CHANGES)('%s', (_, change) => expectRefusedIfLate(shop, { locked: ['sales'], change, everything }));

test('a top-up whose COMMIT was held up until its operator was answered, and repeated it, counts once', async () => {
  await using proxy = await TcpProxy.start(Number(new URL(shop.databaseUrl).port));
  await using held = openHeld(proxy.through(shop.databaseUrl));
  const bounds = { operationMs: IN_TIME_MS, verifyMs: IN_TIME_MS, checkEveryMs: 100 };
  const watch = { away: async () => [], backendAway: async () => undefined };
  const service = new SaleService(held.db, shop.backend, shop.locks);
  const operations = new BoundedSales(service, new BoundedWork(watch, bounds));
  const topUp = { action: 'top-up', units: 5 } as const;
  const commit = proxy.hold((request) => request.includes('COMMIT'));
  const answer = operations.change(saleId, topUp, BY).catch((error: unknown) => error);
  await commit.held;
  expect(await answer).toBeInstanceOf(StockadeError);
  expect(await answer).toMatchObject({ message: expect.stringContaining('may have been made') });
  await shop.service.change(saleId, topUp, BY);
  await proxy.release();
  expect(await shop.service.show(saleId)).toMatchObject({ remaining: 15, movedUnits: 5 });
  expect(await shop.changesOf(saleId)).toMatchObject([{ action: 'top-up', units: 5, applied: true }]);
});

function openHeld(url: string) {
  const db = openDatabase({ url, maxConnections: 1 });
  return { db, [Symbol.asyncDispose]: () => db.destroy() };
}
