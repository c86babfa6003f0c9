/** What a worker tells of a queue when it is cut off from Postgres. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SaleRecord } from '../../../../src/engine/contract.ts';
import type { Database } from '../../../../src/postgres/database.ts';
import { BuyersQueue } from '../../../../src/queue/buyers/buyers-queue.ts';
import { EVERY_MS, MAX_AGE_MS } from '../../../../src/queue/buyers/queue-watch.ts';
import { ASKED_EVERY_MS } from '../../../../src/queue/presence.ts';
import { NEAR_RANKS } from '../../../../src/queue/queue-state.ts';

const record = {
  sale: { id: 'web', queue: { order: 'fifo', presenceSeconds: 60 } },
  state: 'open',
} as unknown as SaleRecord;
const known = { number: NEAR_RANKS + 10, quantity: 1 };
const row = {
  sale_id: 'web',
  last_number: '9000',
  head: '0',
  reach: '0',
  hopeless_from: null,
  allowed: '0',
  drawn_at: null,
};

type Answer = (statement: string) => Promise<{ rows: readonly object[] }>;
const answers: Answer = async (sql) => ({ rows: sql.includes('FROM queues q') ? [row] : [] });
const refuses: Answer = async () => {
  throw new Error('connect ECONNREFUSED');
};
const hangs: Answer = () => new Promise(() => {});

let postgres: Answer;
/** How often the bits of buyers were written, and that somebody asks. */
let marks: number;
let notes: number;
let queue: BuyersQueue;

/** The clock that is never set back is ahead by so much. */
let aheadMs: number;

beforeEach(() => {
  aheadMs = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  postgres = answers;
  marks = 0;
  notes = 0;
  const raw = (sql: string) => {
    if (sql.startsWith('INSERT INTO queue_presence')) sql.includes('unnest') ? marks++ : notes++;
    return postgres(sql);
  };
  queue = new BuyersQueue({
    db: { raw } as unknown as Database,
    guarded: (work) => work(),
    applyReturn: async () => {},
    deadlineMs: 1_000,
    fault: () => {},
  });
});

afterEach(async () => {
  await queue.stop();
  vi.restoreAllMocks();
});

test.each([
  ['refuses', refuses],
  ['does not answer', hangs],
])(
  'if Postgres %s, nothing is told that was read too long ago, and all is told when it is back',
  async (_, cut) => {
    expect(await queue.look(record, 'ann', known)).toMatchObject({ state: 'waiting', number: known.number });
    postgres = cut;
    aheadMs += MAX_AGE_MS - EVERY_MS;
    expect(queue.lookInMemory(record, known)).toMatchObject({ state: 'waiting' });
    aheadMs += EVERY_MS + 1;
    expect(queue.lookInMemory(record, known)).toBeUndefined();
    await expect(queue.look(record, 'ann', known)).rejects.toMatchObject({ code: 'unavailable' });

    // Who asked meanwhile was there.
    await vi.waitUntil(() => marks > 0, { timeout: 5_000 });
    postgres = answers;
    const tried = marks;
    await vi.waitUntil(() => queue.lookInMemory(record, known)?.state === 'waiting', { timeout: 15_000 });
    expect(marks).toBe(tried + 1);
  },
);

test('it is noted every few seconds that somebody asks, also where nobody can be absent', async () => {
  const waitingList = {
    ...record,
    sale: { id: 'web', queue: { order: 'fifo', presenceSeconds: 0 } },
  } as unknown as SaleRecord;
  await queue.look(waitingList, 'ann', known);
  expect(notes).toBe(1);
  aheadMs += ASKED_EVERY_MS;
  await vi.waitUntil(() => notes === 2, { timeout: 5_000 });
});
