import { expect, test } from 'vitest';
import { connectionsForTakes, measuredWithTakes } from '../../../bench/scale/equal-batches.ts';
import { connectionsOf, mostConnections, shopSizes } from '../../../bench/scale/points.ts';
import { besidePoints, crowdResult, drainPoints } from '../../../bench/scale/report.ts';
import { type NodeFigures, together } from '../../../bench/support/metrics-text.ts';

const SIZES = { nodes: 3, segments: 24, connections: 256, takeOrders: 6 };

test('the same crowd is as large in every shop, the other grows with the lanes', () => {
  const crowds = shopSizes(SIZES.nodes).map((size) => [
    connectionsOf('sameCrowd', size, SIZES),
    connectionsOf('equalBatches', size, SIZES),
  ]);
  expect(crowds.map(([same]) => same)).toEqual([256, 256, 256, 256, 256, 256]);
  expect(crowds.map(([, equal]) => equal)).toEqual([360, 720, 1_080, 360, 720, 1_080]);
  expect(mostConnections(SIZES)).toBe(4_320);
});

test('warm-ups find the connections for takes of a given size, within limits', async () => {
  const wanted = { takeOrders: 6, first: 360, least: 1, most: 1_000 };
  const tried: number[] = [];
  const find = (takeOrders: (connections: number) => number | undefined) => {
    tried.length = 0;
    return connectionsForTakes(wanted, async (connections) => {
      tried.push(connections);
      return takeOrders(connections);
    });
  };
  expect(await find((connections) => connections / 60)).toBe(360);
  expect(tried).toEqual([360]);
  // Larger takes with more connections, and never fewer than one order.
  const found = await find((connections) => 1 + connections / 150);
  expect(1 + found / 150).toBeCloseTo(6, 0);
  expect(Math.abs((1 + found / 150) / 6 - 1)).toBeLessThanOrEqual(0.05);
  expect(await find(() => 1)).toBe(1_000);
  expect(await find(() => 10_000)).toBe(1);
  expect(await find(() => undefined)).toBe(360);
});

test('a measurement is repeated until its takes have the wanted size, and the closest one counts', async () => {
  const wanted = { takeOrders: 6, first: 360, least: 1, most: 1_000 };
  const measure = (...takes: (number | undefined)[]) => {
    const tried: number[] = [];
    const found = measuredWithTakes(wanted, async (connections, attempt) => {
      tried.push(connections);
      return { attempt, takeOrders: takes[attempt] };
    });
    return found.then(({ attempt }) => ({ attempt, tried }));
  };
  expect(await measure(5.8)).toEqual({ attempt: 0, tried: [360] });
  expect(await measure(8, 6.2)).toEqual({ attempt: 1, tried: [360, 270] });
  expect(await measure(8, 5, 8, 7)).toEqual({ attempt: 1, tried: [360, 270, 324, 243] });
  expect(await measure(8, 5, 6.5, 7)).toEqual({ attempt: 2, tried: [360, 270, 324, 299] });
  expect(await measure(undefined)).toEqual({ attempt: 0, tried: [360] });
});

const leg = (nodes: number, primaries: 1 | 3, cpuMicros: number | undefined) => ({
  crowd: 'sameCrowd' as const,
  size: { nodes, primaries },
  measured: {
    ...{
      connections: 256,
      ordersPerSecond: 1_000,
      nodeCpuMicros: cpuMicros,
      redisCpuMicros: 0,
      postgresCpuMicros: 0,
    },
    ...{ cpuMicros, takeOrders: 4, transactionOrders: 100 },
  },
});

test('the dearest point is divided by the cheapest, each as the median of its rounds', () => {
  const rounds = [10, 90, 12].flatMap((cheap) => [leg(1, 1, cheap), leg(1, 3, 30)]);
  expect(crowdResult(rounds, 'sameCrowd', 1, 1.8)).toMatchObject({
    points: [{ cpuMicros: 12 }, { cpuMicros: 30 }],
    worstOverBest: 2.5,
    bar: 1.8,
    takesSpread: 1,
  });
  const unknown = [leg(1, 1, undefined), leg(1, 3, 30)];
  expect(crowdResult(unknown, 'sameCrowd', 1, 1.8).worstOverBest).toBeUndefined();
});

test('drains are compared with that of one sync, whatever came first', () => {
  const drain = (syncs: number, ordersPerSecond: number) => ({
    syncs,
    measured: {
      ...{ ordersPerSecond, nodeCpuMicros: 1, redisCpuMicros: 1, postgresCpuMicros: 1, largestShare: 1 },
    },
  });
  const points = drainPoints([drain(2, 300), drain(1, 200), drain(2, 100), drain(1, 400)]);
  expect(points).toMatchObject([
    { syncs: 1, ordersPerSecond: 300, ratio: 1 },
    { syncs: 2, ordersPerSecond: 200, ratio: 0.67 },
  ]);
});

test('syncs beside nodes: the median of the rounds, whatever came first', () => {
  const beside = (syncs: number, committedShare: number) => ({
    syncs,
    measured: {
      ...{ acceptedPerSecond: 1_000, committedShare, behindMs: 20, syncCpuMicros: undefined },
      ...{ postgresCpuMicros: 8, transactionOrders: 100, largestShare: 1 / syncs },
    },
  });
  const points = besidePoints([beside(2, 0.8), beside(1, 0.7), beside(2, 0.9), beside(1, 0.5), beside(2, 1)]);
  expect(points).toMatchObject([
    { syncs: 1, committedShare: 0.6, largestShare: 1, syncCpuMicros: undefined },
    { syncs: 2, committedShare: 0.9, largestShare: 0.5 },
  ]);
});

test('the figures of several nodes are added up', () => {
  const figures = (outcome: string, n: number): NodeFigures => ({
    answers: new Map([[outcome, n]]),
    ...{ syncedOrders: n, streamedEvents: n, lagOrders: n, underWay: n },
    ...{ takes: { count: 1, orders: n }, transactions: { count: 2, orders: n } },
  });
  expect(together([figures('committed', 2), figures('sold_out', 3)])).toEqual({
    answers: new Map([
      ['committed', 2],
      ['sold_out', 3],
    ]),
    ...{ syncedOrders: 5, streamedEvents: 5, lagOrders: 5, underWay: 5 },
    ...{ takes: { count: 2, orders: 5 }, transactions: { count: 4, orders: 5 } },
  });
});
