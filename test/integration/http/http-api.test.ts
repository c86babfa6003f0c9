/** The life of a sale and of a node, as buyers and operators see it at the two ports. */
import { Redis } from 'ioredis';
import { SignJWT } from 'jose';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { freshDatabase, until } from '../../support/fixtures.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import {
  embedded,
  expectBalanced,
  expectSold,
  makeSale,
  onEachStore,
  redisAndPostgres,
} from '../../support/nodes/stores.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { inTier, isRelease } from '../../support/tier.ts';

const HOUR_MS = 3_600_000;
/**
 * The time after which a change is visible everywhere: the board's repair interval, a poll of the directory, the age of the
 * public counter, and the longest stall of a busy machine.
 */
const SEEN_BY_ALL_MS = 250 + 80 + 200 + 15_000;

/** Answers after which a sale under load is stopped, and how many of the first and of the last buyers ask again. */
const BUSY = inTier({ test: 200, release: 500 });
const ASKED = inTier({ test: 10, release: 50 });

const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
const ahead = (ms: number) => ago(-ms);
const names = (count: number, prefix = 'buyer') => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

function countBy<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, number> {
  const counts = new Map<K, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

const codes = (answers: readonly Answer[]) => Object.fromEntries(countBy(answers, ({ code }) => code));
const readSale = (node: TestNode, id: string) => node.request(`/v1/sales/${id}`);
const readOrder = (node: TestNode, orderId: string, buyer: string) =>
  node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': buyer } });

onEachStore((stage) => {
  describe('a sale', () => {
    test('is visible to operators and buyers once it is created', async () => {
      const { node } = stage;
      const spec = {
        id: 'concert',
        title: 'Concert „Größe“',
        stock: 100,
        segments: 4,
        startsAt: '2024-01-01T00:00:00.000Z',
        endsAt: '2090-01-01T01:00:00+01:00',
        perBuyerLimit: 2,
        payWithinSeconds: 900,
        priceMinor: 4_900,
        faceValueMinor: 6_500,
        currency: 'EUR',
        shopId: 'shop-1',
        metadata: { hall: 'A', rows: [1, 2], nested: { 'quote"': '\\' } },
      };
      const created = await node.opsRequest('/v1/sales', { method: 'POST', body: JSON.stringify(spec) });
      const kept = { ...spec, endsAt: '2090-01-01T00:00:00.000Z' };
      expect(created).toMatchObject({ status: 201, body: { ...kept, state: 'open', remaining: 100 } });
      expect((await node.opsRequest('/v1/sales/concert')).body).toEqual(created.body);
      expect((await node.opsRequest('/v1/sales')).body.sales).toContainEqual(created.body);

      const { id, title, startsAt, endsAt, perBuyerLimit, priceMinor, faceValueMinor, currency } = kept;
      expect(await readSale(node, 'concert')).toMatchObject({
        status: 200,
        // The shop's own data are not public.
        body: expect.not.objectContaining({ metadata: expect.anything(), shopId: expect.anything() }),
      });
      expect((await readSale(node, 'concert')).body).toEqual({
        ...{ id, title, startsAt, endsAt, perBuyerLimit, priceMinor, faceValueMinor, currency },
        ...{ state: 'open', soldOut: false, remaining: 100 },
      });
    });

    test('has the documented defaults', async () => {
      const before = Date.now();
      const body = '{"id":"plain","stock":1}';
      const created = (await stage.node.opsRequest('/v1/sales', { method: 'POST', body })).body;
      expect(created).toMatchObject({ title: '', segments: 8, perBuyerLimit: 1, metadata: {} });
      expect(created).not.toHaveProperty('endsAt');
      expect(Date.parse(created.startsAt)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(created.startsAt)).toBeLessThanOrEqual(Date.now());
    });

    test('does not sell before it starts, and says when that is', async () => {
      const startsAt = ahead(HOUR_MS);
      const id = await stage.sale({ startsAt });
      expect(await stage.node.buy(id, 'ann')).toMatchObject({
        status: 403,
        code: 'not_started',
        body: { startsAt },
      });
      expect((await readSale(stage.node, id)).body).toMatchObject({ state: 'scheduled', soldOut: false });
      await expectSold(stage.node, id, 0);
    });

    test('does not sell after its end, and says when that was', async () => {
      const endedAt = ago(1_000);
      const id = await stage.sale({ startsAt: ago(HOUR_MS), endsAt: endedAt });
      expect(await stage.node.buy(id, 'ann')).toMatchObject({
        status: 403,
        code: 'ended',
        body: { endedAt },
      });
      expect((await readSale(stage.node, id)).body).toMatchObject({ state: 'ended' });
      await expectSold(stage.node, id, 0);
    });

    test('opens and ends by itself', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 10_000, startsAt: ahead(300) });
      const seen: string[] = [];
      const untilTold = (code: string) =>
        until(
          async () => {
            seen.push((await node.buy(id, `buyer-${seen.length}`)).code);
            return seen.at(-1) === code;
          },
          { what: `a buyer is answered ${code}` },
        );
      await untilTold('committed');
      await node.ops.change(id, { action: 'window', endsAt: Date.now() + 300 }, BY);
      await untilTold('ended');
      const phases = seen.filter((code, i) => code !== seen[i - 1]);
      expect(['not_started committed ended', 'committed ended']).toContain(phases.join(' '));
      await expectSold(node, id, seen.filter((code) => code === 'committed').length);
    });

    test('sells nothing while it is paused, and sells again when it is resumed', async () => {
      const { node } = stage;
      const id = await stage.sale();
      expect(await node.buy(id, 'ann')).toMatchObject({ status: 201 });
      expect(await node.ops.change(id, { action: 'pause' }, BY)).toMatchObject({
        state: 'paused',
        remaining: 9,
      });
      expect(await node.buy(id, 'bob')).toMatchObject({ status: 403, code: 'paused' });
      await until(async () => (await readSale(node, id)).body.state === 'paused', {
        what: 'paused, for all',
      });
      expect(await node.ops.change(id, { action: 'pause' }, BY)).toMatchObject({ state: 'paused' });
      expect(await node.ops.change(id, { action: 'resume' }, BY)).toMatchObject({ state: 'open' });
      await until(async () => (await node.buy(id, 'bob', { key: 'until-sold' })).status === 201, {
        what: 'it sells again',
      });
      await expectSold(node, id, 2);
    });

    test('ends for good when it is closed', async () => {
      const { node } = stage;
      const id = await stage.sale();
      expect(await node.buy(id, 'ann')).toMatchObject({ status: 201 });
      expect(await node.ops.change(id, { action: 'close' }, BY)).toMatchObject({ state: 'closed' });
      const refused = await node.buy(id, 'bob');
      expect(refused).toMatchObject({ status: 403, code: 'ended' });
      expect(refused.body).not.toHaveProperty('endedAt');
      await until(async () => (await readSale(node, id)).body.state === 'ended', { what: 'ended, for all' });
      await expect(node.ops.change(id, { action: 'resume' }, BY)).rejects.toMatchObject({
        code: 'wrong_state',
      });
      await expect(node.ops.change(id, { action: 'pause' }, BY)).rejects.toMatchObject({
        code: 'wrong_state',
      });
      await expectSold(node, id, 1);
    });

    test('sells each unit once, and then is sold out', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 20, segments: 8 });
      const crowd = await Promise.all(names(100).map((buyer) => node.buy(id, buyer)));
      expect(codes(crowd)).toEqual({ committed: 20, sold_out: 80 });
      expect(new Set(crowd.flatMap(({ body }) => body.orderId ?? [])).size).toBe(20);
      expect(await node.buy(id, 'late')).toMatchObject({ status: 409, code: 'sold_out' });
      await until(async () => (await readSale(node, id)).body.soldOut, { what: 'sold out, for all' });
      expect((await readSale(node, id)).body).toMatchObject({ state: 'open', remaining: 0 });
      await expectSold(node, id, 20);
    });

    test('sells the last unit of many segments to the first buyer', async () => {
      const id = await stage.sale({ stock: 1, segments: 64 });
      const crowd = await Promise.all(names(50).map((buyer) => stage.node.buy(id, buyer)));
      expect(codes(crowd)).toEqual({ committed: 1, sold_out: 49 });
      await expectSold(stage.node, id, 1);
    });

    test('sells a buyer what the limit allows, and then names the buyer’s orders', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 100, perBuyerLimit: 5 });
      const first = await node.buy(id, 'ann', { quantity: 3 });
      const second = await node.buy(id, 'ann', { quantity: 2 });
      expect([first.status, second.status]).toEqual([201, 201]);
      const third = await node.buy(id, 'ann');
      expect(third).toMatchObject({ status: 409, code: 'limit_reached', body: { limit: 5 } });
      expect(third.body.orderIds.sort()).toEqual([first.body.orderId, second.body.orderId].sort());
      expect((await node.buy(id, 'bob', { quantity: 5 })).status).toBe(201);
      await expectSold(node, id, 10);
    });

    test('never sells a buyer more than the limit, however many purchases come at once', async () => {
      const id = await stage.sale({ stock: 100, perBuyerLimit: 3 });
      const answers = await Promise.all(names(30).map(() => stage.node.buy(id, 'greedy')));
      expect(codes(answers)).toEqual({ committed: 3, limit_reached: 27 });
      await expectSold(stage.node, id, 3);
    });

    test('says what remains if that is less than requested, and sells it', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 10, segments: 4, perBuyerLimit: 8 });
      expect((await node.buy(id, 'ann', { quantity: 8 })).status).toBe(201);
      expect(await node.buy(id, 'bob', { quantity: 3 })).toMatchObject({
        status: 409,
        code: 'insufficient_stock',
        body: { remaining: 2 },
      });
      expect((await node.buy(id, 'bob', { quantity: 2 })).status).toBe(201);
      expect(await node.buy(id, 'cy', { quantity: 2 })).toMatchObject({ status: 409, code: 'sold_out' });
      await expectSold(node, id, 10);
    });
  });

  describe('the same Idempotency-Key', () => {
    test('gives the same order, again and all at once', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 100, perBuyerLimit: 5 });
      const answers = await Promise.all(names(20).map(() => node.buy(id, 'ann', { quantity: 2, key: 'k' })));
      answers.push(await node.buy(id, 'ann', { quantity: 2, key: 'k' }));
      expect(codes(answers)).toEqual({ committed: 21 });
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
      await expectSold(node, id, 2);
    });

    test('is the same in quotation marks', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 100, perBuyerLimit: 5 });
      const answers = [
        await node.buy(id, 'ann', { key: 'a"k' }),
        await node.buy(id, 'ann', { key: '"a\\"k"' }),
        await node.buy(id, 'ann', { key: 'a"k', quantity: 2 }),
      ];
      expect(answers.map(({ code }) => code)).toEqual(['committed', 'committed', 'idempotency_mismatch']);
      expect(answers[1]!.body).toEqual(answers[0]!.body);
      await expectSold(node, id, 1);
    });

    test('means another order for another buyer, and in another sale', async () => {
      const { node } = stage;
      const [one, other] = [await stage.sale(), await stage.sale()];
      const answers = [
        await node.buy(one, 'ann', { key: 'k' }),
        await node.buy(one, 'bob', { key: 'k' }),
        await node.buy(other, 'ann', { key: 'k' }),
      ];
      expect(codes(answers)).toEqual({ committed: 3 });
      expect(new Set(answers.map(({ body }) => body.orderId)).size).toBe(3);
    });

    test('with another quantity is refused, and the answer names the order', async () => {
      const { node } = stage;
      const id = await stage.sale({ perBuyerLimit: 5 });
      const { orderId } = (await node.buy(id, 'ann', { quantity: 2, key: 'k' })).body;
      expect(await node.buy(id, 'ann', { quantity: 1, key: 'k' })).toMatchObject({
        status: 422,
        code: 'idempotency_mismatch',
        body: { orderId, quantity: 2 },
      });
      await expectSold(node, id, 2);
    });

    test('may be used again for a purchase that was refused', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 3, perBuyerLimit: 5 });
      const key = 'k';
      expect((await node.buy(id, 'ann', { quantity: 4, key })).code).toBe('insufficient_stock');
      expect((await node.buy(id, 'ann', { quantity: 3, key })).code).toBe('committed');
      await expectSold(node, id, 3);
    });

    test('still gets the first answer when the sale is sold out', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 2, perBuyerLimit: 2 });
      const first = await node.buy(id, 'ann', { quantity: 2, key: 'k' });
      await until(async () => (await node.buy(id, 'bob')).code === 'sold_out', { what: 'sold out' });
      for (let i = 0; i < 5; i++)
        expect((await node.buy(id, 'ann', { quantity: 2, key: 'k' })).body).toEqual(first.body);
      expect((await node.buy(id, 'ann', { quantity: 1, key: 'k' })).code).toBe('idempotency_mismatch');
      expect((await node.buy(id, 'ann', { quantity: 1, key: 'other' })).code).toBe('sold_out');
    });

    test.each(['pause', 'close'] as const)('still gets the first answer after a %s', async (action) => {
      const { node } = stage;
      const id = await stage.sale({ stock: 100 });
      const first = await node.buy(id, 'ann', { key: 'k' });
      await node.ops.change(id, { action: action }, BY);
      // At once, while some parts of the node may not know of it, and again when all do.
      const again = () => node.buy(id, 'ann', { key: 'k' });
      expect((await again()).body).toEqual(first.body);
      await until(async () => (await readSale(node, id)).body.state !== 'open', { what: `the ${action}` });
      for (let i = 0; i < 5; i++) expect((await again()).body).toEqual(first.body);
      expect((await node.buy(id, 'bob', { key: 'k' })).status).toBe(403);
    });

    test('still gets the first answer when the sale has ended', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 100 });
      const first = await node.buy(id, 'ann', { key: 'k' });
      expect(first.status).toBe(201);
      await node.ops.change(id, { action: 'window', endsAt: Date.now() }, BY);
      await until(async () => (await node.buy(id, 'bob')).code === 'ended', { what: 'the end of the sale' });
      expect((await node.buy(id, 'ann', { key: 'k' })).body).toEqual(first.body);
    });
  });

  describe('Prefer', () => {
    test('respond-async has an effect where an accepted order outlives the process', async () => {
      const { node } = stage;
      const id = await stage.sale();
      const answer = await node.buy(id, 'ann', { prefer: 'respond-async' });
      const expected = stage.isEmbedded ? [201, 'committed'] : [202, 'accepted'];
      expect([answer.status, answer.code]).toEqual(expected);
      const { orderId } = answer.body;
      await until(async () => (await readOrder(node, orderId, 'ann')).body.status === 'unpaid', {
        what: 'the order is committed',
      });
      await expectSold(node, id, 1);
    });

    test.each(['wait=10, respond-async', 'Respond-Async; x=1', 'return=minimal,respond-async'])(
      '%j means respond-async',
      async (prefer) => {
        const id = await stage.sale();
        expect((await stage.node.buy(id, 'ann', { prefer })).status).toBe(stage.isEmbedded ? 201 : 202);
      },
    );

    test.each(['', 'return=minimal', 'no-respond-async', 'respond-asynchronously'])(
      '%j changes nothing',
      async (prefer) => {
        const id = await stage.sale();
        expect((await stage.node.buy(id, 'ann', { prefer })).status).toBe(201);
      },
    );
  });

  describe('an order', () => {
    test('is shown to its owner only', async () => {
      const { node } = stage;
      const id = await stage.sale({ perBuyerLimit: 3 });
      const { orderId } = (await node.buy(id, 'ann', { quantity: 2 })).body;
      const shown = await readOrder(node, orderId, 'ann');
      expect(shown).toMatchObject({
        status: 200,
        body: { orderId, saleId: id, quantity: 2, status: 'unpaid', committedAt: expect.any(String) },
      });
      expect(Math.abs(Date.parse(shown.body.committedAt) - Date.now())).toBeLessThan(60_000);
      expect(await readOrder(node, orderId, 'bob')).toMatchObject({ status: 403, code: 'forbidden' });
      expect((await node.request(`/v1/orders/${orderId}`)).code).toBe('unauthenticated');
    });

    test('that was never placed is unknown, even if its id looks valid', async () => {
      const id = await stage.sale();
      const { orderId } = (await stage.node.buy(id, 'ann')).body;
      const neighbour = String(BigInt(orderId) ^ 1n);
      expect(await readOrder(stage.node, neighbour, 'ann')).toMatchObject({
        status: 404,
        code: 'unknown_order',
      });
    });

    test('has an id that is text, and that does not reveal how many orders there are', async () => {
      const id = await stage.sale({ stock: 100 });
      const answers = await Promise.all(names(20).map((buyer) => stage.node.buy(id, buyer)));
      const ids = answers.map(({ body }) => body.orderId as string);
      for (const orderId of ids) expect(orderId).toMatch(/^\d{18,19}$/);
      const gaps = ids
        .map(BigInt)
        .sort((a, b) => (a < b ? -1 : 1))
        .map((n, i, all) => n - (all[i - 1] ?? 0n));
      expect(gaps.slice(1).filter((gap) => gap === 1n).length).toBeLessThan(3);
    });
  });

  describe('the ops port', () => {
    test('reports health without a token', async () => {
      const { node } = stage;
      for (const [path, status] of [
        ['/healthz', 'ok'],
        ['/readyz', 'ready'],
      ]) {
        const answer = await node.opsRequest(path!, { headers: { authorization: '' } });
        expect(answer).toMatchObject({ status: 200, body: { status } });
      }
    });

    test('rebalances a sale, with or without a body', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 9, segments: 2 });
      const rebalance = async (body?: string) =>
        (await node.opsRequest(`/v1/sales/${id}/rebalance`, { method: 'POST', ...(body && { body }) })).body;
      const even = { saleId: id, before: [5, 4], after: [5, 4], moves: [] };
      expect(await rebalance()).toEqual({ ...even, dryRun: false });
      expect(await rebalance('{}')).toEqual({ ...even, dryRun: false });
      expect(await rebalance('{"dryRun":true}')).toEqual({ ...even, dryRun: true });
    });

    test('verifies a sale, and lists the terms', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 50, perBuyerLimit: 4 });
      await node.buy(id, 'ann', { quantity: 4 });
      await node.buy(id, 'bob', { quantity: 3 });
      const report = (await node.opsRequest(`/v1/sales/${id}/verify`, { method: 'POST' })).body;
      expect(report).toMatchObject({
        saleId: id,
        ok: true,
        findings: [],
        committedOrders: 2,
        distinctBuyers: 2,
      });
      for (const { difference } of report.identities) expect(difference).toBe(0);
      const terms = Object.fromEntries(
        report.identities.flatMap(({ left, right }: { left: object[]; right: object[] }) =>
          [...left, ...right].map((term) => Object.values(term)),
        ),
      );
      expect(terms).toMatchObject({ initial: 50, stock: 43, 'in live orders': 7, 'in segments': 43 });
    });

    test('repairs a sale only on request', async () => {
      const { node } = stage;
      const id = await stage.sale({ stock: 9, segments: 2 });
      const path = `/v1/sales/${id}/verify`;
      const repaired = async (body?: string) =>
        (await node.opsRequest(path, { method: 'POST', ...(body && { body }) })).body.repairs;
      expect(await repaired()).toBeUndefined();
      expect(await repaired('{"repair":false}')).toBeUndefined();
      expect(await repaired('{"repair":true}')).toEqual([]);
    });

    test('has metrics of what the node does', async () => {
      const { node } = stage;
      const before = await metricsOf(node);
      const id = await stage.sale({ stock: 3, segments: 2 });
      const crowd = await Promise.all(names(10).map((buyer) => node.buy(id, buyer)));
      expect(codes(crowd)).toEqual({ committed: 3, sold_out: 7 });
      await node.buy(id, 'has a space');
      await node.buy(id, 'ann', { quantity: 7 });
      let metrics = before;
      const requests = 'stockade_request_duration_seconds';
      const grown = (name: string, labels = {}) =>
        metrics.value(name, labels) - before.value(name, labels, 0);
      // Each part of the node reports its figures at its own time.
      const isTold = async () => {
        metrics = await metricsOf(node);
        expect(metrics.value('stockade_board_sold_out', { sale: id })).toBe(1);
        expect(metrics.value('stockade_sync_lag_seconds')).toBe(0);
        expect(grown(`${requests}_count`, { outcome: 'committed' })).toBe(3);
        expect(grown(`${requests}_count`, { outcome: 'sold_out' })).toBe(7);
        expect(grown(`${requests}_count`, { outcome: 'unauthenticated' })).toBe(1);
        expect(grown(`${requests}_count`, { outcome: 'invalid_request' })).toBe(1);
        expect(grown(`${requests}_bucket`, { outcome: 'committed', le: '+Inf' })).toBe(3);
        expect(metrics.value(`${requests}_sum`, { outcome: 'committed' })).toBeGreaterThan(0);
        // An order of another test, which did not wait for the commit, may be committed only now.
        expect(grown('stockade_sync_orders_total')).toBeGreaterThanOrEqual(3);

        expect(metrics.value('stockade_units_left', { sale: id })).toBe(0);
        expect(metrics.value('stockade_segments_empty', { sale: id })).toBe(2);
        expect(metrics.value('stockade_board_epoch', { sale: id })).toBeGreaterThan(0);
        expect(metrics.value('stockade_lane_depth', { sale: id })).toBe(0);
        expect(metrics.value('stockade_commit_waiters', { sale: id })).toBe(0);
        expect(metrics.value('stockade_sync_lag_orders')).toBe(0);
        expect(metrics.value('stockade_guard_rejections_total', {}, 0)).toBe(0);
        return true;
      };
      await until(isTold, { what: 'everything is in the metrics' });

      for (const [family, type] of [
        [requests, 'histogram'],
        ['stockade_batch_orders', 'histogram'],
        ['stockade_lane_depth', 'gauge'],
        ['stockade_commit_waiters', 'gauge'],
        ['stockade_units_left', 'gauge'],
        ['stockade_segments_empty', 'gauge'],
        ['stockade_board_sold_out', 'gauge'],
        ['stockade_board_epoch', 'gauge'],
        ['stockade_board_slots_used', 'gauge'],
        ['stockade_sync_orders_total', 'counter'],
        ['stockade_sync_batch_orders', 'histogram'],
        ['stockade_sync_transaction_seconds', 'histogram'],
        ['stockade_sync_lag_orders', 'gauge'],
        ['stockade_sync_lag_seconds', 'gauge'],
        ['stockade_guard_rejections_total', 'counter'],
        ['stockade_log_breaks_total', 'counter'],
        ['stockade_sync_lost_orders_total', 'counter'],
        ['stockade_rebuilds_total', 'counter'],
        ['stockade_sync_crashes_total', 'counter'],
      ] as const) {
        expect(metrics.types.get(family), family).toBe(type);
      }
      const batches = metrics.samples.filter(({ name }) => name === 'stockade_batch_orders_bucket');
      expect(batches.map(({ value }) => value)).toEqual(
        batches.map(({ value }) => value).sort((a, b) => a - b),
      );
    });
  });

  describe('SIGTERM', () => {
    test('under load ends the node normally: every answered buyer has an order, and no other buyer', async () => {
      const { isEmbedded } = stage;
      const stores = await (isEmbedded ? embedded() : redisAndPostgres());
      await using node = await startTestNode({ ...stores, env: isEmbedded ? {} : { WORKERS: '2' } });
      const stock = 100_000;
      const id = await makeSale(node, { stock, segments: 8 });
      const crowd = new Crowd(node.publicUrl, id);
      await until(() => crowd.answered.length > BUSY, { what: 'the sale is busy' });
      await node.stop();
      await crowd.ended;

      const { answered } = crowd;
      const seen = codes(answered.map(({ answer }) => answer));
      expect(Object.keys(seen).sort()).toEqual(isEmbedded ? ['committed'] : ['accepted', 'committed']);
      expect(crowd.broken, 'connections that ended while a request was under way').toEqual([]);

      await node.start();
      const sold = answered.length;
      await until(async () => (await node.ops.show(id)).committedOrders >= sold, {
        what: 'the logs are drained',
      });
      await expectSold(node, id, sold);
      for (const { buyer, answer } of [...answered.slice(0, ASKED), ...answered.slice(-ASKED)]) {
        const { orderId } = answer.body;
        expect((await readOrder(node, orderId, buyer)).body.status).toBe('unpaid');
        expect((await node.buy(id, buyer, { key: 'k' })).body.orderId).toBe(orderId);
      }
      expect((await node.buy(id, 'one-more')).status).toBe(201);
      await expectSold(node, id, sold + 1);
    });
  });
});

