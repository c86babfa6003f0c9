/** `stockade sale list --all`, with a node that has two pages or fails at the second one. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { callCli } from '../../support/cli/cli.ts';

const sale = {
  ...saleToJson(parseSale({ id: 'none', stock: 100 })),
  ...{ state: 'open', remaining: 0, soldOut: true, generation: 1, movedUnits: 0 },
  ...{ committedOrders: 100, committedUnits: 100 },
};

async function nodeWith(second: {
  readonly status: number;
  readonly body: unknown;
}): Promise<NodeJS.ProcessEnv> {
  const first = { status: 200, body: { sales: [{ ...sale, id: 'one' }], next: 'place' } };
  const server = createServer(({ url }, response) => {
    const { status, body } = url!.includes('after=place') ? second : first;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
}

const LAST = { status: 200, body: { sales: [{ ...sale, id: 'two' }] } };
const FAILED = { status: 500, body: { code: 'internal', title: 'It failed', status: 500 } };

test.each([
  [999, ''],
  [1_000, /^these are the 1,000 that are due longest; there may be more: refund them, and list again\n$/],
])('a list of %i refunds says if there may be more', async (count, remark) => {
  const orders = Array.from({ length: count }, (_, i) => ({ orderId: String(i), saleId: 'jazz' }));
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ orders }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const env = { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
  const { stdout, stderr } = await callCli(['order', 'refunds-due', '--json'], { env });
  expect(JSON.parse(stdout).orders).toHaveLength(count);
  expect(stderr).toEqual(remark === '' ? '' : expect.stringMatching(remark));
});

test('all pages are one JSON object, or a table each', async () => {
  const env = await nodeWith(LAST);
  const json = await callCli(['sale', 'list', '--all', '--json'], { env });
  expect(JSON.parse(json.stdout)).toMatchObject({ sales: [{ id: 'one' }, { id: 'two' }] });
  const { exitCode, stdout } = await callCli(['sale', 'list', '--all'], { env });
  expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/one.*two/s)]);
});

test('if a page can’t be read, the JSON tells only that', async () => {
  const env = await nodeWith(FAILED);
  const { exitCode, stdout, stderr } = await callCli(['sale', 'list', '--all', '--json'], { env });
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('error: It failed')]);
  expect(JSON.parse(stdout)).toEqual({ error: { code: 'internal', message: 'It failed' } });
});
