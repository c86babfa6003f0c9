/**
 * What is varied, and what stays fixed meanwhile.
 *
 * A fair comparison needs batches of the same size everywhere, because the fixed cost of a batch is shared by its orders. So
 * buyers come in bursts: BURST_LANES lanes get LANE_ORDERS orders each, in one turn of the event loop, and the next burst comes
 * when all are answered. With few segments, the lanes of a burst belong to several sales. Spreading the same burst over more
 * lanes, and so over smaller batches, is a dimension of its own.
 */
import type { GrowthParameters } from './options.ts';

const BURST_LANES = 8;
const LANE_ORDERS = 64;
export const BURST_ORDERS = BURST_LANES * LANE_ORDERS;

export interface Setting {
  /** Units in each sale when its first burst comes. */
  readonly stock: number;
  /** Buyers of each sale that already have an order. */
  readonly buyers: number;
  readonly sales: number;
  readonly segments: number;
  /** The sales of one burst. */
  readonly salesAtOnce: number;
  /** The lanes of one burst, over all its sales. */
  readonly lanes: number;
}

export interface Point {
  /** The value of the varied parameter. */
  readonly at: number;
  readonly setting: Setting;
}

export type DimensionName = 'stock' | 'buyers' | 'sales' | 'segments' | 'lanes';

export interface Dimension {
  readonly name: DimensionName;
  readonly title: string;
  /** False if the cost can't be constant. */
  readonly hasBar: boolean;
  /** Whether the varied parameter may cost something while no buyer comes. */
  readonly costsIdle: boolean;
  readonly points: readonly Point[];
}

const USUAL: Setting = {
  stock: 1_000_000,
  buyers: 1_000,
  sales: 1,
  segments: 8,
  salesAtOnce: 1,
  lanes: BURST_LANES,
};
const SPREAD_SEGMENTS = 256;

export function dimensionsOf(parameters: GrowthParameters): Dimension[] {
  const bursts = burstsOf(parameters);
  return [
    {
      name: 'stock',
      title: 'units in a sale',
      hasBar: true,
      costsIdle: false,
      // Always a new sale for each burst, because the smallest has units for only one.
      points: powers(10, 1_000, parameters.units).map((at) => pointAt(at, { stock: at, sales: bursts })),
    },
    {
      name: 'buyers',
      title: 'buyers in the record of a sale',
      hasBar: true,
      costsIdle: false,
      points: powers(10, 1_000, parameters.buyers).map((at) => buyersPoint(at, bursts)),
    },
    {
      name: 'sales',
      title: 'sales',
      hasBar: true,
      costsIdle: true,
      points: powers(10, 1, parameters.sales).map((at) => pointAt(at, { sales: at })),
    },
    {
      name: 'segments',
      title: 'segments of each of eight sales',
      hasBar: true,
      costsIdle: true,
      points: powers(4, 1, parameters.segments).map((at) =>
        pointAt(at, { segments: at, sales: BURST_LANES, salesAtOnce: BURST_LANES }),
      ),
    },
    {
      name: 'lanes',
      title: `lanes over which ${BURST_ORDERS} buyers are spread, in smaller batches`,
      hasBar: false,
      costsIdle: false,
      points: powers(4, BURST_LANES, SPREAD_SEGMENTS).map((at) =>
        pointAt(at, { segments: SPREAD_SEGMENTS, lanes: at }),
      ),
    },
  ];
}

/** The points of the table of waiting buyers (waiting.ts): how many sales they are spread over. */
export function waitingPoints({ sales }: Pick<GrowthParameters, 'sales'>): Point[] {
  return powers(10, 1, sales).map((at) => pointAt(at, { sales: at }));
}

/** All bursts of a point, including the warm-up. */
export function burstsOf({ samples, ...parameters }: GrowthParameters): number {
  return (samples + 1) * burstsOfSample(parameters);
}

export function burstsOfSample({ orders }: Pick<GrowthParameters, 'orders'>): number {
  return Math.ceil(orders / BURST_ORDERS);
}

/** Uses so many sales that no record more than doubles on its way to `at` buyers. */
function buyersPoint(at: number, bursts: number): Point {
  const sales = Math.ceil(bursts / Math.max(1, Math.floor(at / 2 / BURST_ORDERS)));
  return pointAt(at, { buyers: at - Math.ceil(bursts / sales) * BURST_ORDERS, sales });
}

function pointAt(at: number, setting: Partial<Setting>): Point {
  return { at, setting: { ...USUAL, ...setting } };
}

function powers(base: number, least: number, most: number): number[] {
  const values: number[] = [];
  for (let value = least; value <= most; value *= base) values.push(value);
  return values;
}
