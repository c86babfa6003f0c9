/**
 * The picture that the demo begins with at a terminal: a stock that falls, segment by segment. The demo's own sale is over in
 * some hundredths of a second, which nobody can see; so this is another sale, to which more and more buyers come within
 * seconds. Every figure is what the backend counts in the segments, or what the buyers were answered.
 */
import { rest } from '../../lib/rest.ts';
import type { RunningNode } from '../../node/node.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import { bar } from '../terminal/fit.ts';
import { type Looks, looks } from '../terminal/look.ts';
import { number, plural } from '../terminal/output.ts';
import { hasRoomFor, Sketch } from '../terminal/sketch.ts';
import type { CrowdProgress } from './crowd.ts';
import type { Scenario } from './scenario.ts';

const FRAME_MS = 80;
const MAX_BAR_WIDTH = 58;
/** Columns beside a bar: the name, the units, and one that stays free. */
const BESIDE_BAR = 18;

/** There are more requests than units, so that the end shows refusals, and enough buyers that hardly one comes twice. */
export const OPENING: Omit<Scenario, 'seed'> = {
  stock: 2_400,
  segments: 8,
  buyers: 1_000_000,
  requests: 3_600,
  concurrency: 200,
};
export const OPENING_MS = 4_000;

/** The segments, a line of sums, and what the demo prints around them. */
const LINES = OPENING.segments + 3;

export function canShowOpening(): boolean {
  return process.stdout.isTTY === true && hasRoomFor(LINES);
}

export interface Frame {
  /** Units left in each segment. */
  readonly left: readonly number[];
  /** Units in each segment before the first purchase. */
  readonly full: readonly number[];
  readonly crowd: CrowdProgress;
  readonly seconds: number;
}

export function frameLines(
  { left, full, crowd, seconds }: Frame,
  { green, red, bold }: Looks,
  terminalColumns: number,
): string[] {
  const width = Math.max(1, Math.min(MAX_BAR_WIDTH, terminalColumns - BESIDE_BAR));
  const segments = left.map((units, segment) => {
    const name = `segment ${segment}`.padEnd(12);
    const share = units / Math.max(1, full[segment]!);
    return `${name}${green(bar(share, width))} ${units === 0 ? red('sold') : number(units).padStart(4)}`;
  });
  const units = left.reduce((sum, each) => sum + each, 0);
  const sums = [
    `${number(units)} left`,
    plural(crowd.orders, 'order'),
    plural(crowd.refusals, 'refusal'),
    `${seconds.toFixed(1)} s`,
  ];
  return [
    ...segments,
    bold(
      sums
        .map((text) => text.padEnd(17))
        .join('')
        .trimEnd(),
    ),
  ];
}

export interface Opening {
  update(crowd: CrowdProgress): void;
  /** Draws what is there at the end, and leaves it on the terminal. */
  stop(): Promise<void>;
}

export async function drawOpening(node: Pick<RunningNode, 'unitsLeft'>, sale: SaleStatus): Promise<Opening> {
  const sketch = new Sketch();
  const end = new AbortController();
  // Before anybody buys.
  const full = await node.unitsLeft(sale).catch(() => undefined);
  const look = looks(process.stderr);
  const began = performance.now();
  let crowd: CrowdProgress = { requests: 0, orders: 0, refusals: 0 };
  const draw = async (full: readonly number[]) => {
    const left = await node.unitsLeft(sale);
    const seconds = (performance.now() - began) / 1_000;
    sketch.draw(frameLines({ left, full, crowd, seconds }, look, sketch.columns));
  };
  const drawing = (async () => {
    while (full && !end.signal.aborted) {
      await draw(full);
      await rest(FRAME_MS, end.signal);
    }
    if (full) await draw(full);
    // A backend that can't be read ends the picture. Whether the sale holds is found out without it.
  })().catch(() => {});
  return {
    update: (now) => {
      crowd = now;
    },
    stop: async () => {
      end.abort();
      await drawing;
      sketch[Symbol.dispose]();
    },
  };
}
