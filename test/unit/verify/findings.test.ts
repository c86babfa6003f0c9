/**
 * What one look at a sale finds: the cause of each difference, its units, whether it is a fault, and the repair that is proven. The
 * sale has two segments or more of ten units each, of which three are sold.
 */
import { describe, expect, it } from 'vitest';
import type { SegmentAudit, SegmentCounts } from '../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../src/engine/errors.ts';
import { countsOf, type Finding, type Look, waiting } from '../../../src/verify/finding.ts';
import { answerIn, foreignWriteIn } from '../../../src/verify/foreign-write.ts';
import { judge, reportOf } from '../../../src/verify/judge.ts';
import { judgeStrays, MAX_STRAYS, stray } from '../../../src/verify/stray-findings.ts';
import type { Truth } from '../../../src/verify/truth.ts';
import { aSale } from '../../support/shop/sales.ts';

const NOTHING = { count: 0, units: 0, ageS: 0 };
const ROW = { sale: aSale({ id: 'sale', stock: 20, segments: 2 }), state: 'open', generation: 4, stock: 14 };
const COUNTS: SegmentCounts = {
  ...{ state: 'open', left: 7, taken: 3, supplied: 10, returned: 0, credited: 0, withdrawn: 0, seq: 3 },
  inTransit: 0,
};
const SOUND: SegmentAudit = { found: 'sound', ...COUNTS };
const { left: _, ...OTHERS } = COUNTS;

interface Spec {
  readonly truth?: Partial<Omit<Truth, 'row'>>;
  readonly row?: Partial<Truth['row']>;
  /** What differs in the segments. */
  readonly segments?: readonly (Partial<SegmentCounts> | SegmentAudit)[];
  readonly look?: Partial<Look>;
}

function lookOf({ truth = {}, row = {}, segments = [], look = {} }: Spec): Look {
  const cursor = (segment: number) => ({
    ...{ saleId: 'sale', segment, generation: 4, seq: 3, tail: '1003', orders: 3, units: 3 },
  });
  const audits = Array.from({ length: Math.max(2, segments.length) }, (_, i): SegmentAudit => {
    const given = segments[i] ?? {};
    return 'found' in given ? given : { ...SOUND, ...given };
  });
  const each = audits.length;
  const whole: Truth = {
    row: { ...ROW, sale: { ...ROW.sale, stock: 10 * each }, stock: 7 * each, ...row } as Truth['row'],
    cursors: audits.map((_, segment) => cursor(segment)),
    ...{
      movements: 0,
      liveUnits: 3 * each,
      committedOrders: 6,
      distinctBuyers: 5,
      rejectedOrders: 0,
      lostOrders: 0,
    },
    aboveLimit: [],
    ...{ returned: 0, toppedUp: 0, withdrawn: 0 },
    ...{ pendingReturns: NOTHING, pendingTopUps: NOTHING, openWithdrawals: NOTHING },
    ...{ pendingChanges: NOTHING, pendingResizes: NOTHING },
    places: undefined,
    lastMovement: '0',
    ...truth,
  };
  return {
    truth: whole,
    given: undefined,
    record: { sale: ROW.sale, state: 'open', generation: 4, epoch: 1 },
    segments: audits,
    logs: audits.flatMap((found, i) => {
      const counts = countsOf(found);
      return counts ? [{ cursor: whole.cursors[i]!, units: counts.taken - whole.cursors[i]!.units }] : [];
    }),
    confirmed: new Set(audits.keys()),
    since: { isRebuilt: false, isChanged: false, moved: new Set() },
    ...look,
  };
}

/** Cause, a mark if it is a fault, units; the repair; the numbers in the text. */
function lineOf({ cause, isFault, units, repair, what }: Finding): string {
  const { kind = '', ...rest } = repair ?? {};
  const details = Object.entries(rest).map(([name, value]) => ` ${name}=${value}`);
  const numbers = (what.match(/-?\d+/g) ?? []).join(' ');
  return `${cause}${isFault ? '!' : ''} ${units}${kind && ` <${kind}${details.join('')}>`} (${numbers})`;
}

const found = (spec: Spec) => judge(lookOf(spec)).findings.map(lineOf);
const gaps = (spec: Spec) => judge(lookOf(spec)).identities.map(({ difference }) => difference);
const record = (change: Partial<NonNullable<Look['record']>>): Partial<Look> => ({
  record: { sale: ROW.sale, state: 'open', generation: 4, epoch: 1, ...change } as NonNullable<
    Look['record']
  >,
});
const pending = (count: number, units: number, ageS = 0) => ({ count, units, ageS });

