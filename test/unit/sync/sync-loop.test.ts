/** The loop of sync: how much it reads, when it yields to buyers, and when it tries again. Its parts are replaced. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LogEntry, LogPosition, LogRead } from '../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../src/engine/errors.ts';
import type { Batch } from '../../../src/sync/apply/batch.ts';
import { SaleLog } from '../../../src/sync/apply/sale-log.ts';
import { Sync, type SyncOptions } from '../../../src/sync/sync.ts';
import { elapse, freezeTime, settledTurns } from '../../support/engine/frozen-time.ts';

const world = vi.hoisted(() => ({
  calls: [] as string[],
  batches: [] as unknown[],
  logs: new Map<string, unknown>(),
  fails: false,
  asked: [] as number[],
  begun: () => {},
}));
const { calls, batches, logs, asked } = world;

vi.mock('../../../src/sync/reconciler/reconciler.ts', () => ({
  Reconciler: class {
    ready = Promise.resolve();
    dueInMs = 1_000;
    hintsLost = () => world.calls.push('hints lost');
    abandon = async () => world.calls.push('scan abandoned');
    reportBacklog = async () => world.calls.push('backlog');
    stop = async () => world.calls.push('stop reconciler');
  },
}));
vi.mock('../../../src/sync/applier.ts', () => ({
  Applier: class {
    throwFailure() {
      if (world.fails) throw new Error('away');
    }
    begin = async (batch: { slices: { to: LogPosition }[] }) => {
      world.batches.push(batch);
      world.begun();
      for (const { to } of batch.slices) (world.logs.get(to.saleId) as SaleLog).reading(to);
    };
    settled = async () => {};
    abandon = async () => world.calls.push('batches abandoned');
  },
}));
vi.mock('../../../src/sync/rebalancer.ts', () => ({
  Rebalancer: class {
    constructor(_: unknown, __: unknown, everyMs: number) {
      world.calls.push(`every ${everyMs}`);
    }
    start = () => world.calls.push('start rebalancer');
    stop = async () => world.calls.push('stop rebalancer');
  },
}));
vi.mock('../../../src/sync/sale-shares.ts', () => ({
  SaleShares: class {
    advance = async () => {};
    hear = (news: { from: string }) => world.calls.push(`news of ${news.from}`);
  },
}));
vi.mock('../../../src/sync/held/held-sales.ts', () => ({
  HeldSales: class {
    get #logs() {
      return [...world.logs.values()] as SaleLog[];
    }
    get haveGrown() {
      return this.#logs.some((log) => log.hasGrown);
    }
    takeOver = async () => {};
    mayTake = (saleId: string) => saleId !== 'foreign';
    held = (saleId: string) => world.logs.get(saleId);
    takeGrown(most: number) {
      world.asked.push(most);
      return this.#logs.flatMap((log) => log.takeGrown(most));
    }
    isolate = (_: string, work: () => Promise<unknown>) => work();
    handleBreak = async (_: unknown, problem: string) => world.calls.push(`break: ${problem}`);
    release = async () => world.calls.push('release');
    stop = async () => world.calls.push('stop sales');
  },
}));

type Listener = Required<Parameters<SyncOptions['backend']['subscribe']>[0]>;

let listener: Listener;
let entries: Map<string, LogEntry[]>;
let read: { logs: number; most: number }[];
let answered: () => void;
let crashes: number[];
let sync: Sync;

const nameOf = ({ saleId, segment }: LogPosition) => `${saleId}${segment}`;

beforeEach(() => {
  freezeTime();
  for (const list of [calls, batches, asked]) list.length = 0;
  logs.clear();
  world.fails = false;
  world.begun = () => {};
  [entries, read, answered, crashes] = [new Map(), [], () => {}, []];
});

afterEach(async () => {
  world.fails = false;
  const stopped = sync.stop();
  await elapse(2_000);
  await stopped;
  vi.useRealTimers();
});

function readLog(positions: readonly LogPosition[], most: number): LogRead[] {
  read.push({ logs: positions.length, most });
  const reads = positions.map((position) => {
    const all = entries.get(nameOf(position)) ?? [];
    const last = all.at(-1);
    const head = { seq: last?.seq ?? 0, tail: last?.tail ?? '', orders: last?.ordersSoFar ?? 0 };
    const next = all.filter(({ seq }) => seq > position.seq).slice(0, most);
    return { position, head: { ...head, committed: 0, state: 'open' as const }, entries: next };
  });
  answered();
  return reads;
}

async function start(options: Partial<SyncOptions> = {}): Promise<void> {
  const backend = {
    subscribe: async (one: Listener) => {
      listener = one;
      return async () => void calls.push('unsubscribe');
    },
    log: { readLog: async (...args: [LogPosition[], number]) => readLog(...args) },
  };
  const events = {
    crashed: ({ retryMs }: { retryMs: number }) => crashes.push(retryMs),
    foreign: ({ error }: { error: unknown }) => calls.push(`foreign ${(error as Error).message}`),
  };
  sync = new Sync({ backend, events, batchRows: 1_000, ...options } as unknown as SyncOptions);
  await sync.start();
  await settledTurns();
}

function hold(saleId: string, segments = 1): SaleLog {
  const cursor = { saleId, generation: 1, seq: 0, tail: '', orders: 0, units: 0 };
  const log = new SaleLog(
    saleId,
    Array.from({ length: segments }, (_, segment) => ({ ...cursor, segment })),
  );
  logs.set(saleId, log);
  return log;
}

/** The log of a segment has an entry more, with so many orders. */
function sell(name: string, orders: number): void {
  const log = entries.get(name) ?? [];
  const last = log.at(-1);
  log.push({
    seq: (last?.seq ?? 0) + 1,
    previous: last?.tail ?? '',
    tail: `${log.length + 1}`,
    ordersSoFar: (last?.ordersSoFar ?? 0) + orders,
    orders: Array(orders).fill({ orderId: '1', buyerId: 'buyer', quantity: 1, key: '' }),
  });
  entries.set(name, log);
}

