/** Each setting of a queue is changed while its sale sells: what changes for the buyers, and what the ledger says. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../support/fixtures.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectBalanced, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { QUEUE } from '../../support/shop/queue.ts';

const AS_CREATED = { ...QUEUE, maxWaiting: 1_000_000, fit: 'wait' };
const LATER = new Date(Date.now() + 3_600_000).toISOString();

let node: TestNode;

beforeAll(async () => {
  node = await startTestNode(await redisAndPostgres());
});
afterAll(() => node[Symbol.asyncDispose]());

const ask = (method: 'GET' | 'POST' | 'DELETE', id: string, buyer: string, body?: object): Promise<Answer> =>
  node.request(`/v1/sales/${id}/place`, {
    ...{ method, headers: { 'x-buyer-id': buyer } },
    ...(body && { body: JSON.stringify(body) }),
  });
const join = (id: string, buyer: string, quantity = 1) => ask('POST', id, buyer, { quantity });
const look = async (id: string, buyer: string) => (await ask('GET', id, buyer)).body;
const leave = (id: string, buyer: string) => ask('DELETE', id, buyer);
const change = (id: string, settings: object) =>
  node.opsRequest(`/v1/sales/${id}`, {
    ...{ method: 'PATCH', headers: { 'x-operator': 'olga' } },
    body: JSON.stringify({ action: 'queue', reason: 'we try it', ...settings }),
  });
const told = (id: string, buyer: string, state: string) =>
  until(
    async () => {
      const place = await look(id, buyer);
      return place.state === state && place;
    },
    { what: `${buyer} is told ${state}` },
  );
const accept = async (id: string, buyer: string) => {
  const { offer } = await told(id, buyer, 'offered');
  const headers = { 'purchase-token': offer.token };
  const { status } = await node.buy(id, buyer, { headers, quantity: offer.quantity });
  expect(status).toBe(201);
};
/** How long an offer stood when it was told, in seconds. */
const standsFor = async (id: string, buyer: string) =>
  (Date.parse((await told(id, buyer, 'offered')).offer.expiresAt) - Date.now()) / 1_000;

interface Setting {
  readonly name: string;
  readonly to: object;
  /** What is in its place in the ledger, if that is not the old settings with the new one. */
  readonly noted?: object;
  readonly before: (id: string) => Promise<unknown>;
  readonly after: (id: string) => Promise<unknown>;
}

