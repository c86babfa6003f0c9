/** What the reconciler does with the findings of a scan. The scan and the work on Postgres are replaced. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { StaleGeneration } from '../../../../src/engine/errors.ts';
import type { WatermarkTeller } from '../../../../src/sync/apply/watermark-teller.ts';
import type { HeldSales } from '../../../../src/sync/held/held-sales.ts';
import type { SyncStores } from '../../../../src/sync/held/sync-stores.ts';
import { Reconciler } from '../../../../src/sync/reconciler/reconciler.ts';
import { freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';
import { headAt, type ScannedSale, ScannedShop } from '../../../support/shop/scanned-shop.ts';

/** What the replaced parts find, and in which order all parts are called. */
const world = vi.hoisted(() => {
  const calls: string[] = [];
  const call = (name: string) => void calls.push(name);
  const nothing = {
    atWork: [] as unknown[],
    closed: [] as unknown[],
    drained: [] as string[],
    returning: [] as string[],
    leaving: [] as string[],
    lost: [] as unknown[],
    overdue: [] as string[],
    wanted: undefined as number | undefined,
    row: undefined as unknown,
    scanning: Promise.resolve() as Promise<unknown>,
    following: undefined as Error | undefined,
    open: { returns: true, movements: true, erasures: true, deletions: true },
    drafting: false,
  };
  return { calls, call, nothing, found: { ...nothing } };
});
const { calls, call, found } = world;

vi.mock('../../../../src/sync/reconciler/log-scanner.ts', async (original) => ({
  ...(await original<object>()),
  LogScanner: class {
    async atWork() {
      world.call('scan');
      await world.found.scanning;
      return world.found.atWork;
    }
    closed = async () => ({ needingWork: world.found.closed, drained: world.found.drained });
    hintsLost = () => world.call('hints lost');
  },
}));
vi.mock('../../../../src/sync/reconciler/supply-check.ts', () => ({
  SupplyCheck: class {
    async next(drained: string[]) {
      if (drained.length > 0) world.call(`check ${drained}`);
      return world.found.lost;
    }
  },
}));
vi.mock('../../../../src/sync/reconciler/resizes.ts', () => ({
  Resizes: class {
    advance = async () => world.call('resizes');
    get areDrafting() {
      return world.found.drafting;
    }
    stop = async () => world.call('stop resizes');
  },
}));
vi.mock('../../../../src/sales/open-work.ts', () => ({ readOpenWork: async () => world.found.open }));
vi.mock('../../../../src/sync/reconciler/erasures.ts', () => ({
  Erasures: class {
    advance = async () => world.call('erasures');
  },
}));
vi.mock('../../../../src/deletion/stray-copies.ts', () => ({
  StrayCopies: class {
    removeNext = async () => world.call('copies');
  },
}));
vi.mock('../../../../src/orders/returns.ts', () => ({
  async applySomeReturns(...[, , saleId]: string[]) {
    world.call(`return ${saleId}`);
    return world.found.leaving.includes(saleId!);
  },
  salesWithReturns: async () => world.found.returning,
}));
vi.mock('../../../../src/sales/ledger.ts', () => ({ readWantedSegments: async () => world.found.wanted }));
vi.mock('../../../../src/sales/follow-state.ts', () => ({
  async followState(...[, , saleId]: string[]) {
    world.call(`follow ${saleId}`);
    if (world.found.following) throw world.found.following;
  },
}));
vi.mock('../../../../src/sales/movements.ts', () => ({
  readOverdueSales: async () => world.found.overdue,
  async finishMovements(...[, , saleId]: string[]) {
    world.call(`overdue ${saleId}`);
    if (world.found.following) throw world.found.following;
  },
}));
vi.mock('../../../../src/sales/sale-rows.ts', () => ({ readSale: async () => world.found.row }));

let shop: ScannedShop;
let reconciler: Reconciler;
let backlogs: number[];
let endRebuilds: () => void;
let isAway: boolean;