async function hint(saleId: string, segments: number[] = [0], awaited = false): Promise<void> {
  listener.hint({ saleId, segments, awaited });
  await settledTurns();
}

const sizes = () => batches.map((batch) => (batch as Batch).orders);

test('a hint is read at once, and the read ends when the log does', async () => {
  await start();
  hold('a');
  sell('a0', 3);
  read.length = 0;
  await hint('a');
  expect(sizes()).toEqual([3]);
  expect(read.filter((one) => one.logs > 0)).toHaveLength(1);
});

test('a hint for a sale of another sync does not wake the loop', async () => {
  await start();
  read.length = 0;
  await hint('foreign');
  expect([read, batches, crashes]).toEqual([[], [], []]);
  await hint('unknown');
  expect(read).toHaveLength(1);
});

test('reads fill a batch: by a first guess of 16 orders in an entry, and then by what was read', async () => {
  await start();
  hold('a', 2);
  sell('a0', 4);
  sell('a1', 4);
  asked.length = read.length = 0;
  await hint('a', [0, 1]);
  expect([asked[0], read[0]]).toEqual([63, { logs: 2, most: 32 }]);
  asked.length = 0;
  sell('a0', 1);
  await hint('a');
  // (16 × 3 + 4) / 4 = 13 orders in an entry.
  expect(asked[0]).toBe(77);
});

test('the guess does not fall below one order in an entry, and no read is of more than a thousand', async () => {
  await start({ batchRows: 100_000 });
  hold('a');
  sell('a0', 1);
  asked.length = read.length = 0;
  await hint('a');
  expect([asked[0], read[0]]).toEqual([6_250, { logs: 1, most: 1_000 }]);
});

test.each([
  [499, false],
  [500, true],
])('%i orders of a thousand in a batch: sync is behind: %s', async (orders, isBehind) => {
  await start();
  hold('a');
  sell('a0', orders);
  const seen: boolean[] = [];
  world.begun = () => void seen.push(sync.isBehind);
  await hint('a');
  expect(seen).toEqual([isBehind]);
  expect(sync.isBehind).toBe(false);
});

test('while the load is high sync yields for the given time, then catches up', async () => {
  await start({ backpressure: { isLoadHigh: () => true, maxMs: 200 } });
  hold('a');
  sell('a0', 1);
  await hint('a');
  for (const _ of [1, 2, 3]) await elapse(50);
  expect(sizes()).toEqual([]);
  await elapse(50);
  expect(sizes()).toEqual([1]);
});

test('a buyer who waits ends the yielding', async () => {
  await start({ backpressure: { isLoadHigh: () => true, maxMs: 200 } });
  hold('a');
  sell('a0', 1);
  await hint('a');
  expect(sizes()).toEqual([]);
  await hint('a', [0], true);
  expect(sizes()).toEqual([1]);
});

test('after a failure sync tries again, at first after 0.1 s and later each second', async () => {
  await start();
  world.fails = true;
  await hint('wakes');
  for (const ms of [100, 200, 400, 800, 1_000, 1_000]) {
    const before = crashes.length;
    await elapse(ms - 1);
    expect(crashes).toHaveLength(before);
    await elapse(1);
  }
  expect(crashes).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000]);
  expect(calls.slice(2, 6)).toEqual(['batches abandoned', 'scan abandoned', 'backlog', 'release']);
  world.fails = false;
  await elapse(1_000);
  world.fails = true;
  await hint('wakes');
  expect(crashes.at(-1)).toBe(100);
});

test('a log that does not continue at its cursor is broken', async () => {
  await start();
  hold('a');
  sell('a0', 1);
  sell('a0', 1);
  entries.get('a0')!.shift();
  calls.length = 0;
  await hint('a');
  expect(calls[0]).toBe('break: entry 1 is missing; the next is 2');
});

test('a read that a scan has overtaken is repeated, and is no loss', async () => {
  await start();
  const log = hold('a');
  sell('a0', 1);
  answered = () => {
    answered = () => {};
    sell('a0', 1);
    const [last] = entries.get('a0')!.slice(-1);
    const head = { seq: 2, tail: last!.tail, orders: 2, committed: 0, state: 'open' } as const;
    log.saw(0, { position: log.positions[0]!, head, entries: [] });
  };
  calls.length = 0;
  await hint('a');
  expect(calls).toEqual([]);
  expect(sizes()).toEqual([2]);
});

test('a sale that was released while it was read is not applied', async () => {
  await start();
  hold('a');
  sell('a0', 1);
  answered = () => logs.clear();
  await hint('a');
  expect([batches, crashes]).toEqual([[], []]);
});

test('messages reach the parts, and a stop ends them all', async () => {
  await start({ rebalanceEveryMs: 70 });
  listener.resubscribed();
  listener.syncNews({ from: 'other', sales: 1 });
  listener.foreign(new BackendCorrupt('garbage'));
  expect(calls).toEqual([
    ...['every 70', 'start rebalancer'],
    ...['hints lost', 'news of other', 'foreign garbage'],
  ]);
  calls.length = 0;
  await sync.stop();
  expect(calls).toContain('stop rebalancer');
  expect(calls.slice(-3)).toEqual(['unsubscribe', 'stop reconciler', 'stop sales']);
});

test('without a distance between rounds nothing is rebalanced, and sync is ready with its first sweep', async () => {
  await start();
  expect(calls[0]).toBe('every 0');
  await sync.ready;
});
