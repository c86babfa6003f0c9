/** Where the units of a sale were at each moment: with orders, or free. */
import type { QueueTruth } from './truth.ts';
import { excusedUntil, type JudgedQueue, type Wait } from './waits.ts';

const STEP_MS = 250;

/** A moment at which units were taken; negative: at which they came back, or an operator added them. */
type Change = readonly [atMs: number, units: number];

type Units = Pick<QueueTruth, 'orders' | 'movements'>;

/** In their order in time. Units that come back at the moment at which others are taken come back first. */
function changesOf({ orders, movements }: Units): Change[] {
  const changes = orders
    .filter(({ isRejected }) => !isRejected)
    .flatMap(({ committedAtMs, endedAtMs, quantity }): Change[] => [
      [committedAtMs, quantity],
      ...(endedAtMs === undefined ? [] : [[endedAtMs, -quantity] as const]),
    ]);
  for (const { atMs, units } of movements) if (units !== 0) changes.push([atMs, -units]);
  return changes.sort(([a, x], [b, y]) => a - b || x - y);
}

/** Units that orders held above the stock, at the worst moment. */
export function oversoldUnits(units: Units, stock: number): number {
  let held = 0;
  let most = 0;
  for (const [, taken] of changesOf(units)) {
    held += taken;
    most = Math.max(most, held);
  }
  return Math.max(0, most - stock);
}

export interface FreeTimes {
  /** For each unit that was free: how long while somebody surely present waited, outside of faults and recoveries. Milliseconds. */
  readonly judged: readonly number[];
  /** The longest time that a unit was free while somebody surely present waited, with faults and recoveries. */
  readonly longestMs: number;
  /** The longest time for which some unit or other was free, as `judged`. Each of them may have been free for a moment only. */
  readonly longestAnyMs: number;
}

/**
 * Postgres shows how many units are free, not which one an offer takes. So the checker assumes that an offer takes the unit that has
 * been free for longest. Then it never reports a time for which no unit was free. And it notices a unit that is never offered, as soon as
 * no other unit comes back for the time of the bound.
 */
export function freeTimes(units: Units, queue: JudgedQueue, waits: readonly Wait[]): FreeTimes {
  const changes = changesOf(units);
  const beginMs = changes[0]?.[0] ?? queue.closedMs;
  const waited = waitedSteps(beginMs, queue, waits);
  const judgedSteps = waited.map(
    (isWaited, i) => isWaited && excusedUntil(beginMs + i * STEP_MS, queue.faults) <= beginMs + i * STEP_MS,
  );
  const spans = freeSpans(changes, { stock: queue.stock, beginMs, endMs: queue.closedMs });
  const step = (ms: number) => Math.round((ms - beginMs) / STEP_MS);
  const longest = (steps: readonly boolean[]) => (fromMs: number, untilMs: number) =>
    longestRun(steps.slice(step(fromMs), step(untilMs))) * STEP_MS;
  const measured = (steps: readonly boolean[]) =>
    spans.map(([fromMs, untilMs]) => longest(steps)(fromMs, untilMs));
  return {
    judged: measured(judgedSteps),
    longestMs: greatest(measured(waited)),
    longestAnyMs: greatest(joined(spans).map(([fromMs, untilMs]) => longest(judgedSteps)(fromMs, untilMs))),
  };
}

export const greatest = (values: readonly number[]) =>
  values.reduce((most, value) => Math.max(most, value), 0);

type Span = readonly [fromMs: number, untilMs: number];

/** From when to when each unit was free. */
function freeSpans(
  changes: readonly Change[],
  { stock, beginMs, endMs }: { readonly stock: number; readonly beginMs: number; readonly endMs: number },
): Span[] {
  const freeSince: number[] = Array.from({ length: stock }, () => beginMs);
  const spans: Span[] = [];
  const used = (untilMs: number) => {
    const sinceMs = freeSince.shift();
    if (sinceMs !== undefined) spans.push([sinceMs, untilMs]);
  };
  for (const [atMs, units] of changes) {
    for (let unit = 0; unit < units; unit++) used(atMs);
    for (let unit = 0; unit < -units; unit++) freeSince.push(atMs);
  }
  while (freeSince.length > 0) used(endMs);
  return spans;
}

/** Spans that overlap as one. @param spans by their beginnings */
function joined(spans: readonly Span[]): Span[] {
  const found: Span[] = [];
  for (const [fromMs, untilMs] of spans) {
    const last = found.at(-1);
    if (last && fromMs < last[1]) found[found.length - 1] = [last[0], Math.max(last[1], untilMs)];
    else found.push([fromMs, untilMs]);
  }
  return found;
}

/** For each step of time whether somebody surely present waited. */
function waitedSteps(beginMs: number, { closedMs }: JudgedQueue, waits: readonly Wait[]): boolean[] {
  const steps: boolean[] = [];
  for (let atMs = beginMs; atMs < closedMs; atMs += STEP_MS)
    steps.push(waits.some((wait) => wait.fromMs < atMs && wait.untilMs > atMs && wait.isPresent(atMs)));
  return steps;
}

function longestRun(steps: readonly boolean[]): number {
  let longest = 0;
  let run = 0;
  for (const step of steps) {
    run = step ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}
