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

import { counted, countedAre } from '../lib/counted.ts';
import type { Identity } from '../operations/verify-report.ts';
import { gapFindings, judgeCounters, type Sums } from './counters.ts';
import { countsOf, type Finding, fault, identity, type Look, term, underWay, waiting } from './finding.ts';
import type { RepairStep } from './repair-step.ts';
import type { Pending } from './truth.ts';

/** @param soldGap see `Judgement` */
export function judgeStock(look: Look, soldGap: number): { identity: Identity; findings: Finding[] } {
  const { truth, segments } = look;
  const readable = segments.flatMap((found) => countsOf(found) ?? []);
  const sum = (field: keyof Omit<Sums, 'applied'>) =>
    readable.reduce((total, counts) => total + counts[field], 0);
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
  const pending = pendingUnits(look, sums);
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
  return {
    identity: stock,
    findings: [
      ...pendingFindings(look, sums, pending),
      ...lostFindings(look, pending, soldGap),
      ...(readable.length === segments.length
        ? judgeCounters(look, readable, sums, pending.lostWithdrawals, soldGap)
        : gapFindings(soldGap, ': orders, stock or ledger were changed')),
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

function pendingUnits({ truth, given }: Look, { returned, credited, withdrawn }: Sums): PendingUnits {
  const returns = truth.returned - returned;
  const topUps = truth.toppedUp - credited;
  const withdrawals = withdrawn - truth.withdrawn;
  return {
    returns: clamp(returns, truth.pendingReturns),
    topUps: clamp(topUps, truth.pendingTopUps),
    withdrawals: Math.max(0, withdrawals),
    lostReturns: Math.max(0, (given?.returned ?? 0) - returned),
    lostTopUps: Math.max(0, (given?.credited ?? 0) - credited),
    lostWithdrawals: Math.max(0, (given?.withdrawn ?? 0) - withdrawn),
    ahead: Math.max(0, -returns) + Math.max(0, -topUps),
  };
}

function clamp(units: number, { units: most }: Pending): number {
  return Math.max(0, Math.min(units, most));
}

/** Work that a process is about to do. */
function pendingFindings(
  { truth }: Look,
  { taken, applied, inTransit }: Sums,
  pending: PendingUnits,
): Finding[] {
  const { pendingReturns: returns, pendingTopUps: topUps, openWithdrawals: open } = truth;
  const findings: Finding[] = [];
  const inLogs = taken - applied;
  if (inLogs > 0) {
    findings.push(
      underWay('in_flight', inLogs, `${countedAre(inLogs, 'unit')} taken and not in Postgres yet`),
    );
  }
  if (inTransit > 0) {
    const what = `${countedAre(inTransit, 'unit')} on the way from one segment to another`;
    findings.push(underWay('transfer_pending', inTransit, what, { kind: 'transfers' }));
  }
  if (returns.count > 0) {
    const what = `${counted(returns.count, 'order')} with ${counted(returns.units, 'unit')} must still be removed from the buyers' records${waiting(returns)}`;
    findings.push(underWay('return_pending', pending.returns, what, { kind: 'returns' }));
  }
  if (topUps.count > 0) {
    const what = `${counted(topUps.count, 'top-up')} with ${counted(topUps.units, 'unit')} must still be credited to the segments${waiting(topUps)}`;
    findings.push(underWay('top_up_pending', pending.topUps, what, { kind: 'changes' }));
  }
  if (open.count > 0) {
    const what = `a withdrawal of ${counted(open.units, 'unit')} has taken ${pending.withdrawals} out of the segments${waiting(open)}`;
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
function lostFindings(
  { truth, since }: Look,
  { lostReturns, lostTopUps, lostWithdrawals, withdrawals }: PendingUnits,
  soldGap: number,
): Finding[] {
  const findings: Finding[] = [];
  const rebuild: RepairStep | undefined = soldGap === 0 ? { kind: 'rebuild' } : undefined;
  if (lostReturns > 0) {
    const what = `${countedAre(lostReturns, 'returned unit')} not in the segments: the segments, or their buyers' records, have lost what came back`;
    findings.push(fault('foreign_redis', lostReturns, what, rebuild));
  }
  if (lostWithdrawals > 0) {
    const what = `the segments have lost a withdrawal: ${countedAre(lostWithdrawals, 'withdrawn unit')} there again, or sold`;
    findings.push(fault('lost_entries', lostWithdrawals, what, rebuild));
  }
  if (lostTopUps > 0) {
    const what = `the segments never got ${counted(lostTopUps, 'unit')} of top-ups that the ledger calls applied`;
    findings.push(fault('foreign_postgres', lostTopUps, what));
  }
  if (withdrawals > 0 && truth.openWithdrawals.count === 0 && !since.isChanged) {
    const what = `${countedAre(withdrawals, 'unit')} out of the segments for a withdrawal that the ledger does not have`;
    findings.push(fault('foreign_postgres', withdrawals, what));
  }
  return findings;
}
