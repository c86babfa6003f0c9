import { expect, test } from 'vitest';
import { OrderIds } from '../../../src/engine/order-id.ts';
import { lookUp } from '../../../src/http/public/order-route.ts';

const DAY_MS = 24 * 3_600_000;
const idOfAge = (ms: number) =>
  new OrderIds({ key: new Uint8Array(32), worker: 1, now: () => Date.now() - ms }).next();

/** An order whose log is carried over, and which another request then cancels, while this one is on its way to the record. */
test('an order that is committed, changed and returned between two reads is found in Postgres', async () => {
  const store = { record: true, postgres: '' };
  const asked: string[] = [];
  const ask = async () => {
    asked.push('postgres');
    return store.postgres || undefined;
  };
  const findAccepted = async () => {
    asked.push('record');
    Object.assign(store, { record: false, postgres: 'cancelled' });
    return store.record ? { saleId: 'tickets', quantity: 1 } : undefined;
  };
  const found = await lookUp({ findAccepted }, { buyerId: 'ann', orderId: idOfAge(0) }, ask);
  expect(found).toEqual({ saved: 'cancelled' });
  expect(asked).toEqual(['postgres', 'record', 'postgres']);
});

test('an order in the record is accepted; one in neither is unknown; one too old for a log is read once', async () => {
  const none = async () => undefined;
  const accepted = { saleId: 'tickets', quantity: 1 };
  const young = { buyerId: 'ann', orderId: idOfAge(0) };
  expect(await lookUp({ findAccepted: async () => accepted }, young, none)).toEqual({ accepted });
  expect(await lookUp({ findAccepted: none }, young, none)).toEqual({ saved: undefined });
  let asked = 0;
  const counted = async () => {
    asked++;
    return undefined;
  };
  const old = { buyerId: 'ann', orderId: idOfAge(2 * DAY_MS) };
  expect(await lookUp({ findAccepted: async () => accepted }, old, counted)).toEqual({ saved: undefined });
  expect(asked).toBe(1);
});
