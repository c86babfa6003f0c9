/**
 * Finds where the unsold units are, and which store is wrong if they do not agree.
 *
 *   stock = in segments + in transit + in logs beyond the cursors + what the segments have not applied yet
 *
 * Three witnesses tell which one is wrong. Postgres knows the stock, and what it gave the segments since their
 * generation began. A segment knows the units put into it (`supplied`), and which of them came by returns, changes
 * and withdrawals. And a segment knows what it has left and what was taken. So
 *
 *   begun = stock + applied by the cursors - returned - topped up + withdrawn     by Postgres
 *         = supplied - returned - credited + withdrawn, over all segments         by what was put in
 *   supplied = left + taken                                                       in each segment
 *
 * hold even if the two stores are read at different instants: the engine's own work changes none of these sides,
 * except for a rebuild, which changes the generation. If two witnesses agree, the third is wrong. If all three
 * disagree, nothing proves which is right.
 */
import type { SegmentAudit, SegmentCounts } from '../engine/contract.ts';
import type { Identity } from '../operations/verify-report.ts';
import {
  counted,
  countsOf,
  type Finding,
  fault,
  identity,
  type Look,
  term,
  underWay,
  waiting,
} from './finding.ts';
import type { Mend } from './mend.ts';
import type { Pending, Truth } from './truth.ts';

interface Sums {
  readonly left: number;
  readonly taken: number;
  readonly supplied: number;
  readonly returned: number;
  readonly credited: number;
  readonly withdrawn: number;
  readonly inTransit: number;
  readonly applied: number;
}

export function judgeStock(look: Look, soldOff: number): { identity: Identity; findings: Finding[] } {
  const { truth, segments } = look;
  const all = segments.map(countsOf);
  const sum = (field: Exclude<keyof SegmentCounts, 'state' | 'seq'>) =>
    all.reduce((total, counts) => total + (counts?.[field] ?? 0), 0);
  const sums: Sums = {
    left: sum('left'),
    taken: sum('taken'),
    supplied: sum('supplied'),
    returned: sum('returned'),
    credited: sum('credited'),
    withdrawn: sum('withdrawn'),
    inTransit: sum('inTransit'),
    applied: truth.cursors.reduce((total, { units }) => total + units, 0),
  };
  const pending = pendingUnits(truth, sums);
  const stock = identity(
    'Postgres and the segments agree',
    [term('stock', truth.row.stock)],
    [
      term('in segments', sums.left - pending.ahead),
      term('in transit', sums.inTransit),
      term('in logs beyond the cursors', sums.taken - sums.applied),
      term('returns not yet applied', pending.returns),
      ...(pending.topUps === 0 ? [] : [term('top-ups not yet applied', pending.topUps)]),
      ...(pending.withdrawals === 0 ? [] : [term('withdrawals under way', pending.withdrawals)]),
    ],
  );
  const isWhole = all.every((counts) => counts !== undefined);
  return {
    identity: stock,
    findings: [
      ...work(look, sums, pending),
      ...swallowed(look, pending, soldOff),
      ...(isWhole ? witnesses(look, sums, pending, soldOff) : soldOnly(soldOff)),
    ],
  };
}

interface PendingUnits {
  readonly returns: number;
  readonly topUps: number;
  readonly withdrawals: number;
  /** Units that the segments lack although Postgres has no pending return or top-up for them. */
  readonly lostReturns: number;
  readonly lostTopUps: number;
  /** Units that Postgres has withdrawn and the segments still have, or have again. */
  readonly lostWithdrawals: number;
  /** Units that the segments received for commits after Postgres was read: they are left out. */
  readonly ahead: number;
}