const SETTINGS: readonly Setting[] = [
  {
    name: 'queue',
    to: { queue: 'off' },
    noted: { queue: 'off' },
    before: async (id) => {
      for (const buyer of ['anna', 'bert', 'carl', 'dora']) await join(id, buyer);
      await accept(id, 'anna');
      expect(await node.buy(id, 'eve')).toMatchObject({ status: 403, code: 'offer_required' });
      expect(await told(id, 'dora', 'waiting')).toMatchObject({ number: 4 });
    },
    after: async (id) => {
      await told(id, 'dora', 'closed');
      await until(async () => (await join(id, 'eve')).code === 'no_queue', { what: 'the node knows' });
      // The offers of bert and carl still stand, and nobody else gets their units.
      expect(await node.buy(id, 'eve')).toMatchObject({ status: 409, code: 'sold_out' });
      await accept(id, 'bert');
    },
  },
  {
    name: 'offerSeconds',
    to: { offerSeconds: 60 },
    before: async (id) => {
      for (const buyer of ['anna', 'bert', 'carl']) await join(id, buyer);
      expect(await standsFor(id, 'carl')).toBeGreaterThan(400);
    },
    after: async (id) => {
      await leave(id, 'anna');
      await join(id, 'dora');
      const seconds = await standsFor(id, 'dora');
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(60);
      // An offer that was made before stands as long as it was told.
      expect(await standsFor(id, 'carl')).toBeGreaterThan(400);
    },
  },
  {
    name: 'presenceSeconds',
    to: { presenceSeconds: 2 },
    before: async (id) => {
      for (const buyer of ['anna', 'bert', 'carl', 'dora']) await join(id, buyer);
      await told(id, 'dora', 'waiting');
    },
    after: async (id) => {
      // Nobody asks for dora any more.
      await join(id, 'eve');
      const eve = () => look(id, 'eve');
      await until(async () => (await eve()).ahead === 0, { what: 'dora is absent' });
      await leave(id, 'anna');
      await accept(id, 'eve');
      // An operator looks: dora would be present again if it asked before its place has ended.
      const counts = async () => (await node.opsRequest(`/v1/sales/${id}/queue?count=true`)).body.counts;
      await until(async () => (await counts()).left === 2, { what: 'anna and dora have left' });
      expect(await look(id, 'dora')).toMatchObject({ state: 'left', reason: 'absent' });
    },
  },
  {
    name: 'maxWaiting',
    to: { maxWaiting: 2 },
    before: async (id) => {
      for (const buyer of ['anna', 'bert', 'carl', 'dora', 'eve', 'fred']) await join(id, buyer);
      await told(id, 'fred', 'waiting');
    },
    after: async (id) => {
      await until(async () => (await join(id, 'gina')).code === 'queue_full', { what: 'the bound holds' });
      for (const buyer of ['dora', 'eve', 'fred']) await told(id, buyer, 'waiting');
      // With room for one more.
      expect(await change(id, { maxWaiting: 4 })).toMatchObject({ status: 200 });
      await until(async () => (await join(id, 'gina')).status === 200, { what: 'there is room' });
      expect((await join(id, 'hans')).code).toBe('queue_full');
    },
  },
  {
    name: 'fit',
    to: { fit: 'less' },
    before: async (id) => {
      await join(id, 'anna', 2);
      await join(id, 'bert', 2);
      await accept(id, 'anna');
      const free = async () => (await node.opsRequest(`/v1/sales/${id}/queue`)).body.freeUnits;
      await until(async () => (await free()) === 1, { what: 'the head has told of the last unit' });
      expect(await look(id, 'bert')).toMatchObject({ state: 'waiting', quantity: 2 });
    },
    after: async (id) => {
      expect(await told(id, 'bert', 'offered')).toMatchObject({ quantity: 2, offer: { quantity: 1 } });
      await accept(id, 'bert');
    },
  },
];

describe('while the sale sells, an operator changes', () => {
  test.each(SETTINGS)('$name', async ({ to, noted, before, after }) => {
    const id = await makeSale(node, { stock: 3, perBuyerLimit: 2, ...QUEUE, fit: 'wait' });
    await before(id);
    expect(await change(id, to)).toMatchObject({ status: 200 });
    const { ledger } = (await node.opsRequest(`/v1/sales/${id}/ledger`)).body;
    expect(ledger[1]).toMatchObject({ action: 'queue', actor: 'olga', reason: 'we try it', applied: true });
    expect(ledger[1].detail).toEqual({ from: AS_CREATED, to: noted ?? { ...AS_CREATED, ...to } });
    await after(id);
    await expectBalanced(node, id);
  });

  test('nothing to `draw`: the places would have been drawn at the opening', async () => {
    const id = await makeSale(node, { stock: 1, ...QUEUE });
    await join(id, 'anna');
    const refused = await change(id, { queue: 'draw' });
    expect(refused).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(refused.body.faults).toEqual([
      {
        field: 'queue',
        problem: 'can’t be draw any more: the draw is when the window opens, and it is open',
      },
    ]);
    expect((await node.opsRequest(`/v1/sales/${id}/ledger`)).body.ledger).toHaveLength(1);
    expect((await node.request(`/v1/sales/${id}`)).body.queue).toMatchObject({ order: 'fifo' });
    // Before the opening it can be set.
    const early = await makeSale(node, { stock: 1, ...QUEUE, startsAt: LATER });
    expect(await change(early, { queue: 'draw' })).toMatchObject({ status: 200 });
  });
});
