/** Bad input at the ops port: the answer has the code, nothing is changed, and the node keeps serving. */
import { afterEach, describe, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import type { RequestSpec } from '../../support/nodes/node.ts';
import { expectProblem, onStores, untouchedSale } from '../../support/nodes/refusals.ts';
import { expectBalanced, expectSold } from '../../support/nodes/stores.ts';

onStores((stage) => {
  describe('the ops port', () => {
    const sale = untouchedSale(stage);

    test.each([
      '',
      '{',
      'null',
      '[]',
      '"pause"',
      '{}',
      '{"action":"explode"}',
      '{"action":"__proto__"}',
      '{"action":["pause"]}',
      '{"action":"pause","why":"because"}',
      '{"Action":"pause"}',
    ])('refuses to change a sale by %j', async (body) => {
      const answer = await stage.node.opsRequest(`/v1/sales/${sale.id}`, { method: 'PATCH', body });
      expectProblem(answer, 400, 'invalid_request');
      expect(await stage.node.ops.show(sale.id)).toMatchObject({ state: 'open' });
    });

    const ofTask = (task: string, bodies: readonly string[]) =>
      ['{', 'null', '[]', '1', ...bodies].map((body) => [task, body] as const);

    test.each([
      ...ofTask('rebalance', ['{"dryRun":1}', '{"dryRun":"true"}', '{"dryrun":true}']),
      ...ofTask('verify', ['{"repair":1}', '{"repair":"true"}', '{"Repair":true}']),
    ])('refuses to %s a sale by %j', async (task, body) => {
      const path = `/v1/sales/${sale.id}/${task}`;
      const answer = await stage.node.opsRequest(path, { method: 'POST', body });
      expectProblem(answer, 400, 'invalid_request');
    });

    test('answers that a sale is unknown', async () => {
      for (const id of ['no-such-sale', '%73o-such-sale', '%00', 'x'.repeat(1_000)]) {
        const path = `/v1/sales/${id}`;
        const pause: RequestSpec = { method: 'PATCH', body: '{"action":"pause"}' };
        expectProblem(await stage.node.opsRequest(path), 404, 'unknown_sale');
        expectProblem(await stage.node.opsRequest(path, pause), 404, 'unknown_sale');
        expectProblem(await stage.node.opsRequest(`${path}/verify`, { method: 'POST' }), 404, 'unknown_sale');
      }
    });

    test('does not ask Postgres about ids that it can’t contain', async () => {
      for (const id of ['%00', 'a%00b', '%C3%28', 'x'.repeat(1_000)]) {
        const answer = await stage.node.opsRequest(`/v1/refunds-due?saleId=${id}`);
        expectProblem(answer, 404, 'unknown_sale');
      }
    });

    test('names the state of a sale that can’t be changed', async () => {
      const id = await stage.sale();
      await stage.node.ops.change(id, { action: 'close' }, BY);
      const resume: RequestSpec = { method: 'PATCH', body: '{"action":"resume"}' };
      const answer = await stage.node.opsRequest(`/v1/sales/${id}`, resume);
      expectProblem(answer, 409, 'wrong_state');
      expect(answer.body.state).toBe('closed');
    });
  });

  describe('the creation of a sale', () => {
    const good = { id: 'good', stock: 10 };
    const create = (body: string | Buffer) => stage.node.opsRequest('/v1/sales', { method: 'POST', body });

    afterEach(async () => {
      expect((await stage.node.ops.list()).sales.map(({ id }) => id)).not.toContain('good');
    });

    test.each(['', '{', 'null', '[]', '"x"', '1', '{"id":"good","stock":10,}'])(
      'is refused for %j',
      async (body) => {
        expectProblem(await create(body), 400, 'invalid_request');
      },
    );

    test.each([
      ['stock', 0],
      ['stock', -1],
      ['stock', 2 ** 31 + 1],
      ['stock', 1.5],
      ['stock', '5'],
      ['stock', null],
      ['stock', undefined],
      ['segments', 0],
      ['segments', 1_025],
      ['segments', '8'],
      ['perBuyerLimit', 0],
      ['perBuyerLimit', 1_001],
      ['id', undefined],
      ['id', ''],
      ['id', 5],
      ['id', 'a b'],
      ['id', 'a{b}'],
      ['id', 'a:b'],
      ['id', 'café'],
      ['id', '-a'],
      ['id', 'x'.repeat(65)],
      ['title', 5],
      ['title', 'x'.repeat(201)],
      ['startsAt', '2030-01-01T00:00:00'],
      ['startsAt', '2030-01-01'],
      ['startsAt', 'tomorrow'],
      ['startsAt', '2030-13-01T00:00:00Z'],
      ['startsAt', '2030-02-30T00:00:00Z'],
      ['startsAt', 1_900_000_000_000],
      ['startsAt', null],
      ['startsAt', '0000-12-31T23:59:59Z'],
      ['endsAt', '9999-12-31T23:59:59-01:00'],
      ['endsAt', '2020-01-01T00:00:00Z'],
      ['endsAt', '2030-01-01T00:00:00'],
      ['payWithinSeconds', 0],
      ['requireToken', 'yes'],
      ['priceMinor', -1],
      ['priceMinor', 9.99],
      ['currency', 'euro'],
      ['shopId', 'x'.repeat(129)],
      ['metadata', []],
      ['metadata', 'x'],
      ['metadata', { a: 'x'.repeat(16 * 1024) }],
      ['colour', 'red'],
      ['state', 'open'],
      ['generation', 1],
    ])('is refused with %s %j', async (field, value) => {
      const answer = await create(JSON.stringify({ ...good, [field]: value }));
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.body.faults).toEqual([{ field, problem: expect.any(String) }]);
    });

    // These pass the check of the sale, and Postgres' error would be answered "unavailable".
    test.each([
      ['a title that Postgres can’t hold', { title: 'a\0b' }],
      ['a shop that Postgres can’t hold', { shopId: 'a\0b' }],
      ['metadata that Postgres can’t hold', { metadata: { a: '\0' } }],
      ['half a character in the metadata', { metadata: { a: '\ud800' } }],
      [
        'metadata nested very deeply',
        { metadata: { a: JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`) } },
      ],
      ['metadata of more bytes than allowed', { metadata: { a: 'ü'.repeat(16_000) } }],
    ])('is refused with %s', async (_, fields) => {
      const id = `odd-${Object.keys(fields)}`;
      expectProblem(await create(JSON.stringify({ ...good, id, ...fields })), 400, 'invalid_request');
    });

    test('is refused with metadata of which a number would be rounded', async () => {
      for (const number of ['1e400', '12345678901234567890', '1e-400']) {
        const answer = await create(`{"id":"good","stock":1,"metadata":{"a":${number}}}`);
        expectProblem(answer, 400, 'invalid_request');
        expect(answer.body.faults).toMatchObject([{ field: 'metadata' }]);
      }
    });

    test('is refused if the sale would end before it starts', async () => {
      const [startsAt, endsAt] = ['2030-01-02T00:00:00Z', '2030-01-01T23:59:59+00:00'];
      for (const window of [
        { startsAt, endsAt },
        { startsAt, endsAt: startsAt },
      ]) {
        const answer = await create(JSON.stringify({ ...good, ...window }));
        expectProblem(answer, 400, 'invalid_request');
        expect(answer.body.faults).toMatchObject([{ field: 'endsAt' }]);
      }
    });

    test('names all faults at once', async () => {
      const answer = await create('{"id":"good","stock":0,"segments":0,"colour":"red"}');
      const fields = (answer.body.faults as { field: string }[]).map(({ field }) => field);
      expect(fields.sort()).toEqual(['colour', 'segments', 'stock']);
    });

    test('is refused when the id is taken, and leaves the first sale as it is', async () => {
      const id = await stage.sale({ stock: 7 });
      const answer = await create(JSON.stringify({ id, stock: 1_000 }));
      expectProblem(answer, 409, 'sale_exists');
      expect(await stage.node.ops.show(id)).toMatchObject({ stock: 7, remaining: 7 });
      await expectBalanced(stage.node, id);
    });

    test('with one id, requested twenty times at once, happens once', async () => {
      const body = JSON.stringify({ id: 'wanted', stock: 3 });
      const answers = await Promise.all(Array.from({ length: 20 }, () => create(body)));
      const codes = answers.map(({ status }) => status).sort();
      expect(codes).toEqual([201, ...new Array<number>(19).fill(409)]);
      await expectSold(stage.node, 'wanted', 0);
    });

    test('is refused with a body of more than 64 KB', async () => {
      const answer = await create(JSON.stringify({ ...good, metadata: { a: 'x'.repeat(65_536) } }));
      expectProblem(answer, 413, 'payload_too_large');
    });

    test('accepts values at their limits', async () => {
      const [id, title] = ['x'.repeat(64), 'ü'.repeat(200)];
      const spec = {
        id,
        title,
        stock: 2 ** 31,
        segments: 1_024,
        perBuyerLimit: 1_000,
        metadata: JSON.parse('{"a":["\\"\\\\"],"__proto__":1,"b":-9007199254740991}'),
      };
      expect(await create(JSON.stringify(spec))).toMatchObject({ status: 201, body: spec });
      expect(await stage.node.buy(id, 'ann', { quantity: 1_000 })).toMatchObject({ status: 201 });
      await expectSold(stage.node, id, 1_000);
    });
  });
});
