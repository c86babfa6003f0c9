/** An export that breaks off because another sale has got the id. */
import { PassThrough } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { writeOrders } from '../../../src/cli/order/export.ts';
import { explain } from '../../../src/cli/terminal/explain.ts';
import { InvalidInput } from '../../../src/engine/errors.ts';
import type { OrderPage, OrderQuery } from '../../../src/operations/order-list.ts';
import type { OrderOperations } from '../../../src/operations/order-operations.ts';

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