function pendingUnits(truth: Truth, { returned, credited, withdrawn }: Sums): PendingUnits {
  const returns = truth.returned - returned;
  const topUps = truth.toppedUp - credited;
  const withdrawals = withdrawn - truth.withdrawn;
  return {
    returns: clamp(returns, truth.pendingReturns),
    topUps: clamp(topUps, truth.pendingTopUps),
    withdrawals: Math.max(0, withdrawals),
    lostReturns: Math.max(0, returns - truth.pendingReturns.units),
    lostTopUps: Math.max(0, topUps - truth.pendingTopUps.units),
    lostWithdrawals: Math.max(0, -withdrawals),
    ahead: Math.max(0, -returns) + Math.max(0, -topUps),
  };
}

function clamp(units: number, { units: most }: Pending): number {
  return Math.max(0, Math.min(units, most));
}

function work({ truth }: Look, { taken, applied, inTransit }: Sums, pending: PendingUnits): Finding[] {
  const { pendingReturns: returns, pendingTopUps: topUps, openWithdrawals: open } = truth;
  const findings: Finding[] = [];
  const inLogs = taken - applied;
  if (inLogs > 0) {
    findings.push(underWay('in_flight', inLogs, `${inLogs} units are taken and not in Postgres yet`));
  }
  if (inTransit > 0) {
    const what = `${inTransit} units are on their way from one segment to another`;
    findings.push(underWay('transfer_pending', inTransit, what, { kind: 'transfers' }));
  }
  if (returns.count > 0) {
    const what = `${counted(returns.count, 'order')} of ${returns.units} units to be removed from the segments' records${waiting(returns)}`;
    findings.push(underWay('return_pending', pending.returns, what, { kind: 'returns' }));
  }
  if (topUps.count > 0) {
    const what = `${counted(topUps.count, 'top-up')} of ${topUps.units} units to be credited to the segments${waiting(topUps)}`;
    findings.push(underWay('top_up_pending', pending.topUps, what, { kind: 'changes' }));
  }
  if (open.count > 0) {
    const what = `a withdrawal of ${open.units} units has taken ${pending.withdrawals} out of the segments${waiting(open)}`;
    findings.push(
      underWay('withdrawal_pending', pending.withdrawals, what, { kind: 'withdrawals', ageS: open.ageS }),
    );
  }
  return findings;
}

/**
 * Units that Postgres counts as given to the segments, and the segments never got or have lost again; and units that
 * Postgres has withdrawn and the segments still have. If Postgres' own data is consistent, a rebuild brings both to
 * its stock.
 */
function swallowed(
  { truth, since }: Look,
  { lostReturns, lostTopUps, lostWithdrawals, withdrawals }: PendingUnits,
  soldOff: number,
): Finding[] {
  const findings: Finding[] = [];
  const rebuild: Mend | undefined = soldOff === 0 ? { kind: 'rebuild' } : undefined;
  if (lostReturns > 0) {
    const what = `${lostReturns} returned units are not in the segments: the segments, or their buyers' records, have lost them`;
    findings.push(fault('foreign_redis', lostReturns, what, rebuild));
  }
  if (lostWithdrawals > 0) {
    const what = `${lostWithdrawals} units that were withdrawn are in the segments again, or were sold: the segments have lost the withdrawal`;
    findings.push(fault('lost_entries', lostWithdrawals, what, rebuild));
  }
  if (lostTopUps > 0) {
    const what = `${lostTopUps} units of top-ups that the ledger calls applied were never credited to the segments`;
    findings.push(fault('foreign_postgres', lostTopUps, what));
  }
  if (withdrawals > 0 && truth.openWithdrawals.count === 0 && !since.isChanged) {
    const what = `${withdrawals} units are out of the segments for a withdrawal that the ledger does not have`;
    findings.push(fault('foreign_postgres', withdrawals, what));
  }
  return findings;
}

function soldOnly(soldOff: number): Finding[] {
  return soldOff === 0
    ? []
    : [fault('foreign_postgres', soldOff, `${ordersOff(soldOff)}: orders, stock or ledger were changed`)];
}