beforeEach(() => {
  freezeTime();
  calls.length = 0;
  Object.assign(found, world.nothing);
  [shop, backlogs, isAway] = [new ScannedShop(), [], false];
  const { backend } = shop.stores;
  const rebuilt = new Promise<void>((resolve) => (endRebuilds = resolve));
  const sales = {
    get logs() {
      return shop.held.logs;
    },
    get isEmpty() {
      return [...shop.held.logs].length === 0;
    },
    held: shop.held.held,
    logOf: async (id: string) => shop.held.held(id),
    release: async (ids: string[]) => call(`release ${ids}`),
    takeOver: async (ids: string[]) => ids.length > 0 && call(`take over ${ids}`),
    isolate: (_: string, work: () => Promise<unknown>) => work(),
    rebuild: (id: string, why: string) => call(`rebuild ${id}: ${why}`),
    handleBreak: async ({ position }: { position: { segment: number } }) => call(`break ${position.segment}`),
    announce: async (id: string) => call(`announce ${id}`),
    finish: async (id: string) => call(`finish ${id}`),
    unfinish: (id: string) => call(`unfinish ${id}`),
    rebuilt: () => rebuilt,
  };
  const readLog: typeof backend.log.readLog = (...args) =>
    isAway ? Promise.reject(new Error('away')) : backend.log.readLog(...args);
  const events = { backlog: ({ orders }: { orders: number }) => backlogs.push(orders) };
  reconciler = new Reconciler(
    { db: {}, backend: { ...backend, log: { readLog } }, events } as unknown as SyncStores,
    { tellAgain: async () => call('tell again') } as unknown as WatermarkTeller,
    sales as unknown as HeldSales,
    () => call('scanned'),
    () => {},
  );
});

afterEach(() => void vi.useRealTimers());

const settled = async () => call('settled');
const SCAN = ['tell again', 'scan', 'copies', 'scanned'];
const REST = ['resizes', 'erasures'];

/** A whole sweep. @returns the calls of the repairs */
async function sweep(): Promise<string[]> {
  await reconciler.advance(settled);
  await settledTurns();
  if (reconciler.dueInMs === 0) await reconciler.advance(settled);
  expect(calls.splice(0, SCAN.length)).toEqual(SCAN);
  expect(calls.slice(-2)).toEqual(REST);
  return calls.slice(0, -2);
}

const seen = ({ row, version }: ScannedSale) => ({ sale: row, version });

describe('a sweep', () => {
  test('at the start is awaited, because orders wait for it anyway', async () => {
    await reconciler.advance(settled);
    expect(calls).toEqual([...SCAN, ...REST]);
    expect(reconciler.dueInMs).toBe(1_000);
  });

  test('scans beside the loop, and is due again a second after the repairs', async () => {
    shop.add('sale', { held: true });
    expect(reconciler.dueInMs).toBeLessThanOrEqual(0);
    let end = (_: unknown) => {};
    found.scanning = new Promise((resolve) => (end = resolve));
    await reconciler.advance(settled);
    await reconciler.advance(settled);
    expect([calls, reconciler.dueInMs]).toEqual([['tell again', 'scan'], 1_000]);
    end(undefined);
    await settledTurns();
    expect([calls, reconciler.dueInMs]).toEqual([SCAN, 0]);
    await reconciler.advance(settled);
    expect([calls, reconciler.dueInMs]).toEqual([[...SCAN, ...REST], 1_000]);
    vi.advanceTimersByTime(400);
    expect(reconciler.dueInMs).toBeCloseTo(600);
    await reconciler.advance(settled);
    expect(calls.filter((name) => name === 'scan')).toHaveLength(2);
  });

  test('that fails is the failure of the loop, until it is abandoned', async () => {
    const failure = new Error('the server has gone');
    found.scanning = Promise.reject(failure);
    for (const _ of [1, 2]) await expect(reconciler.advance(settled)).rejects.toThrow(failure);
    expect(calls).toEqual(['tell again', 'scan', 'scanned']);
    await reconciler.abandon();
    found.scanning = Promise.resolve();
    await reconciler.advance(settled);
    expect(calls.slice(3)).toEqual([...SCAN, ...REST]);
  });

  test('makes sync ready when its rebuilds have ended', async () => {
    let isReady = false;
    void reconciler.ready.then(() => {
      isReady = true;
    });
    await reconciler.advance(settled);
    await settledTurns();
    expect(isReady).toBe(false);
    endRebuilds();
    await settledTurns();
    expect(isReady).toBe(true);
  });

  test('has the check compare drained sales too', async () => {
    found.drained = ['old'];
    await reconciler.advance(settled);
    expect(calls).toContain('check old');
  });

  test('tells the backlog', async () => {
    const logs = ['one', 'two'].map((id) => shop.add(id, { held: true }).log!);
    for (const log of logs) log.saw(0, { position: log.positions[0]!, head: headAt(3), entries: [] });
    await sweep();
    expect(backlogs).toEqual([6]);
  });

  describe('asks for rarely needed work only if some may wait:', () => {
    const NONE = { returns: false, movements: false, erasures: false, deletions: false };
    const calledFor = async (open: Partial<typeof NONE>) => {
      Object.assign(found, { open: { ...NONE, ...open }, returning: ['a'], overdue: ['b'] });
      await reconciler.advance(settled);
      return calls.filter((name) => !['tell again', 'scan', 'scanned', 'settled'].includes(name));
    };

    test.each([
      ['nothing', {}, []],
      ['returns', { returns: true }, ['return a']],
      ['changes of operators', { movements: true }, ['resizes', 'overdue b']],
      ['erasures', { erasures: true }, ['erasures']],
      ['deleted sales', { deletions: true }, ['copies']],
    ])('%s', async (_, open, expected) => {
      expect(await calledFor(open)).toEqual(expected);
    });

    test('drafts of resizes, also after the last request', async () => {
      found.drafting = true;
      expect(await calledFor({})).toEqual(['resizes']);
    });
  });

  test('applies returns that are left', async () => {
    found.returning = ['a', 'b'];
    expect(await sweep()).toEqual(['settled', 'return a', 'return b']);
    expect(reconciler.dueInMs).toBe(1_000);
  });

  test('applies one page of a sale, and comes again at once if others are left', async () => {
    found.returning = ['a', 'b'];
    found.leaving = ['a'];
    await reconciler.advance(settled);
    expect(calls).toEqual([...SCAN, 'settled', 'return a', 'return b', ...REST]);
    expect(reconciler.dueInMs).toBe(0);
  });

  test('rebuilds a sale that has lost units, unless it was rebuilt meanwhile', async () => {
    shop.add('a', { held: true, generation: 2 });
    found.lost = [1, 2].map((generation) => ({ saleId: 'a', generation, problem: `lost in ${generation}` }));
    found.lost.push({ saleId: 'foreign', generation: 1, problem: 'lost' });
    expect(await sweep()).toEqual([
      ...['settled', 'unfinish a', 'unfinish a'],
      ...['rebuild a: lost in 2', 'unfinish foreign'],
    ]);
  });

  test('finishes what operators began, and leaves sales that are being rebuilt to a later one', async () => {
    found.overdue = ['a', 'b'];
    found.following = new StaleGeneration('a', 1);
    await reconciler.advance(settled);
    expect(calls.slice(-2)).toEqual(['overdue a', 'overdue b']);
    found.following = new Error('the server has gone');
    vi.advanceTimersByTime(1_000);
    await expect(reconciler.advance(settled)).rejects.toThrow('the server has gone');
    // The findings are repaired again.
    expect(reconciler.dueInMs).toBe(0);
  });

  test('looks at every sale after hints may have been lost', () => {
    reconciler.hintsLost();
    expect(calls).toEqual(['hints lost']);
  });
});

