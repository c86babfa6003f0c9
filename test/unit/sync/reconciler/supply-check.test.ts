/** Which sales the check reports, by what Postgres has given their segments and what these have counted. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { SegmentAudit, SegmentCounts } from '../../../../src/engine/contract.ts';
import type { GivenUnits } from '../../../../src/sales/given-units.ts';
import type { HeldSales } from '../../../../src/sync/held/held-sales.ts';
import type { SyncStores } from '../../../../src/sync/held/sync-stores.ts';
import { SupplyCheck } from '../../../../src/sync/reconciler/supply-check.ts';
import { freezeTime } from '../../../support/engine/frozen-time.ts';

let given: GivenUnits[] = [];
/** The generation of the units that the segments began with. */
let begunIn = 3;
let isExplained = true;
/** The sales of which Postgres was asked. */
let read: string[][] = [];

const EMPTY = { returned: 0, credited: 0, withdrawn: 0 };
const FAULT: SegmentAudit = { found: 'fault', fault: 'not a number' };

const gives = (units: Partial<GivenUnits>): GivenUnits => ({
  saleId: 'sale',
  generation: 3,
  segments: 1,
  ...EMPTY,
  ...units,
});

/** A segment that began with ten units and has counted these. */
const counts = (units: Partial<SegmentCounts> = {}, began = 10): SegmentAudit => {
  const { returned, credited, withdrawn } = { ...EMPTY, ...units };
  const supplied = began + returned + credited - withdrawn;
  const counters = { state: 'open', left: supplied, taken: 0, supplied, seq: 0, inTransit: 0 } as const;
  return { found: 'sound', ...counters, ...EMPTY, ...units };
};

interface Shop {
  held?: string[];
  durable?: boolean;
  isSpread?: boolean;
  audit?: readonly SegmentAudit[];
  /** How long each audit takes. */
  auditMs?: number;
  olderNodes?: readonly unknown[];
}

function checkOf(shop: Shop = {}) {
  const { held = ['sale'], durable = true, isSpread = false, audit = [counts()], auditMs = 0 } = shop;
  const asked: unknown[][] = [];
  const audits = {
    async audit(...call: unknown[]) {
      asked.push(call);
      vi.advanceTimersByTime(auditMs);
      return audit;
    },
  };
  const rowsOf = (sql: string, [first]: unknown[]) => {
    if (sql.includes('worker_leases')) return shop.olderNodes ?? [];
    if (sql.includes('AS gap')) return [{ gap: isExplained ? '0' : '1' }];
    if (sql.includes('AS began')) {
      return given.map(({ saleId: id }) => ({ id, generation: begunIn, began: '10' }));
    }
    read.push(first as string[]);
    return given.map(({ saleId: id, ...units }) => ({ id, ...units }));
  };
  const db = { raw: async (sql: string, values: unknown[]) => ({ rows: rowsOf(sql, values) }) };
  const sales = {
    get logs() {
      return held.map((saleId) => ({ saleId }));
    },
  };
  const stores = { db, backend: { durable, isSpread, audits } } as unknown as SyncStores;
  return { check: new SupplyCheck(stores, sales as unknown as HeldSales), asked, held };
}

beforeEach(() => {
  freezeTime();
  [given, begunIn, isExplained, read] = [[], 3, true, []];
});

afterEach(() => void vi.useRealTimers());

