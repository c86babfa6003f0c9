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

/** The ops port of a node at which, from the second check on, `jazz` has a fault and `rock` is not verified. The third check ends it. */
async function faultyNode(): Promise<NodeJS.ProcessEnv> {
  const fault = { cause: 'unexplained', units: 2, isFault: true, what: 'two units are missing' };
  const report = { saleId: 'jazz', identities: [], rejectedOrders: 0, lostOrders: 0, committedOrders: 0 };
  let checks = 0;
  const answerTo = (url: string): [number, object] => {
    if (!url.endsWith('/verify')) {
      if (++checks === 3) process.emit('SIGINT');
      return [200, { sales: [{ id: 'jazz' }, { id: 'rock' }] }];
    }
    const isFirst = checks === 1;
    if (!isFirst && url.includes('rock')) return [503, { code: 'unavailable', detail: 'it takes too long' }];
    return [200, { ...report, ok: isFirst, differences: isFirst ? [] : [fault], distinctBuyers: 0 }];
  };
  const server = createServer((request, response) => {
    const [status, body] = answerTo(request.url!);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
}

test('a fault counts also if another sale can’t be verified', async () => {
  const watch = ['verify', '--watch', '--every', '1'];
  const { exitCode, stdout, stderr } = await callCli(watch, { env: await faultyNode() });
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 1,
    stdout: expect.stringContaining('found: two units are missing'),
    stderr: expect.stringMatching(/not verified: it takes too long/),
  });
});
