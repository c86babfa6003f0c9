/** Which sales a sync works on, when it gives them up, and when it tries them again. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LogHead, LogPosition, Watermark } from '../../../../src/engine/contract.ts';
import { BackendCorrupt, StaleGeneration } from '../../../../src/engine/errors.ts';
import { LocalLocks } from '../../../../src/postgres/sale-locks.ts';
import type { WatermarkTeller } from '../../../../src/sync/apply/watermark-teller.ts';
import { HeldSales } from '../../../../src/sync/held/held-sales.ts';
import { Hints } from '../../../../src/sync/held/hints.ts';
import type { SyncStores } from '../../../../src/sync/held/sync-stores.ts';
import { freezeTime } from '../../../support/engine/frozen-time.ts';

class SeenLocks extends LocalLocks {
  readonly unlocked: string[] = [];
  fails = false;

  override async unlock(saleId: string): Promise<void> {
    this.unlocked.push(saleId);
    if (this.fails) throw new Error('the connection has gone');
    await super.unlock(saleId);
  }
}

let locks: SeenLocks;
let hints: Hints;
let sales: HeldSales;
/** What Postgres and the backend hold, for all sales the same. */
let cursors: { segment: number; position: number; tail: string }[];
let heads: (Pick<LogHead, 'seq' | 'tail'> | undefined)[];
let rejections: { order_id: string; because: string }[];
let version: { generation: number } | undefined;
let failing: (saleId: string) => Error | undefined;
let told: Watermark[];
let events: [kind: string, of: unknown][];

const GENERATION = 2;

beforeEach(() => {
  freezeTime();
  [locks, hints, told, events] = [new SeenLocks(), new Hints(), [], []];
  cursors = [0, 1].map((segment) => ({ segment, position: 0, tail: '' }));
  [heads, rejections, version, failing] = [[], [], { generation: GENERATION }, () => undefined];
  const seen = (kind: string) => (of: unknown) => void events.push([kind, of]);
  const stores = {
    locks,
    db: {
      raw: async (sql: string, [saleId]: string[]) => {
        if (sql.includes('stock_returns r')) return { rows: [] };
        if (sql.includes('stock_returns')) return { rows: rejections };
        if (!sql.includes('segment_cursors')) return { rows: [] };
        const error = failing(saleId!);
        if (error) throw error;
        return { rows: cursors.map((one) => ({ ...one, generation: GENERATION, orders: 0, units: 0 })) };
      },
    },
    backend: {
      sales: { versions: async () => [version] },
      log: {
        readLog: async (positions: readonly LogPosition[]) =>
          positions.map((position) => ({ position, head: heads[position.segment], entries: [] })),
      },
    },
    events: { saleFailed: seen('saleFailed'), logBroken: seen('logBroken') },
  };
  const teller = { tell: async (marks: readonly Watermark[]) => void told.push(...marks) };
  sales = new HeldSales(stores as unknown as SyncStores, teller as unknown as WatermarkTeller, hints);
});

afterEach(() => void vi.useRealTimers());

const held = () => [...sales.logs].map(({ saleId }) => saleId);
const hinted = () => [...hints.takeAll().keys()];

/** So that the first was read longest ago. */
async function take(...saleIds: string[]): Promise<void> {
  for (const saleId of saleIds) await sales.takeOver([saleId]);
}

/** After how many milliseconds the sale is tried again. */
async function triedAgainAfter(saleId: string, ms: number): Promise<void> {
  await locks.close();
  vi.advanceTimersByTime(ms - 1);
  expect(sales.mayTake(saleId)).toBe(false);
  expect(await sales.logOf(saleId)).toBeUndefined();
  vi.advanceTimersByTime(1);
  expect(sales.mayTake(saleId)).toBe(true);
  expect((await sales.logOf(saleId))?.saleId).toBe(saleId);
}

