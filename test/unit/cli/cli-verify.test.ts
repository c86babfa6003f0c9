/** `stockade verify` of all sales, while one of them is deleted. */
import { expect, test } from 'vitest';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';

/** The ops port of a node at which `gone` is deleted as soon as it was listed. */
function deletingNode(): Promise<NodeJS.ProcessEnv> {
  const report = {
    ok: true,
    identities: [],
    differences: [],
    findings: [],
    rejectedOrders: 0,
    lostOrders: 0,
  };
  return answeringNode((_, { pathname }) => {
    const [, saleId] = /^\/v1\/sales\/(\w+)\/verify$/.exec(pathname) ?? [];
    if (saleId === undefined) return { sales: ['jazz', 'gone', 'rock'].map((id) => ({ id })) };
    if (saleId === 'gone') return [404, { code: 'unknown_sale' }];
    return { ...report, saleId, committedOrders: 0, distinctBuyers: 0 };
  });
}

test('all sales but the deleted one are verified', async () => {
  const { exitCode, stdout } = await callCli(['verify', '--json'], { env: await deletingNode() });
  expect({ exitCode, ...JSON.parse(stdout) }).toMatchObject({
    ...{ exitCode: 0, ok: true },
    sales: [{ saleId: 'jazz' }, { saleId: 'rock' }],
  });
});

test('archived sales are not left out in silence', async () => {
  const remark = 'verify <sale>` verifies one';
  const said = async (archived: number) => {
    const env = await answeringNode((_, { searchParams }) => ({
      sales: searchParams.get('archived') === 'only' ? Array(archived).fill({ id: 'old' }) : [],
    }));
    return callCli(['verify'], { env });
  };
  expect((await said(1)).stderr).toContain(remark);
  expect(await said(0)).toMatchObject({ exitCode: 0, stdout: 'There are no sales.\n', stderr: '' });
});

test('a sale that is named must exist', async () => {
  const { exitCode, stdout } = await callCli(['verify', 'gone', '--json'], { env: await deletingNode() });
  expect({ exitCode, ...JSON.parse(stdout) }).toMatchObject({ exitCode: 1, error: { code: 'unknown_sale' } });
});

/** The ops port of a node at which, from the second check on, `jazz` has a fault and `rock` is not verified. The third check ends it. */
function faultyNode(): Promise<NodeJS.ProcessEnv> {
  const fault = { cause: 'unexplained', units: 2, isFault: true, what: 'two units are missing' };
  const report = { saleId: 'jazz', identities: [], rejectedOrders: 0, lostOrders: 0, committedOrders: 0 };
  let checks = 0;
  return answeringNode((_, { pathname }) => {
    if (!pathname.endsWith('/verify')) {
      if (++checks === 3) process.emit('SIGINT');
      return { sales: [{ id: 'jazz' }, { id: 'rock' }] };
    }
    const isFirst = checks === 1;
    if (!isFirst && pathname.includes('rock'))
      return [503, { code: 'unavailable', detail: 'it takes too long' }];
    return { ...report, ok: isFirst, differences: isFirst ? [] : [fault], distinctBuyers: 0 };
  });
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