describe('lost are units that Postgres has given and the segments have not counted', () => {
  test.each([
    ['returned', '2 units that came back'],
    ['credited', '2 units that were added'],
    ['withdrawn', 'the withdrawal of 2 units'],
  ] as const)('%s ones', async (counter, what) => {
    given = [gives({ [counter]: 5 })];
    const { check, asked } = checkOf({ audit: [counts({ [counter]: 3 })] });
    const problem = `the segments have lost ${what}`;
    expect(await check.next([])).toEqual([{ saleId: 'sale', generation: 3, problem }]);
    expect(asked).toEqual([['sale', 1, 3]]);
  });

  test('of several kinds at once', async () => {
    given = [gives({ returned: 1, credited: 2 })];
    const { check } = checkOf({ audit: [counts()] });
    const problem = 'the segments have lost 1 unit that came back, 2 units that were added';
    expect(await check.next([])).toMatchObject([{ problem }]);
  });

  test.each([
    ['as many as were given', [counts({ returned: 5 })]],
    ['more, because Postgres has not noted them yet', [counts({ returned: 6 })]],
    ['in all segments together', [counts({ returned: 2 }, 5), counts({ returned: 3 }, 5)]],
    ['but a segment can not be read', [counts({ returned: 1 }), FAULT]],
  ])('but not if the segments have counted %s', async (_, audit) => {
    given = [gives({ returned: 5 })];
    expect(await checkOf({ audit }).check.next([])).toEqual([]);
  });
});

describe('on several servers, units that move can be lost', () => {
  test.each([
    [8, 'the segments have lost 2 units that moved between them'],
    [9, 'the segments have lost 1 unit that moved between them'],
    [11, 'the segments have 1 unit twice, which moved between them'],
  ])('if the segments began with %i of ten units', async (began, problem) => {
    given = [gives({})];
    const { check } = checkOf({ isSpread: true, audit: [counts({}, began)] });
    expect(await check.next([])).toEqual([{ saleId: 'sale', generation: 3, problem }]);
  });

  test.each([
    ['the segments have them all', [counts()], true],
    ['the stock was changed by hand', [counts({}, 8)], false],
    ['a segment can not be read', [counts({}, 8), FAULT], true],
    ['units kept moving while the segments were read', [{ ...counts({}, 8), isMoving: true }], true],
  ] as const)('but not if %s', async (_, audit, explained) => {
    isExplained = explained;
    given = [gives({})];
    expect(await checkOf({ isSpread: true, audit }).check.next([])).toEqual([]);
  });
});

test('a sale that is rebuilt between the two reads of Postgres is looked at by the next round', async () => {
  given = [gives({})];
  begunIn = 4;
  expect(await checkOf({ isSpread: true, audit: [counts({}, 8)] }).check.next([])).toEqual([]);
});

describe('a single server is asked only about a sale', () => {
  test.each([
    ['to which units came back', { returned: 1 }, 1],
    ['to which units were added', { credited: 1 }, 1],
    ['from which units were withdrawn', { withdrawn: 1 }, 1],
    ['and about no other', {}, 0],
  ])('%s', async (_, units, times) => {
    given = [gives(units)];
    const { check, asked } = checkOf();
    await check.next([]);
    expect(asked).toHaveLength(times);
  });
});

describe('nothing is checked', () => {
  test.each<[string, Shop]>([
    ['if the backend lives in the process', { durable: false }],
    ['while nodes of 0.1.0 run', { olderNodes: [{ node: 'host:1', leasedUntil: new Date() }] }],
    ['if there are no sales', { held: [] }],
  ])('%s', async (_, shop) => {
    given = [gives({ returned: 1 })];
    expect(await checkOf(shop).check.next([])).toEqual([]);
    expect(read).toEqual([]);
  });
});

test('after a page the check rests for a hundred times as long as the page took', async () => {
  given = [gives({ returned: 1 })];
  const { check } = checkOf({ audit: [counts({ returned: 1 })], auditMs: 4 });
  await check.next([]);
  vi.advanceTimersByTime(399);
  await check.next([]);
  expect(read).toHaveLength(1);
  vi.advanceTimersByTime(1);
  await check.next([]);
  expect(read).toHaveLength(2);
});

test('a page has a hundred held sales and the others, and the next page continues', async () => {
  const held = Array.from({ length: 150 }, (_, i) => `held-${i}`);
  const { check } = checkOf({ held });
  await check.next(['other']);
  await check.next(['another']);
  await check.next([]);
  expect(read).toEqual([
    [...held.slice(0, 100), 'other'],
    [...held.slice(100), 'another'],
    held.slice(0, 100),
  ]);
});