describe('a sale that is taken over', () => {
  test('is held under its lock, and all its logs count as grown', async () => {
    expect([sales.isEmpty, sales.count, sales.haveGrown]).toEqual([true, 0, false]);
    const log = await sales.logOf('sale');
    expect([sales.isEmpty, sales.count, sales.haveGrown]).toEqual([false, 1, true]);
    expect(held()).toEqual(['sale']);
    expect(sales.held('sale')).toBe(log);
    expect(sales.mayTake('sale')).toBe(true);
    expect(log).toMatchObject({ saleId: 'sale', generation: GENERATION });
    expect(log!.takeGrown(9).map(({ segment }) => segment)).toEqual([0, 1]);
    expect(sales.haveGrown).toBe(false);
    expect(await locks.tryLock('sale')).toBe(false);
  });

  test('is not taken over again', async () => {
    const log = await sales.logOf('sale');
    const tried = vi.spyOn(locks, 'tryLocks');
    expect(await sales.logOf('sale')).toBe(log);
    expect(tried).not.toHaveBeenCalled();
  });

  test('is announced with its rejections as far as its logs hold what is applied', async () => {
    cursors = [0, 1, 2, 3].map((segment) => ({ segment, position: segment, tail: `tail-${segment}` }));
    heads = [undefined, { seq: 1, tail: 'tail-1' }, { seq: 1, tail: 'tail-1' }, { seq: 3, tail: 'tail-3' }];
    rejections = [{ order_id: '7', because: 'stock' }];
    await take('sale');
    const rejected = [{ orderId: '7', reason: 'stock' }];
    expect(told).toMatchObject([
      { saleId: 'sale', segment: 1, generation: GENERATION, seq: 1, tails: ['tail-1'], rejected },
      { saleId: 'sale', segment: 3, generation: GENERATION, seq: 3, tails: ['tail-3'], rejected },
    ]);
  });

  test('takes over what was seen in its logs before, unless another sync had it meanwhile', async () => {
    const seen = { seq: 3, tail: 'tail-3', orders: 3, committed: 0, state: 'open' } as const;
    const see = (seq: number) => {
      const log = sales.held('sale')!;
      log.saw(1, { position: log.positions[1]!, head: { ...seen, seq }, entries: [] });
    };
    await take('sale');
    see(3);
    await sales.release();
    await take('sale');
    expect(sales.held('sale')!.newest[1]).toMatchObject({ seq: 3 });
    await sales.release();
    await locks.tryLock('sale');
    await take('sale');
    await locks.close();
    vi.advanceTimersByTime(500);
    await take('sale');
    expect(sales.held('sale')!.newest[1]).toMatchObject({ seq: 0 });
  });
});

describe('a sale is left alone', () => {
  test('for half a second if another sync works on it', async () => {
    await locks.tryLock('sale');
    await sales.takeOver(['sale', 'other']);
    expect(held()).toEqual(['other']);
    await triedAgainAfter('sale', 500);
  });

  test('for a second after it was handed over', async () => {
    await take('sale');
    await sales.handOver(1);
    await triedAgainAfter('sale', 1_000);
  });

  test('for two seconds after it failed', async () => {
    const error = new BackendCorrupt('no number');
    sales.setAside('sale', error);
    expect(events).toEqual([['saleFailed', { saleId: 'sale', error }]]);
    await triedAgainAfter('sale', 2_000);
  });

  test('not at all if another sync has released it for this one', async () => {
    await locks.tryLock('sale');
    await take('sale');
    await locks.close();
    await sales.takeReleased(['sale']);
    expect(held()).toEqual(['sale']);
  });

  test('when it is finished, until its state differs', async () => {
    await take('sale');
    await sales.finish('sale');
    expect([sales.isFinished('sale'), held()]).toEqual([true, []]);
    await take('sale');
    expect(held()).toEqual([]);
    sales.unfinish('sale');
    expect(sales.isFinished('sale')).toBe(false);
    await take('sale');
    expect(held()).toEqual(['sale']);
  });
});

describe('handed over are', () => {
  const SIX = ['a', 'b', 'c', 'd', 'e', 'f'];

  test.each([
    [0, []],
    [1, ['a']],
    [2, ['d', 'a']],
    [3, ['e', 'c', 'a']],
    [4, ['e', 'd', 'b', 'a']],
    [9, ['f', 'e', 'd', 'c', 'b', 'a']],
  ])('of six sales, %i at even distances, the busiest first', async (count, given) => {
    await take(...SIX);
    expect(await sales.handOver(count)).toEqual(given);
    expect(locks.unlocked).toEqual(given);
    expect(held()).toEqual(SIX.filter((saleId) => !given.includes(saleId)));
  });

  test('those that were just read last: they are busy', async () => {
    await take('a', 'b', 'c');
    sales.held('b')!.takeGrown(9);
    expect(sales.takeGrown(2)).toMatchObject([{ saleId: 'a' }, { saleId: 'a' }]);
    expect(held()).toEqual(['b', 'c', 'a']);
    expect(await sales.handOver(1)).toEqual(['b']);
  });

  test('those that had nothing to read first', async () => {
    await take('a', 'b', 'c');
    sales.held('b')!.takeGrown(9);
    sales.takeGrown(9);
    expect(held()).toEqual(['b', 'a', 'c']);
  });
});

test('sales take turns: at most the given number of logs is read, and the other logs of a sale are read next', async () => {
  await take('a', 'b');
  const next = (most: number) => sales.takeGrown(most).map(({ saleId, segment }) => `${saleId}${segment}`);
  expect(next(3)).toEqual(['a0', 'a1', 'b0']);
  expect(next(0)).toEqual([]);
  expect(next(3)).toEqual(['b1']);
  expect(next(3)).toEqual([]);
});

