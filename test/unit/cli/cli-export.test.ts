/** An export that breaks off because another sale has got the id. */
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
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
