import { expect, test } from 'vitest';
import type { SaleRecord } from '../../../../src/engine/contract.ts';
import type { Database } from '../../../../src/postgres/database.ts';
import { BuyersQueue } from '../../../../src/queue/buyers/buyers-queue.ts';

const record = {
  sale: { id: 'web', queue: { order: 'fifo', presenceSeconds: 0 } },
  state: 'open',
} as unknown as SaleRecord;

test('a look after the stop is refused, and reads nothing from then on', async () => {
  const reads: string[] = [];
  const queue = new BuyersQueue({
    db: { raw: async (statement: string) => void reads.push(statement) } as unknown as Database,
    guarded: (work) => work(),
    applyReturn: async () => {},
    deadlineMs: 1_000,
    fault: () => {},
  });
  await queue.stop();
  const look = queue.look(record, 'ann', { number: 1, quantity: 1 });
  await expect(look).rejects.toMatchObject({ code: 'closed' });
  expect(queue.lookInMemory(record, { number: 1, quantity: 1 })).toBeUndefined();
  expect(reads).toEqual([]);
});
