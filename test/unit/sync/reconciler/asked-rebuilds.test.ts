/** How sync carries out resizes and erasures, step by step. Postgres, the draft and the rebuild are replaced. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { StaleGeneration } from '../../../../src/engine/errors.ts';
import type { DueSale } from '../../../../src/rebuild/erasures.ts';
import type { HeldSales } from '../../../../src/sync/held/held-sales.ts';
import type { SyncStores } from '../../../../src/sync/held/sync-stores.ts';
import { Erasures } from '../../../../src/sync/reconciler/erasures.ts';
import { Resizes } from '../../../../src/sync/reconciler/resizes.ts';
import { settledTurns } from '../../../support/engine/frozen-time.ts';

type Write = (
  db: unknown,
  backend: unknown,
  row: unknown,
  segments: number,
  signal: AbortSignal,
) => Promise<unknown>;

const world = vi.hoisted(() => ({
  resizes: [] as { saleId: string; ageS: number }[],
  wanted: 4 as number | undefined,
  row: {} as unknown,
  due: [] as unknown[],
  eraseInArchived: (_: string): void => {},
  write: (async () => undefined) as unknown as Write,
}));

vi.mock('../../../../src/sales/ledger.ts', () => ({
  readResizes: async () => world.resizes,
  readWantedSegments: async () => world.wanted,
}));
vi.mock('../../../../src/sales/sale-rows.ts', () => ({ readSale: async () => world.row }));
vi.mock('../../../../src/rebuild/draft.ts', () => ({
  writeDraft: (...args: Parameters<Write>) => world.write(...args),
}));
vi.mock('../../../../src/rebuild/erasures.ts', () => ({
  readDueSales: async () => world.due,
  eraseInArchived: async (_: unknown, saleId: string) => world.eraseInArchived(saleId),
}));

let calls: unknown[][];
let log: { generation: number; backlog: number } | undefined;
let sales: HeldSales;

const call =
  (name: string) =>
  (...args: unknown[]) =>
    void calls.push([name, ...args]);
const settled = async () => call('settled')();

beforeEach(() => {
  [calls, log] = [[], { generation: 1, backlog: 0 }];
  Object.assign(world, { wanted: 4, row: { id: 'sale' }, eraseInArchived: call('erase') });
  world.resizes = [{ saleId: 'sale', ageS: 0 }];
  sales = {
    isolate: (_: string, work: () => Promise<unknown>) => work(),
    logOf: async () => log,
    rebuild: call('rebuild'),
    setAside: call('set aside'),
    unfinish: call('unfinish'),
  } as unknown as HeldSales;
});

describe('a resize', () => {
  const REBUILD = [
    ['settled'],
    ['rebuild', 'sale', 'an operator has changed its number of segments', { asked: { draft: 'draft' } }],
  ];
  let drafts: { segments: number; signal: AbortSignal; end(error?: Error): void }[];
  let resizes: Resizes;

  beforeEach(() => {
    drafts = [];
    world.write = (_, __, ___, segments, signal) =>
      new Promise((resolve, reject) => {
        drafts.push({ segments, signal, end: (error) => (error ? reject(error) : resolve('draft')) });
      });
    resizes = new Resizes({} as unknown as SyncStores, sales, call('catch up'));
  });

  async function advance(): Promise<void> {
    await resizes.advance(settled);
    await settledTurns();
  }

  test('writes a draft while the sale sells, and then rebuilds it', async () => {
    await advance();
    await advance();
    expect(drafts).toMatchObject([{ segments: 4 }]);
    expect(calls).toEqual([]);
    drafts[0]!.end();
    await advance();
    await advance();
    expect(calls).toEqual(REBUILD);
  });

  test('waits for short logs', async () => {
    await advance();
    drafts[0]!.end();
    await settledTurns();
    log = { generation: 1, backlog: 2_001 };
    await advance();
    expect(calls).toEqual([['catch up']]);
    world.resizes = [{ saleId: 'sale', ageS: 20 }];
    await advance();
    expect(calls.slice(1)).toEqual(REBUILD);
  });

  test.each([
    ['another number of segments is wanted', () => (world.wanted = 5)],
    ['the sale was rebuilt', () => (log = { generation: 2, backlog: 0 })],
    [
      'nobody wanted it for a while',
      async () => {
        const asked = world.resizes.splice(0);
        await advance();
        world.resizes = asked;
      },
    ],
  ])('writes another draft if %s', async (_, happen) => {
    await advance();
    drafts[0]!.end();
    await settledTurns();
    await happen();
    await advance();
    expect(drafts).toMatchObject([{ segments: 4 }, { segments: world.wanted }]);
    expect(calls).toEqual([]);
  });

  test.each([
    ['another sync works on the sale', () => (log = undefined)],
    ['it is not wanted any more', () => (world.wanted = undefined)],
    ['the sale was deleted', () => (world.row = undefined)],
  ])('writes nothing if %s', async (_, happen) => {
    happen();
    await advance();
    await advance();
    expect([drafts, calls]).toEqual([[], []]);
  });

  test('whose draft fails sets the sale aside, and is tried again', async () => {
    const error = new Error('no number');
    await advance();
    drafts[0]!.end(error);
    await settledTurns();
    expect(calls).toEqual([['set aside', 'sale', error]]);
    await advance();
    expect(drafts).toHaveLength(2);
  });

  test('whose sale is rebuilt meanwhile is tried again', async () => {
    await advance();
    drafts[0]!.end(new StaleGeneration('sale', 1));
    await settledTurns();
    await advance();
    expect([calls, drafts.length]).toEqual([[], 2]);
  });

  test('whose older draft fails keeps the newer one', async () => {
    await advance();
    world.wanted = 5;
    await advance();
    drafts[0]!.end(new StaleGeneration('sale', 1));
    await settledTurns();
    await advance();
    expect(drafts).toHaveLength(2);
  });

  test('stops its draft with sync, which waits for its end', async () => {
    await advance();
    let hasStopped = false;
    const stopped = resizes.stop().then(() => {
      hasStopped = true;
    });
    await settledTurns();
    expect([drafts[0]!.signal.aborted, hasStopped]).toEqual([true, false]);
    drafts[0]!.end(new Error('aborted'));
    await stopped;
    expect(calls).toEqual([]);
  });
});

describe('an erasure', () => {
  async function advance(due: Partial<DueSale>): Promise<void> {
    world.due = [{ saleId: 'sale', isClosed: false, isArchived: false, ageS: 0, ...due }];
    await new Erasures({} as unknown as SyncStores, sales, call('catch up')).advance(settled);
  }

  const REBUILD = [['settled'], ['rebuild', 'sale', 'an operator has erased a buyer', { asked: {} }]];

  test('in an archived sale needs no rebuild', async () => {
    await advance({ isArchived: true });
    expect(calls).toEqual([['erase', 'sale']]);
  });

  test('in many archived sales is carried out some sales at a time, each in its turn', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    world.due = ids.map((saleId) => ({ saleId, isClosed: true, isArchived: true, ageS: 0 }));
    const erasures = new Erasures({} as unknown as SyncStores, sales, call('catch up'));
    const served = async () => {
      calls.length = 0;
      await erasures.advance(settled);
      return calls.map(([, saleId]) => saleId);
    };
    expect(await served()).toEqual(['a', 'b', 'c', 'd', 'e']);
    // The rows of all sales are still locked.
    expect(await served()).toEqual(['f', 'g']);
    expect(await served()).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test('is left to the sync that works on the sale', async () => {
    log = undefined;
    await advance({});
    expect(calls).toEqual([['unfinish', 'sale']]);
  });

  test.each([
    ['an open sale with short logs is rebuilt', false, 2_000, 0, true],
    ['with long logs it is drained before', false, 2_001, 0, false],
    ['but not for ever', false, 2_001, 20, true],
    ['a closed sale is drained altogether', true, 1, 20, false],
    ['and then rebuilt', true, 0, 0, true],
  ])('%s', async (_, isClosed, backlog, ageS, isRebuilt) => {
    log = { generation: 1, backlog };
    await advance({ isClosed, ageS });
    expect(calls).toEqual([['unfinish', 'sale'], ...(isRebuilt ? REBUILD : [['catch up']])]);
  });
});