describe('a sale at work', () => {
  let sale: ScannedSale;

  beforeEach(() => {
    sale = shop.add('sale', { held: true, segments: 2, seq: 3 });
    found.row = { generation: 1 };
  });

  const BEGIN = ['settled', 'unfinish sale', 'take over sale'];

  async function repaired(): Promise<string[]> {
    found.atWork = [seen(sale)];
    const [begin, rest] = [await sweep(), [] as string[]];
    rest.push(...begin.splice(BEGIN.length));
    expect(begin).toEqual(BEGIN);
    return rest;
  }

  test('that is as in Postgres needs no repair', async () => {
    expect(await repaired()).toEqual([]);
    expect(sale.log!.hasGrown).toBe(false);
  });

  test('that another process rebuilds meanwhile is left to a later sweep, other failures are told', async () => {
    sale.heads[1] = headAt(3, { state: 'paused' });
    found.following = new StaleGeneration('sale', 1);
    expect(await repaired()).toEqual(['follow sale']);
    found.following = new Error('the server has gone');
    vi.advanceTimersByTime(1_000);
    await expect(sweep()).rejects.toThrow('the server has gone');
  });

  test.each<[string, (sale: ScannedSale) => void, string[]]>([
    ['a log has grown', (one) => (one.heads[1] = headAt(5)), []],
    [
      'a segment has another state',
      (one) => (one.heads[1] = headAt(3, { state: 'paused' })),
      ['follow sale'],
    ],
    ['its record has other rules', (one) => (one.version = { ...one.version!, rules: '' }), ['follow sale']],
    ['it is not announced', (one) => (one.heads[1] = headAt(3, { committed: 2 })), ['announce sale']],
    ['a log has lost writes', (one) => (one.heads[1] = headAt(2)), ['break 1']],
    ['a segment is not published', (one) => (one.heads[1] = headAt(3, { state: 'loaded' })), ['break 1']],
  ])('is repaired: %s', async (_, happen, repairs) => {
    happen(sale);
    expect(await repaired()).toEqual(repairs);
    expect(sale.log!.hasGrown).toBe(repairs.length === 0);
  });

  const REBUILD = 'rebuild sale: the backend does not hold the sale in its newest generation';

  test.each([
    ['the backend does not have it', undefined, 1, [REBUILD]],
    ['the backend has an older generation', 0, 1, [REBUILD]],
    ['another process has built it since', 1, 1, []],
    ['it was deleted', undefined, undefined, []],
  ])('is rebuilt or not: %s', async (_, generation, newest, repairs) => {
    const { version } = sale;
    sale.version = undefined;
    const calls = repaired();
    // The record as it is when it is read again.
    if (generation !== undefined) sale.version = { ...version!, generation };
    found.row = newest && { generation: newest };
    expect(await calls).toEqual(repairs);
  });

  test('in another generation than its log is released, and not touched before the next sweep', async () => {
    const { log } = sale;
    sale = shop.add('sale', { held: true, generation: 2 });
    sale.log = log;
    sale.version = undefined;
    expect(await repaired()).toEqual(['release sale']);
  });

  test('that another sync has is left to it', async () => {
    sale.log = undefined;
    sale.version = undefined;
    expect(await repaired()).toEqual([]);
  });
});

