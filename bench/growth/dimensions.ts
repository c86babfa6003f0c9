/**
 * What is varied, and what is held fixed meanwhile.
 *
 * A fair comparison needs the same batches everywhere, because what a batch costs by itself is shared by its orders.
 * So the crowd comes in bursts: BURST_LANES lanes get LANE_ORDERS orders each, in one turn of the event loop, and the
 * next burst comes when all are answered. With few segments the lanes of a burst belong to several sales. What a crowd
 * of one size costs that is spread over more lanes, in smaller batches, is a dimension of its own.
 */
import type { GrowthParameters } from './options.ts';

const BURST_LANES = 8;
const LANE_ORDERS = 64;
export const BURST_ORDERS = BURST_LANES * LANE_ORDERS;

export interface Setting {
  /** Units of each sale that are there when its first burst comes. */
  readonly stock: number;
  /** Buyers of each sale that have an order already. */
  readonly buyers: number;
  readonly sales: number;
  readonly segments: number;
  /** Sales that one burst is for. */
  readonly salesAtOnce: number;
  /** Lanes that one burst is for, of all its sales together. */
  readonly lanes: number;
}

export interface Point {
  /** Where it stands in its dimension. */
  readonly at: number;
  readonly setting: Setting;
}

export type DimensionName = 'stock' | 'buyers' | 'sales' | 'segments' | 'lanes';

export interface Dimension {
  readonly name: DimensionName;
  readonly title: string;
  /** False for what can't be flat by nature. */
  readonly hasBar: boolean;
  /** Whether what is varied can cost something while nobody buys. */
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
      // Always a fresh sale for each burst, as the smallest has units for one only.
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
      title: `lanes that ${BURST_ORDERS} buyers are spread over, and so smaller batches`,
      hasBar: false,
      costsIdle: false,
      points: powers(4, BURST_LANES, SPREAD_SEGMENTS).map((at) =>
        pointAt(at, { segments: SPREAD_SEGMENTS, lanes: at }),
      ),
    },
  ];
}

/** All bursts of a point, warming up included. */
export function burstsOf({ samples, ...parameters }: GrowthParameters): number {
  return (samples + 1) * burstsOfSample(parameters);
}

export function burstsOfSample({ orders }: Pick<GrowthParameters, 'orders'>): number {
  return Math.ceil(orders / BURST_ORDERS);
}

/** As many sales as it takes, so that none of their records more than doubles on its way to `at` buyers. */
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
