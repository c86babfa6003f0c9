/** Types and helpers for findings. */
import type { SaleRecord, SegmentAudit, SegmentCounts } from '../engine/contract.ts';
import type { Cause, Difference, Identity, Term } from '../operations/verify-report.ts';
import type { UnitCounts } from '../sales/given-units.ts';
import type { LogCount } from './logs.ts';
import type { RepairStep } from './repair-step.ts';
import type { Pending, Since, Truth } from './truth.ts';

/**
 * One reading of both stores: Postgres at one instant, then the segments at one instant, then what has changed since.
 */
export interface Look {
  readonly truth: Truth;
  readonly record: SaleRecord | undefined;
  /** Why the record can't be read. */
  readonly recordFault?: string;
  readonly segments: readonly SegmentAudit[];
  /**
   * What Postgres had marked as given to the segments just before they were read; `undefined`: the sale is archived, or was rebuilt
   * meanwhile.
   */
  readonly given: UnitCounts | undefined;
  /** Counts of logs that were not trimmed meanwhile. */
  readonly logs: readonly LogCount[];
  /** Segments whose logs agreed with their counters, in this look or an earlier one. */
  readonly confirmed: ReadonlySet<number>;
  readonly since: Since;
}

export interface Finding extends Difference {
  /** Identifies the same finding in the next look, if its text has numbers that change; default: the text. */
  readonly id?: string;
  /** The repair, if it is proven. */
  readonly repair?: RepairStep;
}

export function fault(cause: Cause, units: number, what: string, repair?: RepairStep): Finding {
  return { cause, units: Math.abs(units), isFault: true, what, ...(repair && { repair }) };
}

export function underWay(cause: Cause, units: number, what: string, repair?: RepairStep): Finding {
  return { ...fault(cause, units, what, repair), isFault: false };
}

/** The counters. If only `left` is not a number, it is computed from the others. */
export function countsOf(found: SegmentAudit | undefined): SegmentCounts | undefined {
  if (found?.found === 'sound') return found;
  if (found?.found !== 'fault' || !found.others) return undefined;
  return { ...found.others, left: found.others.supplied - found.others.taken };
}

/** Whether units kept moving between the segments while these were read, so that their sum is not certain. */
export function areMoving({ segments }: Pick<Look, 'segments'>): boolean {
  return segments.some((found) => found.found === 'sound' && found.isMoving);
}

export function identity(name: string, left: Term[], right: Term[]): Identity {
  const sum = (terms: Term[]) => terms.reduce((total, { units }) => total + units, 0);
  return { name, left, right, difference: sum(left) - sum(right) };
}

export function term(name: string, units: number): Term {
  return { name, units };
}

/**
 * How long the oldest of this work has waited, as the end of a sentence; `''` if that is only a moment. If it is longer, the process
 * that began the work has died, and no sync has finished it.
 */
export function waiting({ ageS }: Pending): string {
  return ageS < 2 ? '' : `, for ${Math.round(ageS)} s`;
}
