import { expect, onTestFinished, test, vi } from 'vitest';
import type { SaleRecord } from '../../../../src/engine/contract.ts';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
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

test('a buyer that gets a place late waits only for the rest of its time to hear how the place stands', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const place = { sale_id: 'web', number: '7', buyer_id: 'ann', quantity: 1, state: 'waiting' };
  const given = () => new Promise((done) => setTimeout(() => done({ rows: [place] }), 900));
  const never = new Promise(() => {});
  const raw = (statement: string) => (statement.includes('stockade_give_places') ? given() : never);
  const queue = new BuyersQueue({
    db: { raw } as unknown as Database,
    guarded: (work) => work(),
    applyReturn: async () => {},
    deadlineMs: 1_000,
    fault: () => {},
  });
  onTestFinished(() => queue.stop());
  const ends: unknown[] = [];
  queue
    .join(record, { buyerId: 'ann', quantity: 1 }, monotonicMs() + 1_000)
    .catch((error) => ends.push(error.code));
  await vi.advanceTimersByTimeAsync(950);
  expect(ends).toEqual([]);
  await vi.advanceTimersByTimeAsync(100);
  expect(ends).toEqual(['timed_out']);
});
