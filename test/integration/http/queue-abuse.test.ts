/** A queue and those who mean it no good: made-up buyers, tokens of others, streams that nobody reads. */
import { describe, expect, test } from 'vitest';
import { groupBy } from '../../../src/lib/group-by.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { SaleListener } from '../../support/http/sale-listener.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectBalanced, makeSale, onOneStore, redisAndPostgres } from '../../support/nodes/stores.ts';
import { inTier } from '../../support/tier.ts';

const BUYERS = inTier({ test: 500, release: 100_000 });
const ROOM = BUYERS / 2;
const STREAMS = inTier({ test: 50, release: 2_000 });
const PARALLEL = 100;
const HOUR_MS = 3_600_000;
const LOBBY = { queue: 'fifo', presenceSeconds: 0, startsAt: new Date(Date.now() + HOUR_MS).toISOString() };
const TIMEOUT_MS = inTier({ test: 60_000, release: 900_000 });

const join = (node: TestNode, saleId: string, buyer: string, headers: Record<string, string> = {}) =>
  node.request(`/v1/sales/${saleId}/place`, { method: 'POST', headers: { 'x-buyer-id': buyer, ...headers } });
const look = (node: TestNode, saleId: string, buyer: string, headers: Record<string, string> = {}) =>
  node.request(`/v1/sales/${saleId}/place`, { headers: { 'x-buyer-id': buyer, ...headers } });
const queueOf = async (node: TestNode, saleId: string) =>
  (await node.opsRequest(`/v1/sales/${saleId}/queue?count=true`)).body;

/** Each of them once, some at a time. */
async function crowd<T>(size: number, ask: (nth: number) => Promise<T>, parallel = PARALLEL): Promise<T[]> {
  const answers: T[] = [];
  let next = 0;
  const one = async () => {
    for (let nth = next++; nth < size; nth = next++) answers.push(await ask(nth));
  };
  await Promise.all(Array.from({ length: parallel }, one));
  return answers;
}

onOneStore('redis and postgres', (stage) => {
  describe('made-up buyers', { timeout: TIMEOUT_MS }, () => {
    test('get as many places as the queue has room, and the node goes on', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...LOBBY, maxWaiting: ROOM });
      const answers = await crowd(BUYERS, async (nth) => ({
        ...{ buyer: `made-up-${nth}` },
        ...(await join(node, id, `made-up-${nth}`)),
      }));
      const told = groupBy(answers, ({ status, code }) => code || String(status));
      expect(Object.fromEntries([...told].map(([what, of]) => [what, of.length]))).toEqual({
        200: ROOM,
        queue_full: BUYERS - ROOM,
      });
      const given = told.get('200')!;
      const numbers = given.map(({ body }) => body.number as number);
      expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: ROOM }, (_, i) => i + 1));
      expect(await queueOf(node, id)).toMatchObject({ places: ROOM, counts: { waiting: ROOM } });
      // Who has a place keeps it.
      const firstAndLast = given.filter(({ body }) => body.number <= 10 || body.number > ROOM - 10);
      expect(firstAndLast).toHaveLength(20);
      for (const { buyer, body } of firstAndLast) {
        const { number, placeToken } = body;
        const kept = { status: 200, body: { number, state: 'waiting', ahead: number - 1 } };
        expect(await look(node, id, buyer), buyer).toMatchObject(kept);
        expect(await look(node, id, buyer, { 'place-token': placeToken }), buyer).toMatchObject(kept);
        expect((await join(node, id, buyer)).body, 'the same place again').toMatchObject({ number });
      }
      const [refused] = told.get('queue_full')!;
      for (const buyer of ['nobody', refused!.buyer])
        expect((await look(node, id, buyer)).code, buyer).toBe('no_place');
    });

    test('get no place, and cost no transaction, without a token where the sale requires one', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...LOBBY, requireToken: true });
      const anna = { 'x-buyer-id': 'anna' };
      const { body } = await node.request(`/v1/sales/${id}/tokens`, { method: 'POST', headers: anna });
      const answers = await crowd(BUYERS / 10, (nth) =>
        join(node, id, `made-up-${nth}`, nth % 2 === 0 ? {} : { 'purchase-token': body.token }),
      );
      expect(new Set(answers.map(({ status, code }) => `${status} ${code}`))).toEqual(
        new Set(['403 token_required', '403 token_invalid']),
      );
      expect(await queueOf(node, id)).toMatchObject({ places: 0 });
    });
  });

  describe('the token of another buyer', () => {
    test('neither shows, keeps nor ends a place, and accepts no offer', async () => {
      const { node } = stage;
      const id = await stage.sale({ ...LOBBY, stock: 1 });
      const anna = (await join(node, id, 'anna')).body;
      await join(node, id, 'bert');
      const stolen = { 'place-token': anna.placeToken };
      expect((await look(node, id, 'bert', stolen)).body).toMatchObject({ number: 2 });
      expect(await look(node, id, 'carl', stolen)).toMatchObject({ status: 404, code: 'no_place' });
      const left = await node.request(`/v1/sales/${id}/place`, {
        method: 'DELETE',
        headers: { 'x-buyer-id': 'carl', ...stolen },
      });
      expect(left).toMatchObject({ status: 400, code: 'invalid_request' });
      await node.ops.change(id, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
      const { offer } = await until(
        async () => {
          const { body } = await look(node, id, 'anna');
          return body.state === 'offered' && body;
        },
        { what: 'the offer' },
      );
      const token = { headers: { 'purchase-token': offer.token } };
      const thieves = await crowd(20, (nth) => node.buy(id, `thief-${nth}`, token));
      expect(new Set(thieves.map(({ code }) => code))).toEqual(new Set(['token_invalid']));
      const all = await Promise.all(Array.from({ length: 5 }, () => node.buy(id, 'anna', token)));
      expect(all.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
      await expectBalanced(node, id);
    });
  });
});

