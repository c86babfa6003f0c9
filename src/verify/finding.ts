/** Words for what a look has found. */
import type { SaleRecord, SegmentAudit, SegmentCounts } from '../engine/contract.ts';
import type { Cause, Difference, Identity, Term } from '../operations/verify-report.ts';
import type { LogCount } from './logs.ts';
import type { Mend } from './mend.ts';
import type { Pending, Since, Truth } from './truth.ts';

/** One look at both stores: Postgres first, at one instant, then the segments, at one of theirs, then what has moved. */
export interface Look {
  readonly truth: Truth;
  readonly record: SaleRecord | undefined;
  /** What the record's key holds, if it is none. */
  readonly recordFault?: string;
  readonly segments: readonly SegmentAudit[];
  /** Of logs that were not trimmed while they were counted. */
  readonly logs: readonly LogCount[];
  /** Segments whose logs were found to agree with their counters, in this look or before. */
  readonly confirmed: ReadonlySet<number>;
  readonly since: Since;
}

export interface Finding extends Difference {
  /** By which the next look knows it again, where the sentence has numbers that move; else the sentence. */
  readonly id?: string;
  /** What would put it right, where that is proven. */
  readonly mend?: Mend;
}

export function fault(cause: Cause, units: number, what: string, mend?: Mend): Finding {
  return { cause, units: Math.abs(units), isFault: true, what, ...(mend && { mend }) };
}

export function underWay(cause: Cause, units: number, what: string, mend?: Mend): Finding {
  return { ...fault(cause, units, what, mend), isFault: false };
}

/** The counters, also where `left` alone is no number: it follows from the others. */
export function countsOf(found: SegmentAudit | undefined): SegmentCounts | undefined {
  if (found?.found === 'sound') return found;
  if (found?.found !== 'fault' || !found.others) return undefined;
  return { ...found.others, left: found.others.supplied - found.others.taken };
}

export function identity(name: string, left: Term[], right: Term[]): Identity {
  const sum = (terms: Term[]) => terms.reduce((total, { units }) => total + units, 0);
  return { name, left, right, difference: sum(left) - sum(right) };
}

export function term(name: string, units: number): Term {
  return { name, units };
}

export const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** What waits for longer than a moment says so: its maker has died, and no sync has made up for him. */
export function waiting({ ageS }: Pending): string {
  return ageS < 2 ? '' : `, for ${Math.round(ageS)} s`;
}