describe('a look at a sale', () => {
  it('with agreeing parts finds nothing, and shows the terms of both equations', () => {
    const { findings, identities, isBuilding, soldGap } = judge(lookOf({}));
    expect({ findings, isBuilding, soldGap }).toEqual({ findings: [], isBuilding: false, soldGap: 0 });
    const terms = (side: readonly { readonly name: string; readonly units: number }[]) =>
      side.map(({ name, units }) => `${name} ${units}`);
    expect(identities.map(({ left, right }) => [terms(left), terms(right)])).toEqual([
      [
        ['initial 20', 'movements 0'],
        ['stock 14', 'in live orders 6'],
      ],
      [
        ['stock 14'],
        [...['in segments 14', 'in transit 0', 'in logs beyond the cursors 0'], 'returns not yet applied 0'],
      ],
    ]);
  });

  it.each<[string, Spec, string[]]>([
    ['units in logs', { segments: [{ left: 5, taken: 5 }] }, ['in_flight 2 (2)']],
    [
      'units between segments',
      { segments: [{ left: 5, supplied: 8, inTransit: 2 }] },
      ['transfer_pending 2 <transfers> (2)'],
    ],
    [
      'a return',
      { truth: { returned: 2, liveUnits: 4, pendingReturns: pending(1, 2) }, row: { stock: 16 } },
      ['return_pending 2 <returns> (1 2)'],
    ],
    [
      'returns, of which one is applied',
      {
        truth: { returned: 5, liveUnits: 1, pendingReturns: pending(2, 3, 9) },
        row: { stock: 19 },
        segments: [{ left: 9, supplied: 12, returned: 2 }],
      },
      ['return_pending 3 <returns> (2 3 9)'],
    ],
    [
      'a top-up',
      { truth: { toppedUp: 3, movements: 3, pendingTopUps: pending(1, 3, 4) }, row: { stock: 17 } },
      ['top_up_pending 3 <changes> (1 3 4)'],
    ],
    [
      'a withdrawal',
      {
        truth: { openWithdrawals: pending(1, 5, 7) },
        segments: [{ left: 5, supplied: 8, withdrawn: 2 }],
      },
      ['withdrawal_pending 2 <withdrawals ageS=7> (5 2 7)'],
    ],
    ['a change', { truth: { pendingChanges: pending(1, 0) } }, ['change_pending 0 <changes> (1)']],
    [
      'changes, which the backend has in part',
      { truth: { pendingChanges: pending(2, 0, 3) }, look: record({ state: 'paused' }) },
      ['change_pending 0 <changes> (2 3)'],
    ],
    ['a resize', { truth: { pendingResizes: pending(1, 0, 60) } }, ['change_pending 0 (60)']],
    [
      'a resize that no sync works on',
      { truth: { pendingResizes: pending(1, 0, 61) } },
      ['change_pending 0 <rebuild> (61)'],
    ],
  ])('finds work under way: %s', (_, spec, lines) => {
    expect(found(spec)).toEqual(lines);
    expect(gaps(spec)).toEqual([0, 0]);
  });

  it.each<[string, Spec]>([
    [
      'a return that a segment has and Postgres has not',
      { segments: [{ left: 9, supplied: 12, returned: 2 }] },
    ],
    [
      'a top-up that a segment has and Postgres has not',
      { segments: [{ left: 9, supplied: 12, credited: 2 }] },
    ],
    [
      'a state that was changed since',
      {
        look: {
          ...record({ state: 'paused' }),
          since: { isRebuilt: false, isChanged: true, moved: new Set() },
        },
      },
    ],
    ['live orders that are counted right', { row: { liveOrders: 6 } }],
  ])('finds nothing wrong with %s', (_, spec) => {
    expect(found(spec)).toEqual([]);
    expect(gaps(spec)).toEqual([0, 0]);
  });

  it.each<[string, Spec, string[], [number, number]]>([
    [
      'returned units that the segments have lost',
      {
        truth: { returned: 2, liveUnits: 4 },
        row: { stock: 16 },
        look: { given: { returned: 2, credited: 0, withdrawn: 0 } },
      },
      ['foreign_redis! 2 <rebuild> (2)'],
      [0, 2],
    ],
    [
      'top-ups that were never credited',
      {
        truth: { toppedUp: 2, movements: 2 },
        row: { stock: 16 },
        look: { given: { returned: 0, credited: 2, withdrawn: 0 } },
      },
      ['foreign_postgres! 2 (2)'],
      [0, 2],
    ],
    [
      'withdrawn units that are in the segments again',
      {
        truth: { withdrawn: 2, movements: -2 },
        row: { stock: 12 },
        look: { given: { returned: 0, credited: 0, withdrawn: 2 } },
      },
      ['lost_entries! 2 <rebuild> (2)'],
      [0, -2],
    ],
    [
      'a withdrawal that the ledger does not have',
      { segments: [{ left: 5, supplied: 8, withdrawn: 2 }] },
      ['foreign_postgres! 2 (2)'],
      [0, 0],
    ],
    [
      'a stock that ledger, orders and segments contradict',
      { row: { stock: 15 } },
      ['foreign_postgres! 1 (15 14)'],
      [-1, 1],
    ],
    ['too few live orders', { truth: { liveUnits: 5 } }, ['foreign_postgres! 1 (1)'], [1, 0]],
    ['too many live orders', { truth: { liveUnits: 8 } }, ['foreign_postgres! 2 (2)'], [-2, 0]],
    [
      'a count of live orders that was changed',
      { row: { liveOrders: 5 } },
      ['foreign_postgres! 0 <live orders> (6 5)'],
      [0, 0],
    ],
    [
      'a count of live orders, and the orders',
      { row: { liveOrders: 1 }, truth: { liveUnits: 5, committedOrders: 5 } },
      ['foreign_postgres! 0 (5 1)', 'foreign_postgres! 1 (1)'],
      [1, 0],
    ],
    ['a buyer above the limit', { truth: { aboveLimit: ['buyer 7'] } }, ['foreign_postgres! 0 (7)'], [0, 0]],
    [
      'a state that the ledger does not explain',
      { segments: [{ state: 'paused' }] },
      ['foreign_redis! 0 <state> ()'],
      [0, 0],
    ],
    ['a state of the record', { look: record({ state: 'closed' }) }, ['foreign_redis! 0 <state> ()'], [0, 0]],
    [
      'units left that were changed',
      { segments: [{}, { left: 9 }] },
      ['foreign_redis! 2 <counter segment=1 field=left off=-2> (1 9 3 10)'],
      [0, -2],
    ],
    [
      'units left of a segment that has sold all',
      { segments: [{ left: 2, taken: 10 }] },
      ['in_flight 7 (7)', 'foreign_redis! 2 <counter segment=0 field=left off=-2> (0 2 10 10)'],
      [0, -2],
    ],
    [
      'fewer units, and a missing record',
      { segments: [{ left: 3, supplied: 6 }], look: { record: undefined } },
      ['lost_entries! 0 <rebuild> ()', 'lost_entries! 4 <rebuild> (4)'],
      [0, 4],
    ],
    [
      'units left that were changed, where the log is not counted',
      { segments: [{}, { left: 9 }], look: { confirmed: new Set([0]) } },
      ['foreign_redis! 2 (1 9 3 10)'],
      [0, -2],
    ],
    [
      'units supplied that were changed',
      { segments: [{ supplied: 12 }] },
      ['foreign_redis! 2 <counter segment=0 field=supplied off=2> (0 7 3 12)'],
      [0, 0],
    ],
    [
      'units supplied that are fewer than those taken',
      { segments: [{ supplied: 2 }] },
      ['foreign_redis! 8 <counter segment=0 field=supplied off=-8> (0 7 3 2)'],
      [0, 0],
    ],
    [
      'units that moved between segments uncounted',
      { segments: [{ left: 9 }, { left: 5 }] },
      [
        'foreign_redis! 2 <counter segment=0 field=supplied off=-2> (0 9 3 10)',
        'foreign_redis! 2 <counter segment=1 field=supplied off=2> (1 5 3 10)',
      ],
      [0, 0],
    ],
    [
      'units that moved between two of three segments, uncounted',
      { segments: [{}, { left: 9 }, { left: 5 }] },
      [
        'foreign_redis! 2 <counter segment=1 field=supplied off=-2> (1 9 3 10)',
        'foreign_redis! 2 <counter segment=2 field=supplied off=2> (2 5 3 10)',
      ],
      [0, 0],
    ],
    [
      'units left in two segments, beside one where they are no number',
      { segments: [{ found: 'fault', fault: 'bad', others: OTHERS }, { left: 9 }, { left: 5 }] },
      [
        'foreign_redis! 0 <counter segment=0 field=left off=undefined> (0 3 10)',
        'foreign_redis! 2 <counter segment=1 field=left off=-2> (1 9 3 10)',
        'foreign_redis! 2 <counter segment=2 field=left off=2> (2 5 3 10)',
      ],
      [0, 0],
    ],
    [
      'units that moved uncounted and were sold, beside units left that were changed',
      { segments: [{ left: 2, taken: 15 }, { left: 0 }, { left: 9 }] },
      [
        'in_flight 12 (12)',
        'foreign_redis! 7 (0 2 15 10)',
        'foreign_redis! 7 (1 0 3 10)',
        'foreign_redis! 2 <counter segment=2 field=left off=-2> (2 9 3 10)',
      ],
      [0, -2],
    ],
    [
      'units that moved uncounted and were sold, beside units left that are no number',
      {
        segments: [
          { left: 2, taken: 15 },
          { found: 'fault', fault: 'bad', others: OTHERS },
        ],
      },
      ['in_flight 12 (12)', 'foreign_redis! 7 (0 2 15 10)', 'foreign_redis! 0 (1 3 10)'],
      [0, -7],
    ],
    [
      'units that moved uncounted, and another total',
      { segments: [{ left: 13, supplied: 14 }, { left: 5 }] },
      ['foreign_redis! 2 (0 13 3 14)', 'foreign_redis! 2 (1 5 3 10)', 'unexplained! 4 (4)'],
      [0, -4],
    ],
    [
      'units supplied, beside units left that are no number',
      { segments: [{ found: 'fault', fault: 'bad', others: OTHERS }, { supplied: 12 }] },
      ['foreign_redis! 0 (0 3 10)', 'foreign_redis! 2 <counter segment=1 field=supplied off=2> (1 7 3 12)'],
      [0, 0],
    ],
    [
      'a counter that agrees with neither of the others',
      { segments: [{ supplied: 15, left: 9 }] },
      ['foreign_redis! 3 (0 9 3 15)', 'unexplained! 5 (5)'],
      [0, -2],
    ],
    [
      'units left that are no number',
      { segments: [{ found: 'fault', fault: 'bad', others: OTHERS }] },
      ['foreign_redis! 0 <counter segment=0 field=left off=undefined> (0 3 10)'],
      [0, 0],
    ],
    [
      'units left that are no number, and another total',
      { segments: [{ found: 'fault', fault: 'bad', others: { ...OTHERS, supplied: 12 } }] },
      ['foreign_redis! 0 (0 3 12)', 'unexplained! 2 (2)'],
      [0, -2],
    ],
    [
      'more units than Postgres gave',
      { segments: [{ left: 11, supplied: 14 }] },
      ['unexplained! 4 (4)'],
      [0, -4],
    ],
    ['fewer units', { segments: [{ left: 3, supplied: 6 }] }, ['unexplained! 4 (4)'], [0, 4]],
    [
      'fewer units in a segment that has lost writes',
      { segments: [{ left: 3, supplied: 6, state: 'lost' }] },
      ['lost_entries! 4 <rebuild> (4)'],
      [0, 4],
    ],
    [
      'units left that contradict the others, in a segment that has lost writes',
      { segments: [{ left: 9, state: 'lost' }] },
      ['foreign_redis! 2 (0 9 3 10)'],
      [0, -2],
    ],
    [
      'a log that others have written',
      { look: { logs: [{ cursor: lookOf({}).truth.cursors[1]!, units: 0, fault: 'bad' }] } },
      ['foreign_redis! 0 (1)'],
      [0, 0],
    ],
    [
      'a log with a gap',
      { look: { logs: [{ cursor: lookOf({}).truth.cursors[1]!, units: 0, problem: 'a gap' }] } },
      ['lost_entries! 0 <rebuild> (1)'],
      [0, 0],
    ],
    [
      'a log that holds other units than were taken',
      {
        look: { logs: [{ cursor: lookOf({}).truth.cursors[1]!, units: 3 }] },
        segments: [{}, { left: 5, taken: 5 }],
      },
      ['foreign_redis! 1 (1 3 2)', 'in_flight 2 (2)'],
      [0, 0],
    ],
    ['a missing record', { look: { record: undefined } }, ['lost_entries! 0 <rebuild> ()'], [0, 0]],
    [
      'a record that others have written',
      { look: { record: undefined, recordFault: 'bad' } },
      ['foreign_redis! 0 ()'],
      [0, 0],
    ],
  ])('finds a fault: %s', (_, spec, lines, differences) => {
    expect(found(spec)).toEqual(lines);
    expect(gaps(spec)).toEqual(differences);
  });

  it.each<[Spec, string[]]>([
    [{ segments: [{ left: 6, taken: 4 }] }, ['1 unit is taken and not in Postgres yet']],
    [
      { segments: [{ left: 5, supplied: 8, inTransit: 2 }] },
      ['2 units are on the way from one segment to another'],
    ],
    [
      { truth: { returned: 2, liveUnits: 4, pendingReturns: pending(1, 2, 9) }, row: { stock: 16 } },
      ["1 order with 2 units must still be removed from the buyers' records, for 9 s"],
    ],
    [
      { truth: { toppedUp: 3, movements: 3, pendingTopUps: pending(1, 3) }, row: { stock: 17 } },
      ['1 top-up with 3 units must still be credited to the segments'],
    ],
    [
      { truth: { openWithdrawals: pending(1, 5, 7) }, segments: [{ left: 5, supplied: 8, withdrawn: 2 }] },
      ['a withdrawal of 5 units has taken 2 out of the segments, for 7 s'],
    ],
    [
      { truth: { pendingChanges: pending(2, 0) } },
      ['2 changes of the sale must still be applied to the segments'],
    ],
    [{ truth: { pendingResizes: pending(1, 0, 61) } }, ['a resize of the sale is pending, for 61 s']],
    [
      { look: { given: { returned: 1, credited: 3, withdrawn: 2 } } },
      [
        "1 returned unit is not in the segments: the segments, or their buyers' records, have lost what came back",
        'the segments have lost a withdrawal: 2 withdrawn units are there again, or sold',
        'the segments never got 3 units of top-ups that the ledger calls applied',
      ],
    ],
    [
      { segments: [{ left: 3, supplied: 6 }] },
      [
        'the segments were supplied with 4 units fewer than Postgres gave them, and no counter contradicts another',
      ],
    ],
    [
      { segments: [{ left: 5, supplied: 8, withdrawn: 2 }] },
      ['2 units are out of the segments for a withdrawal that the ledger does not have'],
    ],
    [{ row: { stock: 15 } }, ['stock is 15 in Postgres; ledger and orders say 14, and so do the segments']],
    [
      { truth: { liveUnits: 5 }, row: { liveOrders: 1 } },
      [
        'the sale has 6 live orders in Postgres, and its row says 1: orders or row were changed',
        '1 unit left the stock without a live order, and the stock is what the segments say: orders or ledger were changed',
      ],
    ],
    [
      { segments: [{}, { left: 9 }] },
      ['segment 1: 9 units left, 3 taken, but 10 supplied: left was changed'],
    ],
    [
      { look: record({ state: 'paused' }) },
      ['the sale is open in Postgres and paused in the backend, and the ledger has no open change'],
    ],
    [
      {
        segments: [{ found: 'nothing' }, { found: 'fault', fault: 'bad' }],
        look: { record: undefined, recordFault: 'worse' },
      },
      [
        "the key of the sale's record was written by others: worse",
        'segment 0 is not in the backend in generation 4',
        'the key of segment 1 was written by others: bad',
      ],
    ],
    [
      { look: { logs: [{ cursor: lookOf({}).truth.cursors[1]!, units: 1 }] } },
      ['log of segment 1 holds 1 unit beyond the cursor; its counter says 0'],
    ],
  ])('says it in words: %j', (spec, texts) => {
    expect(judge(lookOf(spec)).findings.map(({ what }) => what)).toEqual(texts);
  });

  it('counts nothing where a segment is missing, or not readable', () => {
    const logs = [{ cursor: lookOf({}).truth.cursors[0]!, units: 9 }];
    const missing: Spec = { segments: [{ found: 'nothing' }], truth: { liveUnits: 5 }, look: { logs } };
    expect(found(missing)).toEqual(['lost_entries! 0 <rebuild> (0 4)', 'foreign_postgres! 1 (1)']);
    const broken: Spec = { segments: [{}, { found: 'fault', fault: 'bad' }] };
    expect(found(broken)).toEqual(['foreign_redis! 0 (1)']);
  });

  it('repairs nothing by a rebuild if Postgres contradicts itself', () => {
    const given = { returned: 2, credited: 0, withdrawn: 2 };
    const lost: Spec = { truth: { returned: 2, withdrawn: 2, liveUnits: 3 }, look: { given } };
    expect(found(lost).slice(0, 2)).toEqual(['foreign_redis! 2 (2)', 'lost_entries! 2 (2)']);
  });

  it('explains units that were withdrawn, and then sold by segments that had lost the withdrawal', () => {
    const [first, second] = lookOf({}).truth.cursors;
    const given = { returned: 0, credited: 0, withdrawn: 2 };
    const sold: Spec = {
      truth: { withdrawn: 2, movements: -2, cursors: [{ ...first!, units: 5 }, second!] },
      row: { stock: 12 },
      segments: [{ left: 5, taken: 5 }],
      look: { given },
    };
    expect(found(sold)).toEqual(['lost_entries! 2 <rebuild> (2)']);
    const more: Spec = { ...sold, segments: [{ left: 4, taken: 5, supplied: 9 }] };
    expect(found(more)).toEqual(['lost_entries! 2 <rebuild> (2)', 'unexplained! 1 (1)']);
  });

  it('does not call a withdrawal missing if the ledger has changed since', () => {
    const since = { isRebuilt: false, isChanged: true, moved: new Set<number>() };
    expect(found({ segments: [{ left: 5, supplied: 8, withdrawn: 2 }], look: { since } })).toEqual([]);
  });

  it.each<[string, Spec]>([
    ['a frozen segment', { segments: [{}, { state: 'frozen' }] }],
    ['a loaded segment', { segments: [{ state: 'loaded' }] }],
    ['a record of the generation before', { look: record({ generation: 3 }) }],
  ])('sees a rebuild under way by %s, and counts no segments', (_, spec) => {
    const judged = judge(lookOf(spec));
    expect(judged.isBuilding).toBe(true);
    expect(judged.findings.map(lineOf)).toEqual(['rebuild_pending! 0 <rebuild> (4)']);
    expect(judged.identities).toHaveLength(1);
  });

  it.each<[string, Spec, string[]]>([
    ['nothing', { look: { record: undefined } }, []],
    ['its record', {}, ['rebuild_pending! 0 <rebuild> ()']],
    [
      'a record that can’t be read',
      { look: { record: undefined, recordFault: 'bad' } },
      ['rebuild_pending! 0 <rebuild> ()'],
    ],
    [
      'what is being removed',
      { truth: { pendingChanges: pending(1, 0) } },
      ['change_pending 0 <rebuild> ()'],
    ],
    [
      'nothing, and Postgres does not know that yet',
      { truth: { pendingChanges: pending(1, 0) }, look: { record: undefined } },
      ['change_pending 0 <changes> ()'],
    ],
    [
      'nothing, and the stock was changed',
      { row: { stock: 13 }, look: { record: undefined } },
      ['foreign_postgres! 1 (1)'],
    ],
  ])('of an archived sale of which the backend has %s', (_, spec, lines) => {
    const archived = {
      ...spec,
      row: { ...spec.row, archivedAt: new Date() },
      segments: [{ state: 'frozen' } as const],
    };
    const judged = judge(lookOf(archived));
    expect(judged.findings.map(lineOf)).toEqual(lines);
    expect(judged).toMatchObject({ isBuilding: false, identities: [expect.anything()] });
  });

  it('is reported with the faults first, and without what only a repair needs', () => {
    const look = lookOf({
      truth: { rejectedOrders: 3, lostOrders: 4 },
      segments: [{ left: 9, taken: 5, supplied: 14 }],
    });
    const { findings, identities } = judge(look);
    const report = reportOf(look.truth, findings, identities);
    expect(report).toMatchObject({
      ...{
        saleId: 'sale',
        ok: false,
        rejectedOrders: 3,
        lostOrders: 4,
        committedOrders: 6,
        distinctBuyers: 5,
      },
      differences: [
        { cause: 'unexplained', isFault: true },
        { cause: 'in_flight', isFault: false },
      ],
    });
    expect(report.findings).toEqual([report.differences[0]!.what]);
    for (const difference of report.differences)
      expect(Object.keys(difference).sort()).toEqual(['cause', 'isFault', 'units', 'what']);
  });

  it('names the same contradiction alike in the next look', () => {
    const idOf = (left: number, supplied: number) =>
      judge(lookOf({ segments: [{ left, supplied }] })).findings.map(({ id }) => id);
    expect(idOf(9, 10)).toEqual(idOf(11, 12).slice(0, 1));
    expect(idOf(9, 10)).not.toEqual(idOf(8, 10));
  });
});