describe('without sync', () => {
  const backlogMax = 256;
  const env = {
    ...{ SYNC: 'off', WORKERS: '2', LOG_BACKLOG_MAX: String(backlogMax) },
    ...{ REQUEST_DEADLINE_MS: '3000', TAKE_TIMEOUT_MS: '2500' },
  };

  test('a purchase is accepted, shown as such, and committed once sync runs', async () => {
    await using node = await startTestNode({ ...(await redisAndPostgres()), env });
    const id = await makeSale(node, { stock: 1_000, segments: 1, perBuyerLimit: 3 });
    const bought = await node.buy(id, 'ann', { quantity: 2, key: 'k' });
    expect(bought).toMatchObject({ status: 202, body: { status: 'accepted', saleId: id, quantity: 2 } });
    const { orderId } = bought.body;
    // On every worker: each connection may belong to another one.
    for (const attempt of names(8, 'attempt')) {
      using connection = await RawConnection.open(node.publicUrl);
      await connection.send(rawRequest('GET', `/v1/orders/${orderId}`, { 'X-Buyer-Id': 'ann' }));
      const shown = (await connection.answer())?.body;
      expect(shown, attempt).toEqual({ orderId, saleId: id, quantity: 2, status: 'accepted' });
    }
    // Only Postgres could tell whose order it is.
    expect((await readOrder(node, orderId, 'bob')).code).toBe('unknown_order');
    const prefer = 'respond-async';
    expect((await node.buy(id, 'ann', { quantity: 2, key: 'k', prefer })).body).toEqual(bought.body);
    expect(await node.ops.show(id)).toMatchObject({ remaining: 998, committedOrders: 0 });

    // Until the log is as long as it may be.
    const crowd = await Promise.all(names(300).map((buyer) => node.buy(id, buyer, { prefer })));
    const accepted = crowd.filter(({ code }) => code === 'accepted').length;
    expect(accepted).toBeLessThan(backlogMax);
    const busy = crowd.find(({ code }) => code !== 'accepted');
    expect(busy).toMatchObject({ status: 503, code: 'busy', headers: { 'retry-after': '1' } });
    expect(codes(crowd)).toEqual({ ...(accepted > 0 && { accepted }), busy: 300 - accepted });
    const requests = 'stockade_request_duration_seconds_count';
    expect((await metricsOf(node)).value(requests, { outcome: 'busy' })).toBe(300 - accepted);

    await node.stop();
    await node.start({ SYNC: 'on', REQUEST_DEADLINE_MS: '20000' });
    const orders = accepted + 1;
    await until(async () => (await node.ops.show(id)).committedOrders === orders, { what: 'all, committed' });
    expect((await readOrder(node, orderId, 'ann')).body).toMatchObject({ orderId, status: 'unpaid' });
    expect((await node.buy(id, 'cy')).status).toBe(201);
    await expectSold(node, id, accepted + 3);
  });
});

