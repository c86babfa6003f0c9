/** An archived sale is deleted at the ops port and on the command line; buyers find neither it nor their orders. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { until } from '../../support/fixtures.ts';
import { makeSale, onEachStore } from '../../support/nodes/stores.ts';
import { allowDeleting } from '../../support/postgres/least-rights.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'stockade-delete-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

onEachStore((stage) => {
  beforeAll(async () => {
    if (stage.databaseUrl !== undefined) await allowDeleting(stage.databaseUrl);
  });

  const at = (saleId: string, rest = '') => `/v1/sales/${saleId}${rest}`;
  const ask = (path: string, method: 'GET' | 'POST' | 'PATCH' | 'DELETE' = 'GET', body?: unknown) =>
    stage.node.opsRequest(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const change = (id: string, action: string) => ask(at(id), 'PATCH', { action });
  const cli = (...args: string[]) =>
    callCli(args, { env: { OPS_URL: stage.node.opsUrl, OPS_TOKEN: stage.node.opsToken } });

  /** A closed and archived sale with orders of these buyers. */
  async function archivedSale(...buyers: string[]) {
    const id = await makeSale(stage.node, { stock: 10, segments: 2 });
    const orderIds: string[] = [];
    for (const buyer of buyers) orderIds.push((await stage.node.buy(id, buyer)).body.orderId);
    await change(id, 'close');
    await until(async () => (await change(id, 'archive')).status === 200, { what: 'the sale is archived' });
    return { id, orderIds };
  }

  /** The public port, as the buyer. */
  const look = (orderId: string) =>
    stage.node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': 'ann' } });

  const deleted = async (id: string) => (await ask(at(id, '/deletion'))).body.state === 'deleted';

  test('a sale is deleted if the number of its orders is named', async () => {
    const { id, orderIds } = await archivedSale('ann', 'ben');
    expect(await ask(at(id, '/deletion'))).toMatchObject({
      status: 200,
      body: { saleId: id, state: 'none' },
    });
    for (const named of ['', '?orders=1', '?orders=3']) {
      expect(await ask(at(id, named), 'DELETE')).toMatchObject({
        status: 409,
        body: { code: 'orders_differ', orders: 2 },
      });
    }
    for (const odd of [
      '?orders=-1',
      '?orders=x',
      '?orders=',
      '?orders=2&orders=2',
      '?order=2',
      '?orders=2&reason=%0A',
    ]) {
      expect(await ask(at(id, odd), 'DELETE'), odd).toMatchObject({
        status: 400,
        body: { code: 'invalid_request' },
      });
    }
    expect(await look(orderIds[0]!)).toMatchObject({ status: 200 });

    const begun = await ask(at(id, '?orders=2&reason=over'), 'DELETE');
    expect(begun).toMatchObject({
      status: 202,
      body: { saleId: id, orders: 2, actor: 'ops token', reason: 'over' },
    });
    await until(() => deleted(id), { what: 'the sale is deleted' });
    expect(await look(orderIds[0]!)).toMatchObject({
      status: 404,
      body: { code: 'unknown_order' },
    });
    expect(await stage.node.buy(id, 'cy')).toMatchObject({ status: 404, body: { code: 'unknown_sale' } });
    for (const path of [at(id), at(id, '/ledger'), at(id, '/orders'), at(id, '/orders/export')]) {
      expect(await ask(path), path).toMatchObject({ status: 404, body: { code: 'unknown_sale' } });
    }
    expect((await ask(at(id, '?orders=2'), 'DELETE')).status).toBe(404);
    const again = await ask('/v1/sales', 'POST', { id, stock: 1 });
    expect(again).toMatchObject({ status: 201, body: { generation: 4 } });
    expect(await stage.node.buy(id, 'ann')).toMatchObject({ status: 201 });
  });

  test('a sale that is not archived is refused', async () => {
    const id = await makeSale(stage.node);
    expect(await ask(at(id), 'DELETE')).toMatchObject({
      status: 409,
      body: { code: 'wrong_state', state: 'open' },
    });
    expect(await cli('sale', 'delete', id, '--with-orders', '--export', join(folder, 'x'))).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('archive it first'),
    });
    expect((await ask(at('nothing'), 'DELETE')).status).toBe(404);
  });

  test('the command exports the orders to a new file first', async () => {
    const { id, orderIds } = await archivedSale('ann', 'ben', 'cy');
    const refused = await cli('sale', 'delete', id, '--yes');
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('has 3 orders') });
    const [taken, file] = [join(folder, `${id}.txt`), join(folder, `${id}.ndjson`)];
    writeFileSync(taken, 'mine');
    const blocked = await cli('sale', 'delete', id, '--with-orders', '--export', taken);
    expect(blocked).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('exists') });
    expect(readFileSync(taken, 'utf8')).toBe('mine');
    for (const half of [['--with-orders'], ['--export', file]]) {
      expect(await cli('sale', 'delete', id, ...half)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('belong together'),
      });
    }
    expect(existsSync(file)).toBe(false);
    expect((await ask(at(id))).status).toBe(200);

    const done = await cli('sale', 'delete', id, '--with-orders', '--export', file, '--by', 'otto');
    expect(done).toMatchObject({
      exitCode: 0,
      stdout: `${id} is deleted with 3 orders, kept in ${file}.\n`,
    });
    const lines = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.slice(0, -1).map(({ orderId }) => orderId)).toEqual([...orderIds].sort());
    expect(lines.at(-1)).toEqual({ end: true, orders: 3 });
    expect((await ask(at(id, '/deletion'))).body).toMatchObject({ state: 'deleted', done: 3, actor: 'otto' });
  });
});
