/**
 * Tells which of three figures is wrong, if they contradict each other (stock.ts has the equations): the stock in Postgres, the
 * units put into the segments (`supplied`), or the units that a segment has left.
 */

import type { SegmentCounts } from '../engine/contract.ts';
import { begunUnits } from '../engine/sale/begun-units.ts';
import { counted, countedAre } from '../lib/counted.ts';
import { areMoving, type Finding, fault, type Look, underWay } from './finding.ts';
import type { RepairStep } from './repair-step.ts';

/** The counters of all segments added up, and the units that the cursors have applied. */
export type Sums = Omit<SegmentCounts, 'state' | 'seq' | 'isMoving'> & { readonly applied: number };

type Counter = 'left' | 'supplied';

/**
 * @param counts of all segments, in their order
 * @param lostWithdrawals units that Postgres has withdrawn and the segments still have
 * @param soldGap see `Judgement`
 */
export function judgeCounters(
  look: Look,
  counts: readonly SegmentCounts[],
  sums: Sums,
  lostWithdrawals: number,
  soldGap: number,
): Finding[] {
  const shortfall = shortfallOf(look, sums);
  // Ledger and orders prove the stock, and the segments agree with them: only the stock was changed.
  const isStockChanged = soldGap !== 0 && shortfall === -soldGap;
  // Units that were withdrawn and then sold are in the cursors, but Postgres had none left for them.
  const soldAgain = Math.min(Math.max(0, shortfall), lostWithdrawals);
  const gap = isStockChanged ? 0 : shortfall - soldAgain;
  if (areMoving(look)) return whileMoving(look, counts, shortfall - soldAgain, soldGap);
  const surpluses = counts.map(surplusOf);
  const isMoved = gap === 0 && onlyMoved(look, surpluses);
  const wrong = isMoved ? 'supplied' : wrongCounter(gap, sumOf(surpluses));
  const hasLostWrites = hasLost(look);
  const proven = provenCounters(look, counts, hasLostWrites ? undefined : wrong);
  return [
    ...(isStockChanged
      ? [stockChanged(look, soldGap)]
      : gapFindings(soldGap, ', and the stock is what the segments say: orders or ledger were changed')),
    ...counts.flatMap((each, segment) =>
      contradiction(look, each, segment, surpluses[segment]!, proven[segment]),
    ),
    ...(wrong === undefined ? [unexplained(gap, hasLostWrites)] : []),
  ];
}

/** The sum of segments between which units kept moving proves neither a loss nor which counter is wrong. */
function whileMoving(look: Look, counts: readonly SegmentCounts[], gap: number, soldGap: number): Finding[] {
  const what = `${countedAre(Math.abs(gap), 'unit')} on the way between segments, or not there: units kept moving while the segments were read`;
  return [
    ...gapFindings(soldGap, ': orders, stock or ledger were changed'),
    ...counts.flatMap((each, segment) => contradiction(look, each, segment, surplusOf(each), undefined)),
    ...(gap === 0 ? [] : [underWay('transfer_pending', gap, what)]),
  ];
}

/** Units that the segments began the generation with, as Postgres has it, minus those that their counters say they began with. */
function shortfallOf({ truth }: Look, sums: Sums): number {
  const byPostgres = truth.row.stock + sums.applied - truth.returned - truth.toppedUp + truth.withdrawn;
  const bySupplied = begunUnits(sums) + sums.inTransit;
  return byPostgres - bySupplied;
}

/** Units that were put into a segment and are neither left nor taken; 0 where its counters agree. */
function surplusOf({ supplied, left, taken }: SegmentCounts): number {
  return supplied - left - taken;
}

/**
 * Whether units have only moved between segments, uncounted: all together, the segments have what Postgres gave them. The
 * refills of version 0.1.0 don't change `supplied`. Correcting `left` would give one segment units that another has sold.
 */
