/** The run: every point of every dimension in stores of its own, one after the other; then the bytes. */
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { rounded } from '../support/figures.ts';
import { type Cost, cpuOf } from '../support/meter.ts';
import { type StoreServers, startStoreServers } from '../support/stores.ts';
import { type Bytes, measureBytes } from './bytes.ts';
import {
  BURST_ORDERS,
  burstsOfSample,
  type Dimension,
  type DimensionName,
  dimensionsOf,
  type Point,
  type Setting,
  waitingPoints,
} from './dimensions.ts';
import { measureCommits, measureIdle, measureTakes } from './legs.ts';
import type { GrowthParameters } from './options.ts';
import { setStage, verifyAll } from './stage.ts';
import { WaitingBuyers } from './waiting.ts';

export interface MeasuredPoint {
  readonly at: number;
  /** Per order. */
  readonly take: Figures;
  readonly commit: Figures;
  /** Per second. */
  readonly idle: Figures | undefined;
}

/** In microseconds. `cpu` is the sum over all processes. */
export type Figures = Cost & { readonly cpu: number };

export interface MeasuredDimension extends Omit<Dimension, 'points'> {
  readonly points: readonly MeasuredPoint[];
}

/** The cost of an order for which its buyer waits, with the buyers spread over `at` sales. */
export interface WaitingPoint {
  readonly at: number;
  readonly order: Figures;
}

export interface Measured {
  readonly dimensions: readonly MeasuredDimension[];
  readonly waiting: readonly WaitingPoint[];
  readonly bytes: Bytes;
}

/** @throws BenchFailure if an order was refused, sync reported a fault, or a sale does not add up */
export async function runAll(parameters: GrowthParameters): Promise<Measured> {
  return withTeardown(async (teardown) => {
    note('Starting Redis and Postgres');
    const stores = await startStoreServers(teardown);
    const dimensions = dimensionsOf(parameters);
    note('Warming up');
    await runPoint(stores, dimensions[0]!.points[0]!.setting, parameters, false);
    const measured: MeasuredDimension[] = [];
    for (const dimension of dimensions) measured.push(await runDimension(stores, dimension, parameters));
    const waiting: WaitingPoint[] = [];
    for (const point of waitingPoints(parameters)) waiting.push(await runWaiting(stores, point, parameters));
    note('Counting bytes');
    const bytes = await withTeardown((inner) => measureBytes(stores, parameters, inner));
    return { dimensions: measured, waiting, bytes };
  });
}

async function runDimension(
  stores: StoreServers,
  dimension: Dimension,
  parameters: GrowthParameters,
): Promise<MeasuredDimension> {
  const points: MeasuredPoint[] = [];
  for (const { at, setting } of dimension.points) {
    const point = { at, ...(await runPoint(stores, setting, parameters, dimension.costsIdle)) };
    note(describe(dimension.name, point));
    points.push(point);
  }
  return { ...dimension, points };
}

async function runPoint(
  stores: StoreServers,
  setting: Setting,
  parameters: GrowthParameters,
  costsIdle: boolean,
): Promise<Omit<MeasuredPoint, 'at'>> {
  return withTeardown(async (teardown) => {
    const stage = await setStage(stores, setting, teardown);
    const bursts = burstsOfSample(parameters);
    const orders = bursts * BURST_ORDERS;
    const [takes, commits]: [Cost[], Cost[]] = [[], []];
    for (let sample = 0; sample <= parameters.samples; sample++) {
      const crowd = Array.from({ length: bursts }, () => stage.crowd.nextBurst());
      takes.push(await measureTakes(stage, crowd));
      commits.push(await measureCommits(stage, orders));
    }
    const idle = costsIdle ? [await measureIdle(stage, parameters.idleSeconds)] : undefined;
    await verifyAll(stage);
    // The first point of each dimension warms up the code for the others.
    const [take, commit] = [figures(takes.slice(1), orders), figures(commits.slice(1), orders)];
    return { take, commit, idle: idle && figures(idle, parameters.idleSeconds) };
  });
}

async function runWaiting(
  stores: StoreServers,
  { at, setting }: Point,
  { samples, orders }: GrowthParameters,
): Promise<WaitingPoint> {
  return withTeardown(async (teardown) => {
    const stage = await setStage(stores, setting, teardown);
    const buyers = new WaitingBuyers(stage);
    const costs: Cost[] = [];
    for (let sample = 0; sample <= samples; sample++) costs.push(await buyers.measure(orders));
    await verifyAll(stage);
    const order = figures(costs.slice(1), orders);
    note(`buyers who wait, sales ${at.toLocaleString('en')}: ${order.cpu} µs of processor time per order`);
    return { at, order };
  });
}

async function withTeardown<T>(work: (teardown: Teardown) => Promise<T>): Promise<T> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    return await work(teardown);
  } finally {
    await teardown.release();
  }
}

/**
 * The figures of the cheapest sample, each divided by `by`. Other work on a machine can only add to a sample, so the least of
 * several is the steadiest estimate (Chen and Revels, "Robust benchmarking in noisy environments", 2016). Work that comes once a
 * second, such as a sweep, is in some samples and not in others; `idle` measures it.
 */
function figures(costs: readonly Cost[], by: number): Figures {
  const { node, redis, postgres, wall } = costs.reduce((least, cost) =>
    cpuOf(cost) < cpuOf(least) ? cost : least,
  );
  const part = (total: number) => rounded(total / by, 2);
  return {
    cpu: part(cpuOf({ node, redis, postgres, wall })),
    wall: part(wall),
    node: part(node),
    redis: part(redis),
    postgres: postgres === undefined ? undefined : part(postgres),
  };
}

function describe(name: DimensionName, { at, take, commit }: MeasuredPoint): string {
  return `${name} ${at.toLocaleString('en')}: take ${take.cpu} µs, commit ${commit.cpu} µs of processor time per order`;
}