describe('an accepted order', () => {
  const env = { SYNC: 'off', WORKERS: '1' };

  if (isRelease) {
    // A worker searches only sales that it knows, and a node that has just started knows none.
    test('is shown by a node that does not know its sale yet', async () => {
      await using node = await startTestNode({ ...(await redisAndPostgres()), env });
      const { orderId } = (await node.buy(await makeSale(node), 'ann', { prefer: 'respond-async' })).body;
      await node.stop();
      await node.start();
      expect((await readOrder(node, orderId, 'ann')).body).toMatchObject({ orderId, status: 'accepted' });
    });
  }

  // An error of the backend must not count as "no such order".
  test('is not called unknown while Redis is away', async () => {
    await using redis = await RedisServer.start();
    await using node = await startTestNode({
      databaseUrl: await freshDatabase(),
      redisUrl: redis.productUrl,
      env,
    });
    const { orderId } = (await node.buy(await makeSale(node), 'ann', { prefer: 'respond-async' })).body;
    await redis.kill();
    expect(await readOrder(node, orderId, 'ann')).toMatchObject({ status: 503, code: 'unavailable' });
  });
});

describe('without Redis', () => {
  test('every purchase is refused at once, and the node serves again when Redis is back', async () => {
    await using redis = await RedisServer.start({ appendonly: true });
    const env = { WORKERS: '1' };
    await using node = await startTestNode({
      databaseUrl: await freshDatabase(),
      redisUrl: redis.productUrl,
      env,
    });
    const id = await makeSale(node);
    const first = await node.buy(id, 'ann', { key: 'k' });
    const reported = (await readSale(node, id)).body;
    expect(reported.remaining).toBe(9);

    await redis.kill();
    await until(async () => (await node.opsRequest('/readyz')).status === 503, {
      what: 'it is not ready',
    });
    expect((await node.opsRequest('/readyz')).body).toMatchObject({
      status: 'not ready',
      reason: expect.any(String),
    });
    expect((await node.opsRequest('/healthz')).status).toBe(200);
    // Each worker notices it for itself.
    await until(async () => (await node.buy(id, 'scout')).code === 'unavailable', { what: 'it is refused' });
    const began = Date.now();
    const refused = await Promise.all([
      ...names(50).map((buyer) => node.buy(id, buyer)),
      // A buyer that may have an order is not given an answer that may be wrong.
      node.buy(id, 'ann', { key: 'k' }),
      node.buy('another-sale', 'ann'),
    ]);
    expect(codes(refused)).toEqual({ unavailable: 52 });
    for (const { status, headers } of refused) expect([status, headers['retry-after']]).toEqual([503, '1']);
    // Answers come before the deadline, which is 20 s.
    expect(Date.now() - began).toBeLessThan(10_000);
    // Orders in Postgres can still be read, and so can the node's view of the sale.
    expect((await readOrder(node, first.body.orderId, 'ann')).body.status).toBe('unpaid');
    await until(async () => !('remaining' in (await readSale(node, id)).body), {
      what: 'the counter, which may be wrong, is gone',
    });
    expect((await readSale(node, id)).body).toMatchObject({ id, state: 'open' });
    expect((await readSale(node, 'another-sale')).code).toBe('unavailable');
    expect(await metricsOf(node)).toBeDefined();

    await redis.restart();
    await until(async () => (await node.opsRequest('/readyz')).status === 200, {
      what: 'it is ready again',
    });
    // Each worker has its own connection, which must come back.
    await until(async () => (await node.buy(id, 'bob', { key: 'k' })).status === 201, {
      what: 'it sells again',
    });
    await until(async () => (await node.buy(id, 'ann', { key: 'k' })).status === 201, {
      what: 'the old answer',
    });
    expect((await node.buy(id, 'ann', { key: 'k' })).body).toEqual(first.body);
    await expectSold(node, id, 2);
  });
});

