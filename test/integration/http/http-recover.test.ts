/** A sale rebuilt by an operator, at the ops port and on the command line. */
import { expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { until } from '../../support/fixtures.ts';
import { expectSold, makeSale, onEachStore } from '../../support/nodes/stores.ts';

onEachStore((stage) => {
  const recoverOf = (saleId: string, method: 'GET' | 'POST') =>
    stage.node.opsRequest(`/v1/sales/${saleId}/recover`, { method });

  test('a sale is rebuilt, and sells again', async () => {
    const id = await makeSale(stage.node, { stock: 10, segments: 4 });
    for (const buyer of ['ann', 'ben', 'cleo']) expect((await stage.node.buy(id, buyer)).status).toBe(201);
    expect(await recoverOf(id, 'GET')).toMatchObject({ status: 200, body: { saleId: id, state: 'none' } });
    const begun = await recoverOf(id, 'POST');
    expect(begun).toMatchObject({ status: 202, body: { saleId: id, state: 'running' } });
    await until(async () => (await recoverOf(id, 'GET')).body.state === 'done', { what: 'it is built' });
    expect((await recoverOf(id, 'GET')).body).toEqual({
      saleId: id,
      state: 'done',
      generation: 2,
      tookMs: expect.any(Number),
      salvagedOrders: 0,
      rejectedOrders: 0,
      loadedBuyers: 3,
      losses: [],
    });
    expect(await stage.node.buy(id, 'ann')).toMatchObject({ status: 409, body: { code: 'limit_reached' } });
    expect((await stage.node.buy(id, 'dora')).status).toBe(201);
    await expectSold(stage.node, id, 4);
  });

  test('the command follows it to its end, and prints one object with --json', async () => {
    const id = await makeSale(stage.node);
    expect((await stage.node.buy(id, 'ann')).status).toBe(201);
    const env = { OPS_URL: stage.node.opsUrl, OPS_TOKEN: stage.node.opsToken };
    const shown = await callCli(['recover', id, '--yes'], { env });
    expect(shown).toMatchObject({ exitCode: 0 });
    expect(shown.stdout).toMatch(
      new RegExp(`^${id}: rebuilt as generation 2 in \\d+\\.\\d s\\. Buyers loaded: 1;`),
    );
    expect(shown.stdout).toContain('No accepted order is known to be lost.');
    const { stdout } = await callCli(['recover', id, '--yes', '--json'], { env });
    expect(JSON.parse(stdout)).toMatchObject({ saleId: id, state: 'done', generation: 3, losses: [] });
  });

  test('an unknown sale can’t be rebuilt', async () => {
    for (const method of ['POST', 'GET'] as const) {
      expect(await recoverOf('nowhere', method)).toMatchObject({
        status: 404,
        body: { code: 'unknown_sale' },
      });
    }
  });
});