describe('released sales', () => {
  test('are unlocked and hinted, so that they are soon tried again', async () => {
    await take('a', 'b', 'c');
    await sales.release(['b', 'unknown']);
    expect([held(), locks.unlocked, hinted()]).toEqual([['a', 'c'], ['b'], ['b']]);
    await sales.release();
    expect([held(), locks.unlocked, hinted()]).toEqual([[], ['b', 'a', 'c'], ['a', 'c']]);
    await take('b');
    expect(held()).toEqual(['b']);
  });

  test('are so even if the connection of the locks has gone', async () => {
    await take('a', 'b');
    locks.fails = true;
    await sales.release();
    expect([held(), hinted()]).toEqual([[], ['a', 'b']]);
  });

  test('are all when sync stops', async () => {
    await take('a', 'b');
    await sales.stop();
    expect([held(), locks.unlocked]).toEqual([[], ['a', 'b']]);
  });
});

describe('work on one sale', () => {
  const replyError = Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' });

  test.each([new BackendCorrupt('no number'), new StaleGeneration('sale', 1), replyError])(
    'that finds invalid data sets the sale aside: %s',
    async (error) => {
      await take('sale', 'other');
      expect(await sales.isolate('sale', () => Promise.reject(error))).toBeUndefined();
      expect(held()).toEqual(['other']);
      expect(events).toEqual([['saleFailed', { saleId: 'sale', error }]]);
      await triedAgainAfter('sale', 2_000);
    },
  );

  test('that fails for another reason fails for all', async () => {
    await take('sale');
    const error = new Error('the server has gone');
    await expect(sales.isolate('sale', () => Promise.reject(error))).rejects.toThrow(error);
    expect([held(), events]).toEqual([['sale'], []]);
    expect(await sales.isolate('sale', async () => 'done')).toBe('done');
  });

  test('that can not begin leaves no lock behind', async () => {
    failing = (saleId) => (saleId === 'b' ? new Error('the server has gone') : undefined);
    await expect(sales.takeOver(['a', 'b', 'c'])).rejects.toThrow('the server has gone');
    expect(held()).toEqual(['a']);
    expect(locks.unlocked).toEqual(['b', 'c']);
  });
});

describe('a log that does not continue at its cursor', () => {
  const at = (seq: number): LogPosition => ({
    saleId: 'sale',
    segment: 1,
    generation: GENERATION,
    seq,
    tail: '',
  });
  const read = (state?: LogHead['state'], seq = 0) => ({
    position: at(seq),
    head: state && { seq: 0, tail: '', orders: 0, committed: 0, state },
    entries: [],
  });
  const broken: (typeof events)[number] = ['logBroken', { saleId: 'sale', segment: 1, problem: 'why' }];

  beforeEach(() => take('sale'));

  test.each<[string, LogHead['state'] | undefined, { generation: number } | undefined, boolean]>([
    ['has lost writes', 'open', { generation: 1 }, true],
    ['belongs to a rebuild that was not finished', 'frozen', { generation: GENERATION }, false],
    ['is of a generation that was not published', undefined, { generation: 1 }, false],
    ['is missing in the generation that was', undefined, { generation: GENERATION }, true],
    ['is missing with the whole sale', undefined, undefined, true],
  ])('is rebuilt, and reported if it is a loss: it %s', async (_, state, record, isLoss) => {
    version = record;
    await sales.handleBreak(read(state), 'why');
    expect(held()).toEqual([]);
    expect(sales.count).toBe(1);
    expect(await sales.logOf('sale')).toBeUndefined();
    expect(events).toEqual(isLoss ? [broken] : []);
    await sales.rebuilt();
    expect(sales.count).toBe(0);
  });

  test('is no loss if another sync has moved the cursor: the sale is released', async () => {
    await sales.handleBreak(read('open', 1), 'why');
    expect([held(), sales.count, events, hinted()]).toEqual([[], 0, [], ['sale']]);
  });

  test('is no loss if its segment was loaded and published since: the sale is released', async () => {
    heads = [undefined, { seq: 0, tail: '' }];
    await sales.handleBreak(read(), 'why');
    expect([held(), sales.count, events, hinted()]).toEqual([[], 0, [], ['sale']]);
  });

  test('is left to an operator if it can not be read: it may hold orders', async () => {
    const failed = sales.handleBreak({ ...read('open'), fault: 'no number' }, 'why');
    await expect(failed).rejects.toThrow(BackendCorrupt);
    expect([held(), events]).toEqual([['sale'], []]);
  });

  test('of a sale that this sync does not hold is not rebuilt', async () => {
    await sales.release();
    sales.rebuild('sale', 'why');
    expect(sales.count).toBe(0);
  });
});
