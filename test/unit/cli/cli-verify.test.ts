/** `stockade verify` of all sales, while one of them is deleted. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';

/** The ops port of a node at which `gone` is deleted as soon as it was listed. */
async function deletingNode(): Promise<NodeJS.ProcessEnv> {
  const report = {
    ok: true,
    identities: [],
    differences: [],
    findings: [],
    rejectedOrders: 0,
    lostOrders: 0,
  };
  const server = createServer((request, response) => {
    const [, saleId] = /^\/v1\/sales\/(\w+)\/verify$/.exec(request.url!) ?? [];
    const [status, body] =
      saleId === undefined
        ? [200, { sales: ['jazz', 'gone', 'rock'].map((id) => ({ id })) }]
        : saleId === 'gone'
          ? [404, { code: 'unknown_sale' }]
          : [200, { ...report, saleId, committedOrders: 0, distinctBuyers: 0 }];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
}

test('all sales but the deleted one are verified', async () => {
  const { exitCode, stdout } = await callCli(['verify', '--json'], { env: await deletingNode() });
  expect({ exitCode, ...JSON.parse(stdout) }).toMatchObject({
    ...{ exitCode: 0, ok: true },
    sales: [{ saleId: 'jazz' }, { saleId: 'rock' }],
  });
});

test('a sale that is named must exist', async () => {
  const { exitCode, stdout } = await callCli(['verify', 'gone', '--json'], { env: await deletingNode() });
  expect({ exitCode, ...JSON.parse(stdout) }).toMatchObject({ exitCode: 1, error: { code: 'unknown_sale' } });
});
