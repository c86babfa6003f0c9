/** Sales with orders, as a starting point for tests of what happens afterwards. */
import { expect } from 'vitest';
import { buyers, type Shop } from './shop.ts';

/** A sale of 20 units with six orders in Postgres. No sync runs afterwards. @returns its id */
export async function soldSix(shop: Shop): Promise<string> {
  const { id } = await shop.sell({ stock: 20, segments: 2 });
  const sync = await shop.startSync();
  await sync.ready;
  const till = await shop.startEngine();
  const outcomes = await till.buyAll(id, buyers(6));
  expect(outcomes.map(({ code }) => code)).toEqual(Array(6).fill('committed'));
  await sync.stop();
  return id;
}

/** Four more orders, which are in the order logs only. */
export async function acceptFour(shop: Shop, saleId: string): Promise<void> {
  const till = await shop.startEngine();
  const outcomes = await till.buyAll(saleId, buyers(4, 'accepted'), { awaitCommit: false });
  expect(outcomes.map(({ code }) => code)).toEqual(Array(4).fill('accepted'));
}