describe('records that must not be there', () => {
  const lines = (...given: Parameters<typeof judgeStrays>) => judgeStrays(...given).map(lineOf);

  it('are repaired by a rebuild, unless Postgres contradicts itself', () => {
    expect(lines([], 0)).toEqual([]);
    expect(lines([stray('order 1')], 0)).toEqual(['foreign_redis! 0 <rebuild> (1)']);
    expect(lines([stray('order 1')], 2)).toEqual(['foreign_redis! 0 (1)']);
    expect(lines([{ what: 'order 1', goneUnits: 2 }], -2)).toEqual(['foreign_redis! 0 (1)']);
  });

  it('were deleted in Postgres if their units are missing there, all of them', () => {
    const strays = [{ what: 'order 1', goneUnits: 2 }, { what: 'order 2', goneUnits: 3 }, stray('order 3')];
    expect(lines(strays, 5)).toEqual([
      ...['foreign_postgres! 0 (1)', 'foreign_postgres! 0 (2)'],
      'foreign_redis! 0 (3)',
    ]);
    expect(lines(strays, 4).slice(0, 2)).toEqual(['unexplained! 0 (1)', 'unexplained! 0 (2)']);
    expect(lines(strays, 0)[0]).toBe('foreign_redis! 0 <rebuild> (1)');
  });

  it('are named up to five, and the rest is counted', () => {
    const many = (count: number) => Array.from({ length: count }, () => stray('order'));
    const rest = (count: number) =>
      judgeStrays(many(count), 0)
        .slice(5)
        .map(({ what }) => what);
    expect(judgeStrays(many(5), 0)).toHaveLength(5);
    expect(rest(6)).toEqual([expect.stringMatching(/^1 more order in/)]);
    expect(rest(8)).toEqual([expect.stringMatching(/^3 more orders in/)]);
    expect(rest(MAX_STRAYS - 1)).toEqual([expect.stringMatching(/^994 more/)]);
    expect(rest(MAX_STRAYS)).toEqual([expect.stringMatching(/^at least 995 more/)]);
  });
});

