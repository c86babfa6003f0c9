/** Lists of orders over HTTP and on the command line. */
import { expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { callCli } from '../../support/cli/cli.ts';
import type { TestNode } from '../../support/nodes/node.ts';
import { onEachStore } from '../../support/nodes/stores.ts';

async function bought(node: TestNode, saleId: string, buyer: string): Promise<string> {
  const answer = await node.buy(saleId, buyer);
  expect(answer).toMatchObject({ status: 201 });
  return answer.body.orderId;
}

const idsOf = ({ body }: { body: { orders: { orderId: string }[] } }) =>
  body.orders.map((one) => one.orderId);
const asBuyer = (node: TestNode, path: string, buyer: string) =>
  node.request(path, { headers: { 'x-buyer-id': buyer } });

onEachStore(
  (stage) => {
    test('operators list the orders of a sale, page by page and by filter', async () => {
      const { node } = stage;
      const saleId = await stage.sale({ perBuyerLimit: 3 });
      const ids: string[] = [];
      for (const buyer of ['ann', 'bob', 'ann']) ids.push(await bought(node, saleId, buyer));
      const [oldest, middle, newest] = [...ids].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
      await node.opsRequest(`/v1/orders/${ids[0]}/cancel`, { method: 'POST' });
      const list = (query = '') => node.opsRequest(`/v1/sales/${saleId}/orders${query}`);
      expect(idsOf(await list())).toEqual([newest, middle, oldest]);
      const first = await list('?order=oldest&limit=2');
      expect(idsOf(first)).toEqual([oldest, middle]);
      expect(first.body.next).toBe(middle);
      const second = await list(`?order=oldest&limit=2&after=${middle}`);
      expect(second.body).toEqual({ orders: [expect.objectContaining({ orderId: newest, saleId })] });
      expect(idsOf(await list('?status=cancelled,expired'))).toEqual([ids[0]]);
      expect(idsOf(await list('?status=unpaid')).sort()).toEqual([ids[1], ids[2]].sort());
      expect(idsOf(await list('?buyer=ann')).sort()).toEqual([ids[0], ids[2]].sort());
      expect(idsOf(await list('?since=2022-01-01T00:00:00Z&until=2022-01-02T00:00:00%2B02:00'))).toEqual([]);
      // In an address, an unescaped `+` is read as a space.
      expect(idsOf(await list('?until=2022-01-02T00:00:00+02:00'))).toEqual([]);
    });

    test('operators find orders by the shop’s reference, also page by page and with other filters', async () => {
      const { node } = stage;
      const saleId = await stage.sale({ perBuyerLimit: 3 });
      const buy = async (buyer: string, note?: object) => {
        const { status, body } = await node.buy(saleId, buyer, {}, note);
        expect(status).toBe(201);
        return body.orderId as string;
      };
      const noted = { reference: 'cart 4711 & more' };
      const ids = [await buy('ann', noted), await buy('bob', noted), await buy('ann', noted)];
      const [oldest, middle, newest] = [...ids].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
      await buy('ann', { reference: 'cart 4712' });
      await buy('bob');
      const list = (query: Record<string, string>) =>
        node.opsRequest(`/v1/sales/${saleId}/orders?${new URLSearchParams(query)}`);
      expect(idsOf(await list(noted))).toEqual([newest, middle, oldest]);
      const first = await list({ ...noted, order: 'oldest', limit: '2' });
      expect(idsOf(first)).toEqual([oldest, middle]);
      const second = await list({ ...noted, order: 'oldest', limit: '2', after: first.body.next });
      expect(second.body).toEqual({ orders: [expect.objectContaining({ orderId: newest, ...noted })] });
      const olderThanNewest = await list({ ...noted, after: newest! });
      expect(idsOf(olderThanNewest)).toEqual([middle, oldest]);
      expect(idsOf(await list({ ...noted, buyer: 'bob' }))).toEqual([ids[1]]);
      expect(idsOf(await list({ reference: 'cart' }))).toEqual([]);
      expect((await list({ reference: '' })).body.faults).toEqual([
        { field: 'reference', problem: 'must not be empty' },
      ]);
      expect((await list({ reference: 'two\nlines' })).body.faults).toMatchObject([{ field: 'reference' }]);

      await node.opsRequest(`/v1/orders/${ids[0]}/cancel`, { method: 'POST' });
      expect(idsOf(await list({ ...noted, status: 'cancelled' }))).toEqual([ids[0]]);
      expect(idsOf(await list({ ...noted, status: 'unpaid' })).sort()).toEqual([ids[1], ids[2]].sort());
      const edited = { method: 'PATCH', body: JSON.stringify({ reference: 'cart 4713' }) } as const;
      await node.opsRequest(`/v1/orders/${ids[1]}`, edited);
      expect(idsOf(await list({ reference: 'cart 4713' }))).toEqual([ids[1]]);
      expect(idsOf(await list(noted)).sort()).toEqual([ids[0], ids[2]].sort());

      const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
      const listed = await callCli(['order', 'list', saleId, '--reference', noted.reference, '--json'], {
        env,
      });
      expect(
        JSON.parse(listed.stdout)
          .orders.map(({ orderId }: { orderId: string }) => orderId)
          .sort(),
      ).toEqual([ids[0], ids[2]].sort());
      const query = new URLSearchParams({ ...noted, format: 'csv' });
      const exported = (more = '') => node.opsRequest(`/v1/sales/${saleId}/orders/export?${query}${more}`);
      const all = await exported();
      expect((all.body as string).trim().split('\r\n')).toHaveLength(3);
      expect(all.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
      const rest = await exported(`&after=${[ids[0]!, ids[2]!].sort()[0]}`);
      expect((rest.body as string).trim().split('\r\n')).toHaveLength(1);
      expect(rest.headers['content-type']).toBe('text/csv; charset=utf-8; header=absent');
    });

    test('the reference still finds the orders of an erased buyer and of an archived sale', async () => {
      const { node } = stage;
      const saleId = await stage.sale({ perBuyerLimit: 2 });
      const noted = { reference: 'cart 4711' };
      const { body } = await node.buy(saleId, 'ann', {}, noted);
      const list = async (query: object) =>
        (await node.opsRequest(`/v1/sales/${saleId}/orders?${new URLSearchParams({ ...noted, ...query })}`))
          .body.orders;
      const change = (action: 'close' | 'archive') => node.ops.change(saleId, { action }, BY);
      expect(await list({ buyer: 'ann' })).toHaveLength(1);
      await change('close');
      const erasure = { method: 'POST', body: JSON.stringify({ buyerId: 'ann', saleId }) } as const;
      expect(await node.opsRequest('/v1/erasures', erasure)).toMatchObject({ status: 200 });
      expect(await list({ buyer: 'ann' })).toEqual([]);
      const found = [{ orderId: body.orderId, buyerId: expect.stringMatching(/^erased-/), ...noted }];
      expect(await list({})).toMatchObject(found);
      await change('archive');
      expect(await list({})).toMatchObject(found);
      expect(await list({ status: 'unpaid' })).toMatchObject(found);
    });

    test('a query with invalid parameters is refused, and each fault is named', async () => {
      const { node } = stage;
      const saleId = await stage.sale();
      const faults = async (query: string) =>
        (await node.opsRequest(`/v1/sales/${saleId}/orders?${query}`)).body.faults;
      expect(await faults('status=gone&limit=0&after=x')).toEqual([
        { field: 'status', problem: expect.stringContaining('unpaid, paid') },
        { field: 'after', problem: expect.stringContaining('order id') },
        { field: 'limit', problem: 'must be a whole number from 1 to 1000' },
      ]);
      expect(await faults('since=yesterday')).toMatchObject([{ field: 'since' }]);
      expect(await faults('buyer=a%00b')).toMatchObject([{ field: 'buyer' }]);
      expect(await faults('limit=1&limit=2')).toEqual([{ field: 'limit', problem: 'is given twice' }]);
      expect(await faults('state=paid')).toEqual([
        { field: 'state', problem: 'is not a part of this query' },
      ]);
      for (const mistyped of ['mistyped', 'a%00b'])
        expect(await node.opsRequest(`/v1/sales/${mistyped}/orders`)).toMatchObject({
          ...{ status: 404, code: 'unknown_sale' },
        });
    });

    test('a buyer lists its own orders, of one sale and of all sales, and no other buyer’s', async () => {
      const { node } = stage;
      const [first, second] = [await stage.sale({ perBuyerLimit: 2 }), await stage.sale()];
      const buyer = `ann-${first}`;
      const one = await bought(node, first, buyer);
      const two = await bought(node, second, buyer);
      await bought(node, first, 'bob');
      const { body } = await asBuyer(node, `/v1/sales/${first}/orders`, buyer);
      expect(body).toEqual({
        orders: [
          { orderId: one, saleId: first, quantity: 1, status: 'unpaid', committedAt: expect.any(String) },
        ],
      });
      expect(idsOf(await asBuyer(node, '/v1/orders', buyer))).toEqual([two, one]);
      const page = await asBuyer(node, '/v1/orders?limit=1', buyer);
      expect(idsOf(page)).toEqual([two]);
      const after = encodeURIComponent(page.body.next);
      expect((await asBuyer(node, `/v1/orders?limit=1&after=${after}`, buyer)).body).toMatchObject({
        orders: [{ orderId: one }],
      });
      expect((await asBuyer(node, '/v1/orders', 'nobody')).body).toEqual({ orders: [] });
      for (const path of ['/v1/orders', `/v1/sales/${first}/orders`]) {
        expect(await node.request(path)).toMatchObject({ status: 401 });
        expect(await asBuyer(node, `${path}?buyer=bob`, buyer)).toMatchObject({ status: 400 });
        expect(await asBuyer(node, `${path}?after=x'`, buyer)).toMatchObject({ status: 400 });
      }
      expect(await asBuyer(node, '/v1/sales/mistyped/orders', buyer)).toMatchObject({ code: 'unknown_sale' });
    });

    test('operators store a reference and metadata with an order; the order tells who did, and hides them from its buyer', async () => {
      const { node } = stage;
      const saleId = await stage.sale();
      const orderId = await bought(node, saleId, 'ann');
      const edit = (body: object, id = orderId) =>
        node.opsRequest(`/v1/orders/${id}`, {
          ...{ method: 'PATCH', body: JSON.stringify(body), headers: { 'x-operator': 'otto' } },
        });
      const noted = { reference: 'cart-4711', metadata: { gift: true } };
      expect(await edit({ ...noted, reason: 'from the cart' })).toMatchObject({ status: 200, body: noted });
      expect((await node.opsRequest(`/v1/orders/${orderId}`)).body).toMatchObject({
        ...noted,
        changes: [{ change: 'edit', actor: 'otto', reason: 'from the cart' }],
      });
      expect((await node.opsRequest(`/v1/sales/${saleId}/orders`)).body.orders).toMatchObject([noted]);
      const { body: shown } = await asBuyer(node, `/v1/orders/${orderId}`, 'ann');
      expect(JSON.stringify(shown)).not.toMatch(/cart-4711|gift/);
      const removed = await edit({ reference: null });
      expect(removed.body).toMatchObject({ metadata: { gift: true } });
      expect(removed.body).not.toHaveProperty('reference');
      const { body } = await node.opsRequest(`/v1/orders/${orderId}`);
      expect(body.changes).toMatchObject([{ change: 'edit', reason: '' }]);
      for (const bad of [
        {},
        { reference: 'x'.repeat(201) },
        { reference: 'two\nlines' },
        { metadata: { text: 'x'.repeat(4_096) } },
        { metadata: [] },
        { metadata: { a: 2 ** 53 } },
        { status: 'paid' },
      ])
        expect(await edit(bad), JSON.stringify(bad).slice(0, 40)).toMatchObject({ status: 400 });
      expect(await edit({ reference: 'x' }, '1')).toMatchObject({ code: 'unknown_order' });
      const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
      const args = ['order', 'edit', orderId, '--reference', 'cart-1', '--metadata', ''];
      const { stdout } = await callCli([...args, '--json'], { env });
      expect(JSON.parse(stdout)).toMatchObject({ orderId, reference: 'cart-1' });
      expect(JSON.parse(stdout)).not.toHaveProperty('metadata');
    });

    test('a reference and metadata that come with a purchase are stored; a repetition keeps the first ones', async () => {
      const { node } = stage;
      const saleId = await stage.sale();
      const buy = (body: object) => node.buy(saleId, 'ann', { key: 'k', headers: {} }, body);
      const long = { text: 'x'.repeat(4_000) };
      for (const bad of [
        { reference: 1 },
        { reference: null },
        { reference: 'two\nlines' },
        { reference: 'x'.repeat(201) },
        { metadata: [] },
        { metadata: { text: 'x'.repeat(4_096) } },
        { note: 'x' },
      ])
        expect(await buy(bad), JSON.stringify(bad).slice(0, 40)).toMatchObject({ code: 'invalid_request' });
      expect((await node.opsRequest(`/v1/sales/${saleId}/orders`)).body.orders).toEqual([]);
      const first = await buy({ reference: 'cart-1', metadata: long });
      expect(first).toMatchObject({ status: 201, body: { status: 'committed' } });
      expect((await buy({ reference: 'cart-2' })).body).toEqual(first.body);
      expect((await buy({})).body).toEqual(first.body);
      const noted = { orderId: first.body.orderId, reference: 'cart-1', metadata: long };
      expect((await node.opsRequest(`/v1/sales/${saleId}/orders`)).body.orders).toMatchObject([noted]);
      expect((await node.opsRequest(`/v1/orders/${noted.orderId}`)).body).toMatchObject({
        ...noted,
        changes: [],
      });
      const { body: shown } = await asBuyer(node, `/v1/orders/${noted.orderId}`, 'ann');
      expect(JSON.stringify(shown)).not.toMatch(/cart-1/);
    });

    test('metadata comes back as it was given, or is refused: with a purchase, later, and by the command line', async () => {
      const { node } = stage;
      const saleId = await stage.sale();
      const given = '{"b":{"__proto__":null},"__proto__":{"a":[0.1,9007199254740991]}}';
      const rounded = ['{"a":1e400}', '{"a":12345678901234567890}', '{"a":[0.12345678901234567890]}'];
      const url = `${node.publicUrl}/v1/sales/${saleId}/orders`;
      const buy = async (metadata: string) => {
        const body = `{"metadata":${metadata}}`;
        const headers = {
          'content-type': 'application/json',
          'x-buyer-id': 'ann',
          'idempotency-key': 'exact',
        };
        return (await fetch(url, { method: 'POST', body, headers })).json() as Promise<
          Record<string, string>
        >;
      };
      const edit = (id: string, metadata: string) =>
        node.opsRequest(`/v1/orders/${id}`, { method: 'PATCH', body: `{"metadata":${metadata}}` });
      const stored = async (id: string) =>
        JSON.stringify((await node.opsRequest(`/v1/orders/${id}`)).body.metadata);
      for (const bad of rounded) {
        const refused = await buy(bad);
        expect(refused, bad).toMatchObject({ code: 'invalid_request' });
        expect(refused.detail).toMatch(/^metadata must hold only numbers/);
      }
      const orderId = (await buy(given)).orderId!;
      expect(await stored(orderId)).toBe(given);
      expect((await edit(orderId, '{"c":1}')).status).toBe(200);
      for (const bad of rounded) {
        const { status, body } = await edit(orderId, bad);
        expect([status, body.faults], bad).toMatchObject([400, [{ field: 'metadata' }]]);
      }
      expect(await stored(orderId)).toBe('{"c":1}');
      expect(JSON.stringify((await edit(orderId, given)).body.metadata)).toBe(given);
      const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
      const order = ['order', 'edit', orderId, '--json', '--metadata'];
      const sale = ['sale', 'edit', saleId, '--json', '--metadata'];
      for (const args of [order, sale]) {
        for (const bad of rounded) {
          const { exitCode, stderr } = await callCli([...args, bad], { env });
          expect([exitCode, stderr], bad).toEqual([2, expect.stringContaining('--metadata must hold')]);
        }
        const { stdout } = await callCli([...args, given], { env });
        expect(JSON.stringify(JSON.parse(stdout).metadata)).toBe(given);
      }
      expect(JSON.stringify((await node.ops.show(saleId)).metadata)).toBe(given);
    });

    test('the command line lists them too', async () => {
      const { node } = stage;
      const saleId = await stage.sale();
      const orderId = await bought(node, saleId, 'ann');
      const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
      const args = ['order', 'list', saleId];
      const listed = await callCli([...args, '--status', 'unpaid', '--json'], { env });
      expect(JSON.parse(listed.stdout)).toMatchObject({ orders: [{ orderId, buyerId: 'ann' }] });
      expect((await callCli([...args, '--buyer', 'ann'], { env })).stdout).toContain(orderId);
      const refused = await callCli([...args, '--status', 'gone'], { env });
      expect(refused).toMatchObject({ exitCode: 2 });
    });
  },
  { PUBLIC_ORDER_NOTES: '1' },
);
