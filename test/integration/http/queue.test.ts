/** A sale with a queue at the public port: places, offers, and what is refused. */
import { describe, expect, test } from 'vitest';
import { commitmentOf } from '../../../src/queue/draw/seed.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { SaleListener } from '../../support/http/sale-listener.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectBalanced, onEachStore } from '../../support/nodes/stores.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';

const HOUR_MS = 3_600_000;
/** Workers learn of a changed sale one by one, so there is only one. */
const ONE_WORKER = { WORKERS: '1' };
const QUEUE = { queue: 'fifo', presenceSeconds: 0 };
const later = () => new Date(Date.now() + HOUR_MS).toISOString();

type Headers = Record<string, string>;

const ask = (
  node: TestNode,
  method: 'GET' | 'POST' | 'DELETE',
  saleId: string,
  buyer: string,
  { headers = {}, body }: { headers?: Headers; body?: unknown } = {},
): Promise<Answer> =>
  node.request(`/v1/sales/${saleId}/place`, {
    method,
    headers: { 'x-buyer-id': buyer, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const join = (node: TestNode, saleId: string, buyer: string, quantity?: number) =>
  ask(node, 'POST', saleId, buyer, quantity === undefined ? {} : { body: { quantity } });

/** @returns the place once it is in this state */
function untilState(node: TestNode, saleId: string, buyer: string, state: string, token?: string) {
  const headers = token === undefined ? {} : { 'place-token': token };
  return until(
    async () => {
      const { body } = await ask(node, 'GET', saleId, buyer, { headers });
      return body.state === state && body;
    },
    { what: `${buyer} is told ${state}` },
  );
}

const withOffer = (token: string) => ({ headers: { 'purchase-token': token } });

onEachStore((stage) => {
  describe('a place', () => {
    test('is given once, and told with its number and the people ahead', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, startsAt: later(), perBuyerLimit: 3 });
      const anna = await join(node, id, 'anna', 2);
      expect(anna).toMatchObject({
        status: 200,
        body: { saleId: id, number: 1, rank: 1, quantity: 2, state: 'waiting', ahead: 0 },
        headers: { 'cache-control': 'no-store' },
      });
      expect((await join(node, id, 'bert')).body).toMatchObject({ number: 2, quantity: 1, ahead: 1 });
      // Again asked, it is the same place, with the first quantity.
      expect((await join(node, id, 'anna', 1)).body).toMatchObject({ number: 1, quantity: 2 });
      const told = { number: 1, quantity: 2, state: 'waiting', ahead: 0 };
      expect(await ask(node, 'GET', id, 'anna')).toMatchObject({ status: 200, body: told });
      const headers = { 'place-token': anna.body.placeToken };
      expect((await ask(node, 'GET', id, 'anna', { headers })).body).toMatchObject(told);
      // Another's token is worth nothing.
      expect((await ask(node, 'GET', id, 'bert', { headers })).body).toMatchObject({ number: 2 });
      expect(await ask(node, 'GET', id, 'carl', { headers })).toMatchObject({
        status: 404,
        code: 'no_place',
      });
    });

    test('is left, and stays left: a buyer who has come again leaves only the place whose token it sends', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, startsAt: later() });
      const first = (await join(node, id, 'anna')).body;
      const bert = (await join(node, id, 'bert')).body;
      const leave = (placeToken?: string) =>
        ask(
          node,
          'DELETE',
          id,
          'anna',
          placeToken === undefined ? {} : { headers: { 'place-token': placeToken } },
        );
      const left = { status: 200, body: { number: 1, state: 'left', reason: 'asked' } };
      expect(await leave(first.placeToken)).toMatchObject(left);
      expect(await leave()).toMatchObject(left);
      const second = (await join(node, id, 'anna')).body;
      expect(second).toMatchObject({ number: 3, state: 'waiting' });
      expect(await leave(first.placeToken)).toMatchObject(left);
      expect((await ask(node, 'GET', id, 'anna')).body).toMatchObject({ number: 3, state: 'waiting' });
      for (const wrong of [bert.placeToken, 'nonsense'])
        expect(await leave(wrong)).toMatchObject({
          status: 400,
          body: { code: 'invalid_request', detail: expect.stringContaining('no place was left') },
        });
      expect((await ask(node, 'GET', id, 'anna')).body).toMatchObject({ number: 3, state: 'waiting' });
      expect((await leave(second.placeToken)).body).toMatchObject({ number: 3, state: 'left' });
      expect((await ask(node, 'GET', id, 'bert')).body).toMatchObject({ number: 2, state: 'waiting' });
    });

    test('is refused where there is nothing to wait for', async () => {
      const { node } = stage;
      const plain = await stage.sale();
      const id = await stage.sale({ ...QUEUE, startsAt: later(), perBuyerLimit: 2, maxWaiting: 1 });
      expect(await join(node, plain, 'anna')).toMatchObject({ status: 409, code: 'no_queue' });
      expect(await join(node, 'nothing', 'anna')).toMatchObject({ status: 404, code: 'unknown_sale' });
      expect(await join(node, '-', 'anna')).toMatchObject({ status: 404, code: 'unknown_sale' });
      expect(await join(node, id, '')).toMatchObject({ status: 401 });
      for (const quantity of [0, -1, 1.5, 3])
        expect(await join(node, id, 'anna', quantity)).toMatchObject({ code: 'invalid_request' });
      expect(await ask(node, 'POST', id, 'anna', { body: { amount: 1 } })).toMatchObject({ status: 400 });
      expect(await ask(node, 'POST', id, 'anna', { body: [1] })).toMatchObject({ status: 400 });
      expect(await ask(node, 'GET', id, 'anna')).toMatchObject({ status: 404, code: 'no_place' });
      expect(await ask(node, 'GET', plain, 'anna')).toMatchObject({ status: 404, code: 'no_place' });
      expect(await ask(node, 'DELETE', id, 'anna')).toMatchObject({ status: 404, code: 'no_place' });
      expect(await join(node, id, 'anna')).toMatchObject({ status: 200 });
      expect(await join(node, id, 'bert')).toMatchObject({
        status: 503,
        code: 'queue_full',
        headers: { 'retry-after': '30' },
      });
      expect(await join(node, id, 'anna')).toMatchObject({ status: 200, body: { number: 1 } });
      await node.ops.change(id, { action: 'close' }, BY);
      await until(async () => (await join(node, id, 'bert')).code === 'ended', { what: 'the node knows' });
      expect((await ask(node, 'GET', id, 'anna')).body).toMatchObject({ number: 1, state: 'closed' });
    });

    test('is refused to whoever could hold too many units with it, until it holds fewer', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 3, perBuyerLimit: 2 });
      await join(node, id, 'anna');
      const { offer } = await untilState(node, id, 'anna', 'offered');
      // Its place is the same, although it holds units.
      expect(await join(node, id, 'anna', 2)).toMatchObject({ status: 200, body: { number: 1 } });
      expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({ status: 201 });
      const limited = { status: 409, code: 'limit_reached', body: { limit: 2, orderIds: [offer.orderId] } };
      expect(await join(node, id, 'anna', 2)).toMatchObject(limited);
      expect(await join(node, id, 'anna', 1)).toMatchObject({ status: 200, body: { number: 2 } });
      const second = (await untilState(node, id, 'anna', 'offered')).offer;
      expect(await node.buy(id, 'anna', withOffer(second.token))).toMatchObject({ status: 201 });
      const refused = await join(node, id, 'anna');
      expect(refused).toMatchObject({ status: 409, code: 'limit_reached', body: { limit: 2 } });
      expect(new Set(refused.body.orderIds)).toEqual(new Set([offer.orderId, second.orderId]));
      await node.ops.changeOrder(offer.orderId, { kind: 'cancel' }, BY);
      expect(await join(node, id, 'anna')).toMatchObject({ status: 200, body: { number: 3 } });
    });

    test('needs a purchase token where the sale requires one, which is issued before the window opens', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, startsAt: later(), requireToken: true });
      expect(await join(node, id, 'anna')).toMatchObject({ status: 403, code: 'token_required' });
      const issued = await node.request(`/v1/sales/${id}/tokens`, {
        method: 'POST',
        headers: { 'x-buyer-id': 'anna' },
      });
      expect(issued).toMatchObject({ status: 201 });
      const headers = { 'purchase-token': issued.body.token };
      expect(await ask(node, 'POST', id, 'bert', { headers })).toMatchObject({
        code: 'token_invalid',
        body: { reason: 'alien' },
      });
      expect(await ask(node, 'POST', id, 'anna', { headers })).toMatchObject({ status: 200 });
    });

    test('is left, and a new one is behind all others', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, startsAt: later() });
      for (const buyer of ['anna', 'bert']) await join(node, id, buyer);
      const left = { number: 1, state: 'left', reason: 'asked' };
      expect(await ask(node, 'DELETE', id, 'anna')).toMatchObject({ status: 200, body: left });
      expect(await ask(node, 'DELETE', id, 'anna')).toMatchObject({ status: 200, body: left });
      expect((await ask(node, 'GET', id, 'anna')).body).toMatchObject(left);
      expect((await join(node, id, 'anna')).body).toMatchObject({ number: 3, state: 'waiting' });
    });

    test('is told without rank before a draw', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, queue: 'draw', startsAt: later() });
      const { body } = await join(node, id, 'anna');
      expect(body).toMatchObject({ number: 1, state: 'waiting', entries: 1 });
      expect(body).not.toHaveProperty('rank');
      expect(body).not.toHaveProperty('ahead');
      const { queue } = (await node.request(`/v1/sales/${id}`)).body;
      expect(queue).toEqual({
        order: 'draw',
        offerSeconds: 120,
        presenceSeconds: 0,
        draw: { commitment: expect.stringMatching(/^[0-9a-f]{64}$/) },
      });
    });

    test('is told with its drawn rank after the draw, and everybody can check the draw', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, queue: 'draw', startsAt: later(), stock: 1 });
      const before = (await node.request(`/v1/sales/${id}`)).body.queue.draw;
      const buyers = ['anna', 'bert', 'carl'];
      for (const buyer of buyers) await join(node, id, buyer);
      await node.ops.change(id, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
      const draw = await until(
        async () => {
          const { queue } = (await node.request(`/v1/sales/${id}`)).body;
          return queue.draw.seed && queue.draw;
        },
        { what: 'the draw' },
      );
      expect(draw).toEqual({
        ...before,
        seed: expect.any(String),
        entries: 3,
        entriesHash: expect.any(String),
      });
      expect(commitmentOf(Buffer.from(draw.seed, 'hex'))).toBe(before.commitment);
      // A node reads the queue once a second, so for a moment it may know the offer and not yet the ranks of the others.
      const others = await until(
        async () => {
          const all = await Promise.all(
            buyers.map(async (buyer) => (await ask(node, 'GET', id, buyer)).body),
          );
          const waiting = all.filter(({ state }) => state !== 'offered');
          return waiting.length < all.length && waiting.every(({ rank }) => rank) ? waiting : undefined;
        },
        { what: 'an offer, and the ranks of the others' },
      );
      expect(others!.map(({ rank }) => rank).sort()).toEqual([2, 3]);
    });

    test('is told how long it will wait, and how sure that is, while the offers go on at a pace', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1_000, startsAt: later() });
      const change = (body: object) =>
        node.opsRequest(`/v1/sales/${id}/queue`, { method: 'PATCH', body: JSON.stringify(body) });
      expect(await change({ action: 'pace', perMinute: 120 })).toMatchObject({ status: 200 });
      await Promise.all(Array.from({ length: 100 }, (_, i) => join(node, id, `buyer-${i}`)));
      const { placeToken } = (await join(node, id, 'anna')).body;
      const look = async () => {
        const headers = { 'place-token': placeToken };
        return (await ask(node, 'GET', id, 'anna', { headers })).body;
      };
      const before = await look();
      expect(before).toMatchObject({ state: 'waiting', ahead: 100 });
      expect(before).not.toHaveProperty('estimateSeconds');
      await node.ops.change(id, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
      const place = await until(
        async () => {
          const body = await look();
          return body.estimateSeconds !== undefined && body;
        },
        { what: 'the first estimate' },
      );
      const { ahead, estimateSeconds, estimateErrorSeconds } = place;
      expect(ahead).toBeLessThan(100);
      // Two offers a second. A busy machine may make some of them late.
      const expected = (ahead + 1) / 2;
      expect(estimateSeconds).toBeGreaterThan(expected / 2);
      expect(estimateSeconds).toBeLessThan(expected * 2);
      expect(Number.isInteger(estimateSeconds)).toBe(true);
      expect(Number.isInteger(estimateErrorSeconds)).toBe(true);
      expect(estimateErrorSeconds).toBeGreaterThanOrEqual(0);
      expect(estimateErrorSeconds).toBeLessThan(estimateSeconds);
      await change({ action: 'pause' });
      await until(async () => !('estimateSeconds' in (await look())), { what: 'no offers, no estimate' });
      expect(await look()).not.toHaveProperty('estimateErrorSeconds');
    });

    test('is given to each of many who ask at once', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, startsAt: later() });
      const buyers = Array.from({ length: 60 }, (_, i) => `buyer-${i}`);
      const answers = await Promise.all([...buyers, ...buyers].map((buyer) => join(node, id, buyer)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      const numbers = answers.map(({ body }) => body.number as number);
      expect(numbers.slice(0, 60)).toEqual(numbers.slice(60));
      expect(numbers.slice(0, 60).sort((a, b) => a - b)).toEqual(buyers.map((_, i) => i + 1));
    });
  });

  const listen = (id: string, buyer: string, headers: Headers = {}) =>
    new SaleListener(Number(new URL(stage.node.publicUrl).port), `${id}/place`, {
      'x-buyer-id': buyer,
      ...headers,
    });

  describe('a stream of a place', () => {
    test('tells each change, from the wait to the end', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1, startsAt: later() });
      const { body } = await join(node, id, 'anna');
      await join(node, id, 'bert');
      using anna = listen(id, 'anna', { 'place-token': body.placeToken });
      using bert = listen(id, 'bert');
      await until(() => anna.seen > 0 && bert.seen > 0, { what: 'the first events' });
      expect(anna.head).toMatch(/^HTTP\/1.1 200 OK/);
      expect(anna.last).toMatchObject({ event: 'place', data: { ...body, state: 'waiting', ahead: 0 } });
      expect(bert.last).toMatchObject({ event: 'place', data: { number: 2, ahead: 1 } });
      await until(() => anna.comments > 0, { what: 'a comment while nothing changes' });
      expect(anna.seen).toBe(1);

      await node.ops.change(id, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
      await until(() => anna.last?.data.state === 'offered', { what: 'the offer' });
      expect(await node.buy(id, 'anna', withOffer(anna.last!.data.offer.token))).toMatchObject({
        status: 201,
      });
      await until(() => anna.isWhole, { what: 'the end of the stream' });
      expect(anna.events.slice(-2)).toMatchObject([
        { event: 'place', data: { state: 'bought' } },
        { event: 'end', data: { reason: 'bought' } },
      ]);
      await node.ops.change(id, { action: 'close' }, BY);
      await until(() => bert.isWhole, { what: 'the end of the other stream' });
      expect(bert.last).toMatchObject({ event: 'end', data: { reason: 'closed' } });
    });

    test('of a place that has ended is short, and there is none without a place', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, startsAt: later() });
      const events = (buyer: string) =>
        node.request(`/v1/sales/${id}/place/events`, { headers: { 'x-buyer-id': buyer } });
      expect(await events('anna')).toMatchObject({ status: 404, code: 'no_place' });
      expect(await events('')).toMatchObject({ status: 401 });
      await join(node, id, 'anna');
      await ask(node, 'DELETE', id, 'anna');
      using anna = listen(id, 'anna');
      await until(() => anna.isWhole, { what: 'the end' });
      expect(anna.events).toMatchObject([
        { event: 'place', data: { number: 1, state: 'left', reason: 'asked' } },
        { event: 'end', data: { reason: 'left' } },
      ]);
    });
  });

  describe('a buyer is present', () => {
    test('while it asks or listens, and is let go when it does so no more', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1, presenceSeconds: 2, offerSeconds: 600 });
      await join(node, id, 'anna');
      await untilState(node, id, 'anna', 'offered');
      const tokens = new Map<string, string>();
      for (const buyer of ['asks', 'listens', 'silent', 'pauses', 'last'])
        tokens.set(buyer, (await join(node, id, buyer)).body.placeToken);
      const look = async (buyer: string) => {
        const headers = { 'place-token': tokens.get(buyer)! };
        return (await ask(node, 'GET', id, buyer, { headers })).body;
      };
      /** @param asking those that ask as often as the last one does */
      const untilAhead = (ahead: number, asking: readonly string[]) =>
        until(
          async () => {
            for (const buyer of asking) await look(buyer);
            return (await look('last')).ahead === ahead;
          },
          { what: `${ahead} buyers are present before the last one` },
        );
      using stream = listen(id, 'listens', { 'place-token': tokens.get('listens')! });
      await until(() => stream.seen > 0, { what: 'the stream' });
      await untilAhead(3, ['asks', 'pauses']);
      // So the time in which one becomes absent passes once more, for those who ask and listen too.
      await untilAhead(2, ['asks']);
      expect(await look('asks')).toMatchObject({ number: 2, state: 'waiting' });
      expect(stream.last).toMatchObject({ event: 'place', data: { number: 3, ahead: 1 } });
      stream.socket.destroy();
      await untilAhead(0, []);
      await ask(node, 'DELETE', id, 'anna');
      await untilState(node, id, 'last', 'offered');
      // Operators look: a buyer that asks after the offer and before its place has ended would be present again.
      const left = async () => (await node.opsRequest(`/v1/sales/${id}/queue/places?state=left`)).body.places;
      await until(async () => (await left()).length === 5, { what: 'the absent ones are let go' });
      expect(await left()).toMatchObject([
        { buyerId: 'anna', reason: 'asked' },
        ...['asks', 'listens', 'silent', 'pauses'].map((buyerId) => ({ buyerId, reason: 'absent' })),
      ]);
      expect((await ask(node, 'GET', id, 'asks')).body).toMatchObject({ state: 'left', reason: 'absent' });
    });
  });

  describe('an offer', () => {
    test('is told to the first place, and the rest know that they wait in vain for now', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1 });
      const anna = await join(node, id, 'anna');
      await join(node, id, 'bert');
      const { offer } = await untilState(node, id, 'anna', 'offered', anna.body.placeToken);
      expect(offer).toMatchObject({ quantity: 1, orderId: expect.stringMatching(/^\d+$/) });
      expect(Date.parse(offer.expiresAt)).toBeGreaterThan(Date.now());
      const carl = await join(node, id, 'carl');
      await untilState(node, id, 'carl', 'hopeless', carl.body.placeToken);

      expect(await node.buy(id, 'bert')).toMatchObject({ status: 403, code: 'offer_required' });
      expect(await node.buy(id, 'anna', withOffer(anna.body.placeToken))).toMatchObject({
        status: 403,
        body: { code: 'offer_required', detail: expect.stringContaining('not the token of an offer') },
      });
      const alien = { status: 403, code: 'token_invalid', body: { reason: 'alien' } };
      expect(await node.buy(id, 'bert', withOffer(offer.token))).toMatchObject(alien);
      expect(await node.buy(id, 'anna', withOffer(`${offer.token}x`))).toMatchObject(alien);
      const placed = { orderId: offer.orderId, status: 'committed', saleId: id, quantity: 1 };
      for (let i = 0; i < 2; i++)
        expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({
          status: 201,
          body: placed,
        });
      expect((await ask(node, 'GET', id, 'anna')).body).toMatchObject({ number: 1, state: 'bought' });
      await expectBalanced(node, id);
    });

    test('is for a quantity, and for no other', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 5, perBuyerLimit: 3 });
      await join(node, id, 'anna', 2);
      const { offer } = await untilState(node, id, 'anna', 'offered');
      expect(await node.buy(id, 'anna', { ...withOffer(offer.token), quantity: 1 })).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining('must be 2') },
      });
      expect(await node.buy(id, 'anna', { ...withOffer(offer.token), quantity: 2 })).toMatchObject({
        status: 201,
        body: { quantity: 2 },
      });
    });

    test('that is given back goes to the next place, and can’t be accepted any more', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1 });
      for (const buyer of ['anna', 'bert']) await join(node, id, buyer);
      const { offer } = await untilState(node, id, 'anna', 'offered');
      expect((await ask(node, 'DELETE', id, 'anna')).body).toMatchObject({ state: 'left', reason: 'asked' });
      expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({
        status: 409,
        code: 'offer_ended',
      });
      await untilState(node, id, 'bert', 'offered');
      await expectBalanced(node, id);
    });

    test('whose time is over has lapsed', async () => {
      const { node } = stage;
      // So long that a busy machine sees it.
      const id = await stage.sale({ ...QUEUE, stock: 1, offerSeconds: 3 });
      await join(node, id, 'anna');
      const { offer } = await untilState(node, id, 'anna', 'offered');
      await untilState(node, id, 'anna', 'lapsed');
      expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({ code: 'offer_ended' });
    });

    test('can’t be accepted while the sale is paused', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1 });
      await join(node, id, 'anna');
      const { offer } = await untilState(node, id, 'anna', 'offered');
      await node.ops.change(id, { action: 'pause' }, BY);
      expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({
        status: 403,
        code: 'paused',
      });
      await node.ops.change(id, { action: 'resume' }, BY);
      expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({ status: 201 });
    });

    test('can be accepted after the queue was turned off; whoever waits is told that it is closed', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...QUEUE, stock: 1, perBuyerLimit: 1 });
      for (const buyer of ['anna', 'bert']) await join(node, id, buyer);
      const { offer } = await untilState(node, id, 'anna', 'offered');
      await node.ops.change(id, { action: 'queue', queue: 'off' }, BY);
      await untilState(node, id, 'bert', 'closed');
      expect((await ask(node, 'GET', id, 'anna')).body).toMatchObject({ state: 'offered', offer });
      expect(await node.buy(id, 'anna', withOffer(offer.token))).toMatchObject({ status: 201 });
      expect(await join(node, id, 'carl')).toMatchObject({ code: 'no_queue' });
    });
  });
}, ONE_WORKER);

test('a place may have been left if Postgres’ reply is lost: the answer is unknown', async () => {
  const databaseUrl = await freshDatabase();
  await using proxy = await TcpProxy.start(Number(new URL(databaseUrl).port));
  const stores = { redisUrl: redisUrl(), databaseUrl: proxy.through(databaseUrl), keyPrefix: freshPrefix() };
  // The answer comes when the leave can't take effect any more.
  const env = { ...ONE_WORKER, REQUEST_DEADLINE_MS: '3000', TAKE_TIMEOUT_MS: '2500' };
  await using node = await startTestNode({ ...stores, env });
  await node.ops.create({ id: 'tickets', stock: 1, queue: 'fifo', startsAt: later() }, BY.actor);
  await until(async () => (await join(node, 'tickets', 'anna')).status === 200, { what: 'anna has a place' });
  proxy.loseReplies((request) => request.includes('stockade_leave_queue'));
  const lost = await ask(node, 'DELETE', 'tickets', 'anna');
  expect(lost).toMatchObject({ status: 503, code: 'unknown' });
  await until(async () => (await ask(node, 'DELETE', 'tickets', 'anna')).body.state === 'left', {
    what: 'asked again, it is left',
  });
});