describe('streams of places', { timeout: TIMEOUT_MS }, () => {
  const listen = (node: TestNode, saleId: string, buyer: string) =>
    new SaleListener(Number(new URL(node.publicUrl).port), `${saleId}/place`, { 'x-buyer-id': buyer });

  test('that nobody reads, or that are cut off, hold up nobody; one too many is refused, and counted', async () => {
    // Half of them may be held by listeners.
    const env = { WORKERS: '1', MAX_CONNECTIONS: String(2 * (STREAMS + 1)) };
    await using node = await startTestNode({ ...(await redisAndPostgres()), env });
    const id = await makeSale(node, LOBBY);
    await join(node, id, 'first');
    const hanging = await crowd(
      STREAMS,
      async (nth) => {
        await join(node, id, `listener-${nth}`);
        const stream = listen(node, id, `listener-${nth}`);
        await until(() => stream.seen > 0, { what: 'the stream has begun' });
        stream.socket.pause();
        return stream;
      },
      STREAMS / 5,
    );
    expect((await join(node, id, 'anna')).body).toMatchObject({ number: STREAMS + 2, state: 'waiting' });
    using anna = listen(node, id, 'anna');
    await until(() => anna.last?.data.ahead === STREAMS + 1, { what: 'a stream that is read' });
    expect(await metric(node, 'stockade_listeners')).toBe(STREAMS + 1);
    const refused = await node.request(`/v1/sales/${id}/place/events`, {
      headers: { 'x-buyer-id': 'anna' },
    });
    expect(refused).toMatchObject({ status: 503, code: 'busy', headers: { 'retry-after': '10' } });
    expect(await metric(node, 'stockade_listeners_refused_total')).toBe(1);

    // Each of them is to hear of this.
    await node.request(`/v1/sales/${id}/place`, { method: 'DELETE', headers: { 'x-buyer-id': 'first' } });
    await node.ops.change(id, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
    await until(() => anna.last?.data.state === 'hopeless', { what: 'the queue moves' });
    expect(anna.last!.data.ahead).toBeLessThan(STREAMS);
    expect((await look(node, id, 'anna')).body).toMatchObject({ number: STREAMS + 2, state: 'hopeless' });
    expect(
      hanging.every(({ seen }) => seen === 1),
      'nobody reads',
    ).toBe(true);
    hanging[0]!.socket.resume();
    await until(() => hanging[0]!.seen > 1, { what: 'who reads again hears what was sent meanwhile' });
    for (const { socket } of hanging) socket.destroy();
    await until(async () => (await metric(node, 'stockade_listeners')) === 1, { what: 'they have gone' });
    await node.ops.change(id, { action: 'close' }, BY);
    await until(() => anna.isWhole, { what: 'the end' });
    expect(anna.last).toMatchObject({ event: 'end', data: { reason: 'closed' } });
    await expectBalanced(node, id);
  });
});