function onlyMoved({ segments }: Look, surpluses: readonly number[]): boolean {
  return segments.every(({ found }) => found === 'sound') && sumOf(surpluses) === 0;
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/**
 * The counter that contradicts the two other figures. If Postgres agrees with `supplied`, it is `left`. If Postgres and `left` make
 * up the same difference, it is `supplied`. Otherwise nothing proves it.
 */
function wrongCounter(shortfall: number, surplus: number): Counter | undefined {
  if (shortfall === 0) return 'left';
  return shortfall + surplus === 0 ? 'supplied' : undefined;
}

/**
 * Orders, stock and ledger in Postgres contradict each other.
 * @param conclusion the end of the sentence
 */
export function gapFindings(soldGap: number, conclusion: string): Finding[] {
  if (soldGap === 0) return [];
  const what =
    soldGap > 0
      ? `${counted(soldGap, 'unit')} left the stock without a live order`
      : `live orders have ${counted(-soldGap, 'unit')} that never left the stock`;
  return [fault('foreign_postgres', soldGap, `${what}${conclusion}`)];
}

function stockChanged({ truth }: Look, soldGap: number): Finding {
  const { stock } = truth.row;
  return fault(
    'foreign_postgres',
    soldGap,
    `stock is ${stock} in Postgres; ledger and orders say ${stock + soldGap}, and so do the segments`,
  );
}

/**
 * The counter of each segment that may be set to the value which the two others give. Only all segments together prove that `left`
 * is wrong. So a segment gets units only if all others can be corrected too: otherwise they may be units that have moved to
 * another segment, which has sold them.
 */
function provenCounters(
  look: Look,
  counts: readonly SegmentCounts[],
  wrong: Counter | undefined,
): (Counter | undefined)[] {
  const isUnreadable = (segment: number) => look.segments[segment]!.found === 'fault';
  const isProven = ({ supplied, taken }: SegmentCounts, segment: number) => {
    if (!look.confirmed.has(segment)) return false;
    return wrong === 'supplied' ? !isUnreadable(segment) : supplied >= taken;
  };
  const areAllProven = counts.every(
    (each, segment) => (surplusOf(each) === 0 && !isUnreadable(segment)) || isProven(each, segment),
  );
  return counts.map((each, segment) => {
    const getsUnits = wrong === 'left' && (surplusOf(each) > 0 || isUnreadable(segment));
    return isProven(each, segment) && (areAllProven || !getsUnits) ? wrong : undefined;
  });
}

/**
 * The counters of one segment contradict each other, which the engine never causes.
 * @param proven the counter that is proven to be wrong
 */
function contradiction(
  look: Look,
  { left, taken, supplied }: SegmentCounts,
  segment: number,
  surplus: number,
  proven: Counter | undefined,
): Finding[] {
  const found = look.segments[segment]!;
  const isUnreadable = found.found === 'fault';
  if (surplus === 0 && !isUnreadable) return [];
  const leftText = isUnreadable ? found.fault : `${counted(left, 'unit')} left`;
  const what = `segment ${segment}: ${leftText}, ${taken} taken, but ${supplied} supplied`;
  const repair: RepairStep | undefined = proven && {
    kind: 'counter',
    segment,
    field: proven,
    off: isUnreadable ? undefined : surplus,
  };
  const which = proven ? `: ${proven} was changed` : '';
  return [
    {
      ...fault('foreign_redis', surplus, `${what}${which}`, repair),
      id: `counters of ${segment}: ${surplus}`,
    },
  ];
}

function unexplained(units: number, hasLostWrites: boolean): Finding {
  const found = `the segments were supplied with ${counted(Math.abs(units), 'unit')} ${units > 0 ? 'fewer' : 'more'} than Postgres gave them`;
  return hasLostWrites
    ? fault('lost_entries', units, `${found}: they have lost writes`, { kind: 'rebuild' })
    : fault('unexplained', units, `${found}, and no counter contradicts another`);
}

/** Whether anything shows that the backend has lost writes. */
function hasLost({ record, logs, segments }: Look): boolean {
  const isLost = segments.some((found) => found.found === 'sound' && found.state === 'lost');
  return record === undefined || isLost || logs.some(({ problem }) => problem !== undefined);
}