describe('the log', () => {
  test('consists of JSON lines, and neither it nor any answer contains a secret', async () => {
    const secrets = {
      redis: 'redis-password-5f0c',
      postgres: 'postgres-password-91ab',
      jwt: 'jwt-secret-that-is-long-enough-77de',
      query: 'ssl-password-c3d4',
    };
    await using redis = await RedisServer.start();
    const operator = new Redis(redis.url);
    await operator.call('ACL', 'SETUSER', 'node', 'on', `>${secrets.redis}`, '~*', '&*', '+@all');
    const databaseUrl = new URL(await freshDatabase());
    databaseUrl.password = secrets.postgres;
    const env = { LOG_LEVEL: 'trace', BUYER_AUTH: 'jwt', JWT_SECRET: secrets.jwt, WORKERS: '2' };
    const url = redis.url.replace('://', `://node:${secrets.redis}@`);
    await using node = await startTestNode({ redisUrl: url, databaseUrl: databaseUrl.href, env });
    const token = await new SignJWT({ sub: 'ann' })
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(secrets.jwt));
    const id = await makeSale(node);
    const said: unknown[] = [];
    const ask = async (answer: Promise<Answer>) => said.push(await answer);
    const buy = (authorization: string) => node.buy(id, 'ann', { headers: { authorization } });

    await ask(buy(`Bearer ${token}`));
    await ask(buy(`Bearer ${token}x`));
    await ask(node.opsRequest('/v1/sales', { headers: { authorization: `Bearer ${node.opsToken}x` } }));
    await ask(node.opsRequest('/metrics'));
    // Errors of every kind, because errors are where secrets might appear.
    const client = new pg.Client({ connectionString: asAdmin(databaseUrl.href) });
    await client.connect();
    await client.query('ALTER TABLE orders RENAME TO elsewhere');
    await ask(node.opsRequest(`/v1/sales/${id}`));
    await ask(node.request('/v1/orders/1', { headers: { authorization: `Bearer ${token}` } }));
    await client.query('ALTER TABLE elsewhere RENAME TO orders');
    const others = 'datname = current_database() AND pid <> pg_backend_pid()';
    await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
    await ask(node.opsRequest(`/v1/sales/${id}`));
    await client.end();
    await operator.call('ACL', 'SETUSER', 'node', 'off');
    await operator.call('CLIENT', 'KILL', 'USER', 'node');
    await until(async () => (await node.opsRequest('/readyz')).status === 503, {
      what: 'it is not ready',
    });
    for (let i = 0; i < 5; i++) await ask(buy(`Bearer ${token}`));
    await ask(node.opsRequest(`/v1/sales/${id}/verify`, { method: 'POST' }));
    operator.disconnect();
    await node.stop();

    const log = await node.log();
    const lines = log
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const logged = lines.filter((line) => !('ready' in line));
    for (const line of logged) {
      expect(line).toMatchObject({
        level: expect.any(Number),
        time: expect.any(Number),
        msg: expect.any(String),
      });
    }
    expect(logged.map(({ level }) => level)).toContain(50);
    // The node has got its whole configuration.
    expect(log).toContain('JWT_SECRET');
    for (const text of [log, JSON.stringify(said)]) {
      for (const secret of [...Object.values(secrets), node.opsToken, token])
        expect(text).not.toContain(secret);
    }
  });
});