it('work is said to wait if it has for two seconds', () => {
  expect(waiting(pending(1, 1, 1.9))).toBe('');
  expect(waiting(pending(1, 1, 2))).toContain('2 s');
  expect(waiting(pending(1, 1, 2.6))).toContain('3 s');
});

it('an error tells of a foreign write if the data are no data of ours; others are passed on', () => {
  const reply = Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' });
  for (const error of [new BackendCorrupt('corrupt'), new SyntaxError('syntax'), reply])
    expect(foreignWriteIn(error)).toBe(error.message);
  for (const error of [new Error('away'), { name: 'ReplyError', message: 'x' }, undefined])
    expect(() => foreignWriteIn(error)).toThrow();
});

it.each([
  "NOPERM User ann has no permissions to run the 'hscan' command",
  "OOM command not allowed when used memory > 'maxmemory'.",
  'LOADING Redis is loading the dataset in memory',
  "ERR The user executing the script can't access at least one of the keys",
  '@user_script: 7: -READONLY You can’t write against a read only replica.',
])('a Redis that refuses a command tells of no foreign write: %s', (message) => {
  const error = Object.assign(new Error(message), { name: 'ReplyError' });
  expect(() => foreignWriteIn(error)).toThrow(message);
  expect(answerIn(error)).toBe(message);
});

it.each(['ERR hash value is not an integer', 'CORRUPT units left in x', 'ERR it was OOM'])(
  'a Redis that has read the key tells of one: %s',
  (message) => {
    expect(foreignWriteIn(Object.assign(new Error(message), { name: 'ReplyError' }))).toBe(message);
  },
);