function witnesses(look: Look, sums: Sums, { lostWithdrawals }: PendingUnits, soldOff: number): Finding[] {
  const { truth, segments } = look;
  const begunByPostgres = truth.row.stock + sums.applied - truth.returned - truth.toppedUp + truth.withdrawn;
  const begunBySupplied = sums.supplied - sums.returned - sums.credited + sums.withdrawn + sums.inTransit;
  const off = begunByPostgres - begunBySupplied;
  const isStock = soldOff !== 0 && off === -soldOff;
  // Units that were withdrawn and then sold are in the cursors, but Postgres had none left for them.
  const refused = Math.min(Math.max(0, off), lostWithdrawals);
  // The difference that remains beside a changed stock, which ledger and orders prove.
  const rest = isStock ? 0 : off - refused;
  const offs = segments.map((found) => {
    const counts = countsOf(found);
    return counts ? counts.supplied - counts.left - counts.taken : 0;
  });
  const sumOff = offs.reduce((total, each) => total + each, 0);
  const wrong = rest === 0 ? 'left' : sumOff + rest === 0 ? 'supplied' : undefined;
  const isLost = isBroken(look);
  return [
    ...(soldOff === 0
      ? []
      : [
          isStock
            ? stockChanged(look, soldOff)
            : fault(
                'foreign_postgres',
                soldOff,
                `${ordersOff(soldOff)}, and the stock is what the segments say: orders or ledger were changed`,
              ),
        ]),
    ...segments.flatMap((found, segment) =>
      contradiction(look, found, segment, offs[segment]!, isLost ? undefined : wrong),
    ),
    ...(wrong === undefined ? [unexplained(rest, isLost)] : []),
  ];
}

function stockChanged({ truth }: Look, soldOff: number): Finding {
  const { stock } = truth.row;
  return fault(
    'foreign_postgres',
    soldOff,
    `stock is ${stock} in Postgres; ledger and orders say ${stock + soldOff}, and so do the segments`,
  );
}

const ordersOff = (soldOff: number) =>
  soldOff > 0
    ? `${soldOff} units have left the stock without a live order`
    : `live orders have ${-soldOff} units that never left the stock`;

/** The counters of one segment contradict each other, which the engine never causes. */
function contradiction(
  look: Look,
  found: SegmentAudit,
  segment: number,
  off: number,
  wrong: 'left' | 'supplied' | undefined,
): Finding[] {
  const counts = countsOf(found);
  const isUnreadable = found.found === 'fault';
  if (!counts || (off === 0 && !isUnreadable)) return [];
  const { left, taken, supplied } = counts;
  const held = isUnreadable ? found.fault : `${left} units left`;
  const what = `segment ${segment}: ${held}, ${taken} taken, but ${supplied} supplied`;
  const field = isUnreadable && wrong === 'supplied' ? undefined : wrong;
  const isProven = look.confirmed.has(segment) && (field === 'supplied' || supplied >= taken);
  const mend: Mend | undefined =
    field && isProven ? { kind: 'counter', segment, field, off: isUnreadable ? undefined : off } : undefined;
  const which = mend ? `: ${field} was changed` : '';
  return [{ ...fault('foreign_redis', off, `${what}${which}`, mend), id: `counters of ${segment}: ${off}` }];
}

function unexplained(units: number, isLost: boolean): Finding {
  const found = `the segments were supplied with ${Math.abs(units)} units ${units > 0 ? 'fewer' : 'more'} than Postgres gave them`;
  return isLost
    ? fault('lost_entries', units, `${found}: they have lost writes`, { kind: 'rebuild' })
    : fault('unexplained', units, `${found}, and no counter contradicts another`);
}

function isBroken({ record, logs, segments }: Look): boolean {
  const isLost = segments.some((found) => found.found === 'sound' && found.state === 'lost');
  return record === undefined || isLost || logs.some(({ problem }) => problem !== undefined);
}
