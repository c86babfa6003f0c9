/** The findings of one look at a sale: which are faults, and that a report with a fault is never ok. */
import { describe, expect, it } from 'vitest';
import type { SegmentCounts } from '../../../src/engine/contract.ts';
import type { VerifyReport } from '../../../src/operations/verify-report.ts';
import type { Look } from '../../../src/verify/finding.ts';
import { judge, reportOf } from '../../../src/verify/judge.ts';
import type { Truth } from '../../../src/verify/truth.ts';
import { aSale } from '../../support/shop/sales.ts';

const NOTHING = { count: 0, units: 0, ageS: 0 };
const CURSOR = { saleId: 'sale', segment: 0, generation: 1, seq: 3, tail: '1003', orders: 3, units: 3 };

/** Ten units in one segment, of which three are sold and in Postgres. */
const TRUTH: Truth = {
  row: { sale: aSale({ id: 'sale', stock: 10 }), state: 'open', generation: 1, stock: 7 } as Truth['row'],
  cursors: [CURSOR],
  ...{ movements: 0, liveUnits: 3, committedOrders: 3, distinctBuyers: 3, rejectedOrders: 0, lostOrders: 0 },
  aboveLimit: [],
  ...{ returned: 0, toppedUp: 0, withdrawn: 0 },
  ...{ pendingReturns: NOTHING, pendingTopUps: NOTHING, openWithdrawals: NOTHING },
  ...{ pendingChanges: NOTHING, pendingResizes: NOTHING },
  places: undefined,
  lastMovement: '0',
};
const SEGMENT: SegmentCounts = {
  ...{ state: 'open', left: 7, taken: 3, supplied: 10, returned: 0, credited: 0, withdrawn: 0, seq: 3 },
  inTransit: 0,
};

function lookFrom(
  segment: Partial<SegmentCounts>,
  truth: Partial<Truth> = {},
  spec: Partial<Look> = {},
): Look {
  const whole = { ...TRUTH, ...truth };
  return {
    truth: whole,
    given: {
      returned: whole.returned - whole.pendingReturns.units,
      credited: whole.toppedUp - whole.pendingTopUps.units,
      withdrawn: whole.withdrawn,
    },
    record: { sale: TRUTH.row.sale, state: 'open', generation: 1, epoch: 1 },
    segments: [{ found: 'sound', ...SEGMENT, ...segment }],
    logs: [{ cursor: CURSOR, units: (segment.taken ?? 3) - 3 }],
    confirmed: new Set([0]),
    since: { isRebuilt: false, isChanged: false, moved: new Set() },
    ...spec,
  };
}

function reportFrom(...parts: Parameters<typeof lookFrom>) {
  const look = lookFrom(...parts);
  const { findings, identities } = judge(look);
  return reportOf(look.truth, findings, identities);
}

const summary = ({ ok, differences, findings }: VerifyReport) => ({
  ok,
  causes: differences.map(({ cause, isFault }) => `${cause}${isFault ? '!' : ''}`),
  named: findings.length,
});

