/** Looks along a line for places whose buyers are present, in memory, and lets others go first now and then. */
import { setImmediate as nextTurnOfLoop } from 'node:timers/promises';
import type { Line } from './line.ts';
import type { PresentPlaces } from './presence.ts';

/** Ranks that are looked at in one turn of the event loop: some 2 ms. */
const STEP_RANKS = 65_536;

export interface Stretch {
  /** The ranks from `after` + 1 on … */
  readonly after: number;
  /** … up to this one. */
  readonly last: number;
}

type InLine = Pick<Line, 'numberAt'>;
type Present = Pick<PresentPlaces, 'has'>;

/** The first ranks that are present, in their order. @param most at least 1 */
export async function presentRanks(
  line: InLine,
  present: Present,
  { after, last }: Stretch,
  most: number,
): Promise<number[]> {
  const found: number[] = [];
  for (let rank = after + 1; rank <= last && found.length < most; rank++) {
    if (present.has(line.numberAt(rank))) found.push(rank);
    if (rank % STEP_RANKS === 0) await nextTurnOfLoop();
  }
  return found;
}

/** The first rank that has `ahead` present ones before it in the stretch; `undefined`: there are fewer. */
export async function rankBehindPresent(
  line: InLine,
  present: Present,
  { after, last }: Stretch,
  ahead: number,
): Promise<number | undefined> {
  let left = ahead;
  let rank = after + 1;
  for (; rank <= last && left > 0; rank++) {
    if (present.has(line.numberAt(rank))) left--;
    if (rank % STEP_RANKS === 0) await nextTurnOfLoop();
  }
  return rank <= last ? rank : undefined;
}