describe('two nodes', () => {
  async function twoNodes(env: Record<string, string> = { WORKERS: '2' }) {
    const stores = await redisAndPostgres();
    const [one, two] = await Promise.all([
      startTestNode({ ...stores, env }),
      startTestNode({ ...stores, env }),
    ]);
    return {
      one,
      two,
      async [Symbol.asyncDispose]() {
        await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
      },
    };
  }

  test('share their sales, their buyers and their limits', async () => {
    await using nodes = await twoNodes();
    const { one, two } = nodes;
    const both = <T>(ask: (node: TestNode) => Promise<T>) => Promise.all([ask(one), ask(two)]);

    // A request for an unknown sale must not be remembered for long.
    expect((await both((node) => node.buy('shared', 'early'))).map(({ code }) => code)).toEqual([
      'unknown_sale',
      'unknown_sale',
    ]);
    await makeSale(one, { id: 'shared', stock: 40, segments: 8 });
    for (const node of [one, two]) {
      await until(async () => (await node.buy('shared', 'ann', { key: 'k' })).status === 201, {
        timeoutMs: SEEN_BY_ALL_MS,
        what: 'the new sale sells',
      });
    }
    const [first, second] = await both((node) => node.buy('shared', 'ann', { key: 'k' }));
    expect(second.body).toEqual(first.body);
    expect((await readOrder(two, first.body.orderId, 'ann')).status).toBe(200);
    const greedy = await Promise.all(
      names(20).flatMap(() => [one.buy('shared', 'bob'), two.buy('shared', 'bob')]),
    );
    expect(codes(greedy)).toEqual({ committed: 1, limit_reached: 39 });

    const crowd = await Promise.all(
      names(80).flatMap((buyer, i) => (i % 2 ? one : two).buy('shared', buyer)),
    );
    expect(codes(crowd)).toEqual({ committed: 38, sold_out: 42 });
    for (const node of [one, two]) {
      await until(
        async () => (await metricsOf(node)).value('stockade_board_sold_out', { sale: 'shared' }) === 1,
        {
          what: 'both have closed their boards',
        },
      );
      expect((await node.buy('shared', 'late')).code).toBe('sold_out');
      await expectSold(node, 'shared', 40);
    }
    await both((node) => node.stop());
  });

  if (isRelease) {
    // A segment that refuses the batch is not asked whether it knows the key.
    test('still give a key its first answer when they do not know of a pause', async () => {
      const stores = await redisAndPostgres();
      await using proxy = await TcpProxy.start(Number(new URL(stores.redisUrl).port));
      await using one = await startTestNode({ ...stores, env: { WORKERS: '1' } });
      const slow = { ...stores, redisUrl: proxy.through(stores.redisUrl), env: { WORKERS: '1' } };
      await using two = await startTestNode(slow);
      const id = await makeSale(one);
      const first = await two.buy(id, 'ann', { key: 'k' });
      expect(first.status).toBe(201);
      proxy.hold((request) => request.includes('}:sale\r\n'));
      await one.ops.change(id, { action: 'pause' }, BY);
      expect((await two.buy(id, 'ann', { key: 'k' })).body).toEqual(first.body);
    });

    test('learn of a pause on the other one at once, and of its end', async () => {
      await using nodes = await twoNodes();
      const { one, two } = nodes;
      const id = await makeSale(one, { stock: 100 });
      expect((await two.buy(id, 'ann')).status).toBe(201);
      const changes = [
        ['pause', 'paused', 'paused'],
        ['resume', 'open', 'committed'],
        ['close', 'ended', 'ended'],
      ] as const;
      let buyer = 0;
      for (const [action, state, code] of changes) {
        await one.ops.change(id, { action: action }, BY);
        // After an operator's pause nothing is sold, whether the node knows of it or not.
        if (action !== 'resume') expect((await two.buy(id, `buyer-${buyer++}`)).code).toBe(code);
        await until(async () => (await two.buy(id, `buyer-${buyer++}`)).code === code, {
          timeoutMs: SEEN_BY_ALL_MS,
          what: `purchases on the other node are answered ${code}`,
        });
        await until(async () => (await readSale(two, id)).body.state === state, {
          timeoutMs: SEEN_BY_ALL_MS,
          what: `the other node shows the sale as ${state}`,
        });
      }
      await expectBalanced(one, id);
    });
  }
});

