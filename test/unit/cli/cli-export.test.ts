/** An export that breaks off: another sale has got the id, a signal ends it, there can't be such a file. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { writeOrders } from '../../../src/cli/order/export.ts';
import { explain } from '../../../src/cli/terminal/explain.ts';
import { InvalidInput } from '../../../src/engine/errors.ts';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import type { OrderPage, OrderQuery } from '../../../src/operations/order-list.ts';
import type { OrderOperations } from '../../../src/operations/order-operations.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';

const FORMER = [{ field: 'after', problem: 'is not an order of sale web' }];

async function failureOf(
  listOrders: (saleId: string, query: OrderQuery) => Promise<OrderPage>,
  after?: string,
) {
  const orders = { listOrders } as unknown as OrderOperations;
  const wanted = { saleId: 'web', committedOrders: 2, wanted: { after }, format: 'ndjson' } as const;
  try {
    for await (const _ of writeOrders(orders, wanted, new PassThrough()));
  } catch (error) {
    return explain(error);
  }
  throw new Error('it has not failed');
}

const refuse = async () => {
  throw new InvalidInput('the query is not valid', FORMER);
};

test('if it had begun, the command line is not blamed', async () => {
  const list = (_: string, { after }: OrderQuery) =>
    after === '7' ? refuse() : Promise.resolve({ orders: [], next: '7' });
  const { exitCode, lines } = await failureOf(list);
  expect(exitCode).toBe(1);
  expect(lines).toEqual([
    'error: sale web was deleted while its orders were read, and another sale has its id: the export is not complete',
  ]);
});

test('if --after names an order of a former sale, the command line is wrong', async () => {
  expect((await failureOf(refuse, '7')).exitCode).toBe(2);
});

test('on the terminal to which the orders go, no progress bar is drawn among them', async () => {
  const list = () => Promise.resolve({ orders: [] });
  const wanted = { saleId: 'web', committedOrders: 2, wanted: {}, format: 'ndjson' } as const;
  const drawn = async (stdoutIsTTY: boolean) => {
    const isTTY = [process.stderr.isTTY, process.stdout.isTTY];
    vi.stubEnv('TERM', 'xterm');
    const written: unknown[] = [];
    const keep = (text: unknown) => written.push(text) > 0;
    vi.spyOn(process.stderr, 'write').mockImplementation(keep);
    vi.spyOn(process.stdout, 'write').mockImplementation(((_: unknown, done: () => void) => done()) as never);
    Object.assign(process.stderr, { isTTY: true });
    Object.assign(process.stdout, { isTTY: stdoutIsTTY });
    try {
      const orders = { listOrders: list } as unknown as OrderOperations;
      for await (const _ of writeOrders(orders, wanted, process.stdout));
    } finally {
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
      Object.assign(process.stderr, { isTTY: isTTY[0] });
      Object.assign(process.stdout, { isTTY: isTTY[1] });
    }
    return written.join('');
  };
  expect(await drawn(false)).toContain('0/2 orders');
  expect(await drawn(true)).toBe('');
});

const SALE = { ...saleToJson(parseSale({ id: 'web', stock: 3 })), committedOrders: 3 };
const HEAD = /^orderId,.*,metadata\r\n/;

/** The ops port of a node whose sale `web` has pages of one order. Reading the page after `silentAfter` gets Ctrl-C, and no answer. */
function nodeInterruptedAfter(silentAfter: string | null) {
  return answeringNode((_, { pathname, searchParams }) => {
    if (!pathname.endsWith('/orders')) return SALE;
    const after = searchParams.get('after');
    if (after === silentAfter) {
      process.emit('SIGINT', 'SIGINT');
      return undefined;
    }
    const orderId = String(Number(after ?? 0) + 1);
    return { orders: [{ orderId, saleId: 'web' }], ...(orderId !== '3' && { next: orderId }) };
  });
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-export-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a signal ends it after whole lines, and it says how to continue', async () => {
  const file = join(newFolder(), 'web.csv');
  const cut = await callCli(['order', 'export', 'web', '--output', file], {
    env: await nodeInterruptedAfter('2'),
  });
  expect(cut).toMatchObject({
    exitCode: 130,
    stderr: 'Not complete: 2 orders written; to continue: --after 2\nerror: interrupted by SIGINT\n',
  });
  expect(readFileSync(file, 'utf8')).toMatch(/metadata\r\n1,web,[^\n]*\n2,web,[^\n]*\n$/);
  const rest = await callCli(['order', 'export', 'web', '--output', file, '--after', '2'], {
    env: await nodeInterruptedAfter('none'),
  });
  expect(rest).toMatchObject({ exitCode: 0 });
  expect(readFileSync(file, 'utf8')).toMatch(/metadata\r\n1,[^\n]*\n2,[^\n]*\n3,[^\n]*\n$/);
});

test.each(['csv', 'ndjson'])(
  'an export as %s is not continued with the orders of another sale',
  async (ending) => {
    const file = join(newFolder(), `orders.${ending}`);
    const env = await nodeInterruptedAfter('2');
    await callCli(['order', 'export', 'web', '--output', file], { env });
    const before = readFileSync(file, 'utf8');
    const other = await callCli(['order', 'export', 'jazz', '--output', file, '--after', '2'], { env });
    expect(other).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('has orders of sale web: export jazz to another file'),
    });
    expect(readFileSync(file, 'utf8')).toBe(before);
  },
);

test('a signal before the first order leaves nothing that is in the way', async () => {
  const file = join(newFolder(), 'web.csv');
  const again = async (env: NodeJS.ProcessEnv) =>
    callCli(['order', 'export', 'web', '--output', file], { env });
  expect(await again(await nodeInterruptedAfter(null))).toMatchObject({
    exitCode: 130,
    stderr: 'error: interrupted by SIGINT\n',
  });
  expect(await again(await nodeInterruptedAfter('none'))).toMatchObject({ exitCode: 0 });
  expect(readFileSync(file, 'utf8')).toMatch(HEAD);
});

test.each([
  ['.', 'is a folder: name a file in it'],
  ['no-such/web.csv', 'make it, or correct the path'],
])('--output %s is refused before a file is made', async (path, problem) => {
  const file = join(newFolder(), path);
  const env = await nodeInterruptedAfter('none');
  const refused = await callCli(['order', 'export', 'web', '--output', file], { env });
  expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(problem) });
  expect(existsSync(file)).toBe(path === '.');
});
