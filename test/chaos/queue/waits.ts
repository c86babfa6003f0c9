/** When each place waited, and when its buyer was surely there. */
import type { Memory } from './memory.ts';
import type { QueueTruth } from './truth.ts';

/** Time in which a node writes of whom it has heard, on a slow machine. */
const HEARD_SLACK_MS = 2_000;

/** From the beginning of a strike until its processes must have recovered. */
export interface FaultTime {
  readonly fromMs: number;
  /** When everything was restored. */
  readonly overMs: number;
  /** `overMs` and the time for the recovery. */
  readonly recoveredMs: number;
}

export interface JudgedQueue {
  /** The initial one. */
  readonly stock: number;
  readonly presenceMs: number;
  readonly faults: readonly FaultTime[];
  /** When the sale was closed: later, nobody waits for a unit. */
  readonly closedMs: number;
}

/** A place, from when it was given until it got its offer or ended. */
export interface Wait {
  readonly rank: number;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly isOffered: boolean;
  /** Whether its buyer was surely there: every node and head must have counted it as present. */
  isPresent(atMs: number): boolean;
}

export function waitsOf(
  { places, orders }: QueueTruth,
  people: ReadonlyMap<string, Memory>,
  queue: JudgedQueue,
): Wait[] {
  const offeredAtMs = new Map<number, number>();
  for (const { number, committedAtMs, isRejected } of orders)
    if (!isRejected)
      offeredAtMs.set(number, Math.min(committedAtMs, offeredAtMs.get(number) ?? committedAtMs));
  return places.map(({ number, rank, buyerId, givenAtMs, endedAtMs }) => {
    const memory = people.get(buyerId);
    const offered = offeredAtMs.get(number);
    return {
      rank,
      fromMs: givenAtMs,
      untilMs: offered ?? endedAtMs ?? queue.closedMs,
      isOffered: offered !== undefined,
      isPresent: (atMs) => memory !== undefined && isSurelyPresent(memory, atMs, queue),
    };
  });
}

/**
 * Whether the person was heard of within `presenceSeconds`, less HEARD_SLACK_MS at both ends: a node writes once a second of whom it
 * has heard. What a node heard just before a fault may die with it, so that does not count.
 */
export function isSurelyPresent(
  { heardAtMs }: Memory,
  atMs: number,
  { presenceMs, faults }: JudgedQueue,
): boolean {
  return heardAtMs.some(
    (ms) =>
      ms >= atMs - presenceMs + HEARD_SLACK_MS &&
      ms <= atMs - HEARD_SLACK_MS &&
      !faults.some(({ fromMs, overMs }) => ms >= fromMs - HEARD_SLACK_MS && ms <= overMs),
  );
}

/** The end of the recovery from the fault that this time is in; otherwise the time itself. */
export function excusedUntil(atMs: number, faults: readonly FaultTime[]): number {
  const within = faults.filter(({ fromMs, recoveredMs }) => atMs >= fromMs && atMs <= recoveredMs);
  return Math.max(atMs, ...within.map(({ recoveredMs }) => recoveredMs));
}
