/**
 * Q5: who is told `hopeless`, and who is not. A place is hopeless while as many present people wait before it as there are units that no
 * accepted order holds.
 *
 * For each second there are two bounds on the first rank that is hopeless:
 *
 * - The least one counts the fewest units, and everybody who waited for a moment, because after a fault all count as present.
 * - The last one counts the most units, and only those who waited all the time and were surely present.
 *
 * The facts behind an answer may be some seconds old: the head reports once a second, and nodes read once a second. During a fault and
 * its recovery, they may be as old as the fault. So an answer is wrong only if it contradicts the bounds of every such second.
 */
import type { Memory } from './memory.ts';
import type { QueueTruth } from './truth.ts';
import { excusedUntil, type JudgedQueue, type Wait } from './waits.ts';

const STEP_MS = 1_000;
/** The promise is a second or two. The rest is for a machine that runs all processes and all people. */
export const HOPELESS_SLACK_MS = 5_000;
/** An answer comes this long after its question at most (people.ts). */
const ANSWER_LIMIT_MS = 3_000;

export interface Hopes {
  /** Answers `hopeless` about places to which a unit could still come. */
  readonly falselyHopeless: number;
  /** Answers `waiting` about places to which no unit could come. */
  readonly falselyHopeful: number;
}

export function judgeHopes(
  people: readonly Memory[],
  truth: QueueTruth,
  queue: JudgedQueue,
  waits: readonly Wait[],
): Hopes {
  const bounds = new HopelessBounds(truth, queue, waits);
  const ranks = new Map(truth.places.map(({ number, rank }) => [number, rank]));
  // Before a draw nobody is hopeless: no place has a rank.
  const openedMs =
    truth.movements.find(({ action }) => action === 'window')?.atMs ?? Number.NEGATIVE_INFINITY;
  let falselyHopeless = 0;
  let falselyHopeful = 0;
  for (const memory of people) {
    for (const { askedAtMs, number, state } of answersOf(memory)) {
      const rank = ranks.get(number);
      if (rank === undefined || askedAtMs >= queue.closedMs) continue;
      const toMs = Math.min(askedAtMs + ANSWER_LIMIT_MS, queue.closedMs);
      if (state === 'hopeless' && rank < bounds.least(factsFrom(askedAtMs, queue), toMs)) falselyHopeless++;
      const isExcused =
        excusedUntil(askedAtMs, queue.faults) > askedAtMs || askedAtMs < openedMs + HOPELESS_SLACK_MS;
      if (state === 'waiting' && !isExcused && rank >= bounds.last(askedAtMs - HOPELESS_SLACK_MS, toMs))
        falselyHopeful++;
    }
  }
  return { falselyHopeless, falselyHopeful };
}

/** When the facts of an answer may have been collected, at the earliest. */
function factsFrom(askedAtMs: number, { faults }: JudgedQueue): number {
  const within = faults.filter(
    ({ fromMs, recoveredMs }) => askedAtMs >= fromMs && askedAtMs <= recoveredMs + HOPELESS_SLACK_MS,
  );
  return Math.min(askedAtMs, ...within.map(({ fromMs }) => fromMs)) - HOPELESS_SLACK_MS;
}

/** All answers: `told` has only those that said something new. */
function* answersOf({ told, heardAtMs }: Memory) {
  let at = -1;
  for (const askedAtMs of heardAtMs) {
    while (at + 1 < told.length && told[at + 1]!.askedAtMs <= askedAtMs) at++;
    if (at >= 0) yield { ...told[at]!, askedAtMs };
  }
}

class HopelessBounds {
  readonly #beginMs: number;
  readonly #least: number[] = [];
  readonly #last: number[] = [];

  constructor(truth: QueueTruth, queue: JudgedQueue, waits: readonly Wait[]) {
    this.#beginMs = Math.min(queue.closedMs, ...waits.map(({ fromMs }) => fromMs));
    const units = comingUnits(truth, queue, this.#beginMs);
    const line = waits.toSorted((a, b) => a.rank - b.rank);
    for (const [i, { fewest, most }] of units.entries()) {
      const fromMs = this.#beginMs + i * STEP_MS;
      const untilMs = fromMs + STEP_MS;
      this.#least.push(rankBehind(line, fewest, (one) => one.fromMs < untilMs && one.untilMs > fromMs));
      this.#last.push(
        rankBehind(
          line,
          most,
          (one) =>
            one.fromMs <= fromMs && one.untilMs >= untilMs && one.isPresent(fromMs) && one.isPresent(untilMs),
        ),
      );
    }
  }

  /** No place before this rank may be told that it is hopeless by facts of this time. */
  least(fromMs: number, toMs: number): number {
    return Math.min(...this.#within(this.#least, fromMs, toMs));
  }

  /** Each place from this rank on must be told so. */
  last(fromMs: number, toMs: number): number {
    const found = this.#within(this.#last, fromMs, toMs);
    return fromMs < this.#beginMs ? Number.POSITIVE_INFINITY : Math.max(...found);
  }

  #within(bounds: readonly number[], fromMs: number, toMs: number): readonly number[] {
    const step = (ms: number) =>
      Math.min(bounds.length - 1, Math.max(0, Math.floor((ms - this.#beginMs) / STEP_MS)));
    return bounds.slice(step(fromMs), step(toMs) + 1);
  }
}

/** The first rank that has so many of these before it; infinite if there are fewer. @param line by rank */
function rankBehind(line: readonly Wait[], ahead: number, counts: (one: Wait) => boolean): number {
  let left = ahead;
  for (const one of line) {
    if (left <= 0) return one.rank;
    if (counts(one)) left--;
  }
  return left <= 0 && line.length > 0 ? line.at(-1)!.rank + 1 : Number.POSITIVE_INFINITY;
}

/** Units that no accepted order holds, in each step of time until the sale is closed. */
function comingUnits(
  { orders, movements }: QueueTruth,
  { stock, closedMs }: JudgedQueue,
  beginMs: number,
): { fewest: number; most: number }[] {
  const changes = orders.flatMap(({ acceptedAtMs, endedAtMs, quantity }): [number, number][] =>
    acceptedAtMs === undefined
      ? []
      : [
          [acceptedAtMs, -quantity],
          ...(endedAtMs === undefined ? [] : ([[endedAtMs, quantity]] as [number, number][])),
        ],
  );
  for (const { atMs, units } of movements) changes.push([atMs, units]);
  changes.sort(([a], [b]) => a - b);
  const steps: { fewest: number; most: number }[] = [];
  let coming = stock;
  let next = 0;
  for (let untilMs = beginMs + STEP_MS; untilMs < closedMs + STEP_MS; untilMs += STEP_MS) {
    const step = { fewest: coming, most: coming };
    for (; next < changes.length && changes[next]![0] < untilMs; next++) {
      coming += changes[next]![1];
      step.fewest = Math.min(step.fewest, coming);
      step.most = Math.max(step.most, coming);
    }
    steps.push(step);
  }
  return steps;
}
