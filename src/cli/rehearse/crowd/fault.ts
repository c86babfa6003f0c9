/** Faults that a rehearsal makes, and how long they may be felt. */
import type { Arrivals } from './arrivals.ts';

export type FaultKind = 'kill-node' | 'cut-redis';

/** A fault, and the seconds of the crowd in which it lasted. */
export interface Fault {
  readonly kind: FaultKind;
  readonly from: number;
  readonly until: number;
}

/** Where in the time of the crowd the fault comes, as a share: while its rate is the highest. */
export const AT_SHARE: Readonly<Record<Arrivals, number>> = { steady: 0.45, rush: 0.12, waves: 0.44 };
/** How long Redis is cut off: longer than the deadline of a purchase. */
export const CUT_SECONDS = 3;
/** A fault may come this much later than planned. */
const SLACK_SECONDS = 0.5;
/** A request that was due up to this time before the fault may have been under way. */
const BEFORE_SECONDS = 2;
/** By this time after the fault, other nodes have taken over the work of a killed node, and a cut-off node is connected again. */
const AFTER_SECONDS = 4;

/** Whether slow and repeated answers of this second are those of a fault. Nothing else is excused: the accounts must balance. */
export function isExcused(second: number, faults: readonly Fault[]): boolean {
  return faults.some(
    ({ from, until }) =>
      second >= Math.floor(from) - BEFORE_SECONDS && second <= Math.floor(until) + AFTER_SECONDS,
  );
}

/** The least seconds of a crowd after whose fault a whole second follows that is not excused. */
export function leastSecondsFor(kind: FaultKind, arrivals: Arrivals): number {
  const lasts = kind === 'cut-redis' ? CUT_SECONDS : 0;
  let seconds = 1;
  const lastExcused = () => Math.floor(AT_SHARE[arrivals] * seconds + lasts + SLACK_SECONDS) + AFTER_SECONDS;
  while (lastExcused() + 2 > seconds) seconds++;
  return seconds;
}

export function faultText({ kind, from, until }: Fault): string {
  return kind === 'kill-node'
    ? `In second ${Math.floor(from) + 1} one node was killed. Its buyers went on at the others.`
    : `From second ${Math.floor(from) + 1} to second ${Math.floor(until) + 1} one node was cut off from Redis. Its buyers went on at the others.`;
}