/** Buyers that come one after the other on keep-alive connections, until no server answers. */
class Crowd {
  readonly answered: { readonly buyer: string; readonly answer: Answer }[] = [];
  /** The ends of connections that had served a buyer before, and owed one an answer. */
  readonly broken: string[] = [];
  readonly ended: Promise<unknown>;
  #buyers = 0;

  constructor(url: string, saleId: string, connections = 32) {
    this.ended = Promise.all(Array.from({ length: connections }, () => this.#buyOnAndOn(url, saleId)));
  }

  async #buyOnAndOn(url: string, saleId: string): Promise<void> {
    for (;;) {
      const connection = await RawConnection.open(url).catch(() => undefined);
      if (!connection) return;
      let served = 0;
      while (await this.#buy(connection, saleId, served)) served++;
    }
  }

  /** @returns whether the connection can serve another buyer */
  async #buy(connection: RawConnection, saleId: string, served: number): Promise<boolean> {
    const number = this.#buyers++;
    const buyer = `crowd-${number}`;
    const prefer = number % 3 === 0 ? 'respond-async' : 'return=minimal';
    const headers = { 'X-Buyer-Id': buyer, 'Idempotency-Key': 'k', Prefer: prefer };
    await connection.send(rawRequest('POST', `/v1/sales/${saleId}/orders`, headers));
    const answer = await connection.answer();
    if (answer) this.answered.push({ buyer, answer });
    // A new connection may be one that the server has not accepted.
    else if (served > 0) this.broken.push(connection.failure ?? 'closed');
    return answer !== undefined && answer.headers.connection !== 'close';
  }
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

class Metrics {
  readonly types = new Map<string, string>();
  readonly samples: Sample[] = [];

  constructor(text: string) {
    for (const line of text.split('\n').filter(Boolean)) {
      const type = /^# TYPE (\S+) (\S+)$/.exec(line);
      const sample = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
      if (type) this.types.set(type[1]!, type[2]!);
      else if (sample)
        this.samples.push({ name: sample[1]!, labels: labelsOf(sample[2]), value: Number(sample[3]) });
      else if (!line.startsWith('# HELP ')) throw new Error(`no line of metrics: ${line}`);
    }
  }

  /** The sum of all samples with this name and these labels. */
  value(name: string, labels: Record<string, string> = {}, fallback = Number.NaN): number {
    const found = this.samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    );
    return found.length === 0 ? fallback : found.reduce((sum, { value }) => sum + value, 0);
  }
}

function labelsOf(text = ''): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key!, value!]));
}

async function metricsOf(node: TestNode): Promise<Metrics> {
  const answer = await node.opsRequest('/metrics');
  expect(answer.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
  return new Metrics(answer.body);
}