describe('a look at a sale', () => {
  it('with agreeing parts is ok', () => {
    expect(summary(reportFrom({}))).toEqual({ ok: true, causes: [], named: 0 });
  });

  it('reports work under way, which is no fault', () => {
    expect(summary(reportFrom({ left: 5, taken: 5 }))).toEqual({ ok: true, causes: ['in_flight'], named: 0 });
    const waiting = { count: 1, units: 2, ageS: 1 };
    const topUp = { row: { ...TRUTH.row, stock: 9 }, movements: 2, toppedUp: 2, pendingTopUps: waiting };
    expect(summary(reportFrom({}, topUp))).toEqual({ ok: true, causes: ['top_up_pending'], named: 0 });
  });

  // Two units came back. Postgres or the segment was read first, so one of the two does not have them yet.
  it.each<[string, Partial<SegmentCounts>, Partial<Truth>]>([
    [
      'before the segments have received units that came back',
      {},
      {
        ...{ returned: 2, liveUnits: 1 },
        row: { ...TRUTH.row, stock: 9 },
        pendingReturns: { count: 1, units: 2, ageS: 0 },
      },
    ],
    ['before Postgres was seen to give units back', { left: 9, supplied: 12, returned: 2 }, {}],
    [
      'before the segments have received a top-up',
      {},
      {
        ...{ toppedUp: 2, movements: 2 },
        row: { ...TRUTH.row, stock: 9 },
        pendingTopUps: { count: 1, units: 2, ageS: 0 },
      },
    ],
    ['before Postgres was seen to top up', { left: 9, supplied: 12, credited: 2 }, {}],
  ])('finds that both stores agree %s', (_, segment, truth) => {
    const report = reportFrom(segment, truth);
    expect(report.ok).toBe(true);
    expect(report.identities.map(({ difference }) => difference)).toEqual([0, 0]);
  });

  it('with an unexplained difference is a fault, in either direction', () => {
    for (const off of [4, -4]) {
      const report = reportFrom({ left: 7 + off, supplied: 10 + off });
      expect(summary(report)).toEqual({ ok: false, causes: ['unexplained!'], named: 1 });
      expect(report.differences[0]!.units).toBe(4);
      expect(report.findings[0]).toContain(`4 units ${off > 0 ? 'more' : 'fewer'} than Postgres gave them`);
    }
  });

  it('proves nothing by a sum of segments between which units kept moving', () => {
    for (const off of [4, -4]) {
      const report = reportFrom({ left: 7 + off, supplied: 10 + off, isMoving: true });
      expect(summary(report)).toEqual({ ok: true, causes: ['transfer_pending'], named: 0 });
      expect(report.differences[0]!.what).toContain('4 units');
    }
    expect(summary(reportFrom({ isMoving: true })).causes).toEqual([]);
    const [contradiction] = judge(lookFrom({ left: 9, isMoving: true })).findings;
    expect(contradiction).toMatchObject({ cause: 'foreign_redis', isFault: true });
    expect(contradiction).not.toHaveProperty('repair');
  });

  it.each<[string, Partial<SegmentCounts>, Partial<Truth>, string]>([
    ['a counter that contradicts the others', { left: 9 }, {}, 'foreign_redis!'],
    [
      'a stock that ledger and orders contradict',
      {},
      { row: { ...TRUTH.row, stock: 8 } },
      'foreign_postgres!',
    ],
    ['orders that the stock contradicts', {}, { liveUnits: 2 }, 'foreign_postgres!'],
    [
      'a buyer above the limit',
      {},
      { aboveLimit: ['buyer anna holds 2 units, above 1'] },
      'foreign_postgres!',
    ],
    [
      'a withdrawal that the segments have lost',
      { withdrawn: 0 },
      { withdrawn: 2, row: { ...TRUTH.row, stock: 5 }, movements: -2 },
      'lost_entries!',
    ],
  ])('%s is a fault', (_, segment, truth, cause) => {
    const { ok, causes, named } = summary(reportFrom(segment, truth));
    expect({ ok, named }).toEqual({ ok: false, named: causes.filter((each) => each.endsWith('!')).length });
    expect(causes).toContain(cause);
  });

  it('of a lost sale, or during a rebuild, is a fault', () => {
    expect(summary(reportFrom({}, {}, { record: undefined }))).toMatchObject({ ok: false });
    expect(summary(reportFrom({}, {}, { segments: [{ found: 'nothing' }] })).ok).toBe(false);
    const building = reportFrom({ state: 'loaded' });
    expect(summary(building)).toEqual({ ok: false, causes: ['rebuild_pending!'], named: 1 });
    expect(building.identities).toHaveLength(1);
  });

  it('lists faults before work under way', () => {
    const { causes } = summary(reportFrom({ left: 9, taken: 5, supplied: 14 }));
    expect(causes).toEqual(['unexplained!', 'in_flight']);
  });
});
