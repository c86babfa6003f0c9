/** The shop hears nothing of a rehearsal: neither the stream nor the webhook has its orders. */
import { expect, test } from 'vitest';
import { newRehearsalId } from '../../../src/engine/sale/rehearsal.ts';
import { Webhook } from '../../../src/node/webhook.ts';
import { rows } from '../../../src/postgres/database.ts';
import { Desk } from '../../support/events/event-desk.ts';
import { insertOrders } from '../../support/events/event-log.ts';
import { WebhookReceiver } from '../../support/events/webhook-receiver.ts';

const SECRET = 'a-secret-between-two-programs';
const PATIENT_MS = 60_000;

async function rehearsedOrders(desk: Desk, count: number): Promise<string[]> {
  const { id } = await desk.shop.sell({ id: newRehearsalId(), stock: 1_000, segments: 2 });
  return insertOrders(desk.db, id, count);
}

test('events of a rehearsal reach neither the stream nor the webhook, and leave no rows', async () => {
  await using receiver = await WebhookReceiver.start();
  await using desk = await Desk.open();
  const webhook = new Webhook({ url: receiver.url, secret: SECRET, timeoutMs: PATIENT_MS });
  const rehearsed = await rehearsedOrders(desk, 3);
  const real = await desk.orders(2);
  await desk.event('committed', rehearsed);
  await desk.event('committed', [rehearsed[0]!, ...real, rehearsed[1]!]);
  await desk.event('paid', real);
  desk.startRelay({ webhook: { receiver: webhook, maxAttempts: 100, retryMs: () => 5 } });
  await desk.delivered();
  const told = [...real, ...real];
  expect((await desk.stream()).map(({ orderId }) => orderId)).toEqual(told);
  expect(receiver.requests.flatMap(({ events }) => events).map(({ orderId }) => orderId)).toEqual(told);
  expect(await rows(desk.db, 'SELECT 1 FROM webhook_pages')).toEqual([]);
  await webhook.close();
});

test('while the webhook does not answer, no page waits for the events of a rehearsal', async () => {
  await using desk = await Desk.open();
  await desk.event('committed', await rehearsedOrders(desk, 3));
  const receiver = {
    deliver: async () => {
      throw new Error('the webhook is down');
    },
  };
  desk.startRelay({ webhook: { receiver, maxAttempts: 100, retryMs: () => PATIENT_MS } });
  await desk.emptied();
  expect(await rows(desk.db, 'SELECT 1 FROM webhook_pages')).toEqual([]);
});