describe('a closed sale', () => {
  async function repaired(sale: ScannedSale): Promise<string[]> {
    found.closed = [seen(sale)];
    const [before, unfinished, ...repairs] = await sweep();
    expect([before, unfinished]).toEqual(['settled', 'unfinish sale']);
    return repairs;
  }

  const CLOSED = { held: true, state: 'closed' } as const;

  test('is finished when it is drained', async () => {
    expect(await repaired(shop.add('sale', CLOSED))).toEqual(['finish sale']);
  });

  test('that this sync holds already may be finished', async () => {
    found.atWork = [seen(shop.add('sale', CLOSED))];
    expect(await sweep()).toEqual(['settled', 'take over sale', 'finish sale']);
  });

  test.each<[string, (sale: ScannedSale) => void]>([
    ['orders are not in Postgres', (sale) => (sale.heads[0] = headAt(2, { state: 'closed' }))],
    ['an operator has asked for a resize', () => (found.wanted = 4)],
  ])('is not finished while %s', async (_, happen) => {
    const sale = shop.add('sale', CLOSED);
    happen(sale);
    expect(await repaired(sale)).toEqual([]);
  });

  test('that is archived is finished if the backend does not have it', async () => {
    const sale = shop.add('sale', { ...CLOSED, isArchived: true });
    sale.version = undefined;
    expect(await repaired(sale)).toEqual(['finish sale']);
  });

  test('that is archived is rebuilt if the backend has it still', async () => {
    found.row = { generation: 1, archivedAt: new Date(0) };
    const sale = shop.add('sale', { ...CLOSED, isArchived: true });
    expect(await repaired(sale)).toEqual(['rebuild sale: the backend holds a sale that is archived']);
  });

  test('that is archived is left alone if it was removed from the backend since the scan', async () => {
    found.row = { generation: 1, archivedAt: new Date(0) };
    const sale = shop.add('sale', { ...CLOSED, isArchived: true });
    const repairs = repaired(sale);
    sale.version = undefined;
    expect(await repairs).toEqual([]);
  });
});

describe('while Postgres is away, the backlog', () => {
  test('is what the logs hold beyond the newest cursors, also of released sales', async () => {
    const sale = shop.add('sale', { held: true, segments: 2, seq: 1 });
    sale.heads = [headAt(3), headAt(5)];
    await reconciler.reportBacklog();
    sale.log = undefined;
    sale.heads = [headAt(3), headAt(6)];
    await reconciler.reportBacklog();
    expect(backlogs).toEqual([6, 7]);
  });

  test('stands as it was if the backend is away too', async () => {
    shop.add('sale', { held: true });
    isAway = true;
    await reconciler.reportBacklog();
    expect(backlogs).toEqual([]);
  });
});

test('stopping waits for the scan and for drafts', async () => {
  shop.add('sale', { held: true });
  let end = (_: unknown) => {};
  found.scanning = new Promise((resolve) => (end = resolve));
  await reconciler.advance(settled);
  let hasStopped = false;
  const stopped = reconciler.stop().then(() => {
    hasStopped = true;
  });
  await settledTurns();
  expect([calls.at(-1), hasStopped]).toEqual(['stop resizes', false]);
  end(undefined);
  await stopped;
});
