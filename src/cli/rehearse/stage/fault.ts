/** A fault that a rehearsal has made, and how long it may be felt. */

export type FaultKind = 'kill-node' | 'cut-redis';

/** A fault, and the seconds of the crowd in which it lasted. */
export interface Fault {
  readonly kind: FaultKind;
  readonly from: number;
  readonly until: number;
}

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

export function faultText({ kind, from, until }: Fault): string {
  return kind === 'kill-node'
    ? `In second ${Math.floor(from) + 1} one node was killed. Its buyers went on at the others.`
    : `From second ${Math.floor(from) + 1} to second ${Math.floor(until) + 1} one node was cut off from Redis. Its buyers went on at the others.`;
}
