/** The results of a run, as tables and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count, decimals, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { medianOf } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import type { Beside } from './beside.ts';
import type { Drain } from './drains.ts';
import type { Measurement } from './fleet.ts';
import { OPTIONS, type ScaleParameters } from './options.ts';
import { CROWDS, type CrowdName, shopSizes } from './points.ts';
import type { BesideLeg, DrainLeg, Leg, Measured } from './rounds.ts';

/** The medians of one size of shop. */
export interface Point extends Measurement {
  readonly primaries: number;
  readonly nodes: number;
}

export interface CrowdResult {
  readonly points: readonly Point[];
  /** Processor time per order of the dearest point, divided by that of the cheapest; `undefined` where it is not known. */
  readonly worstOverBest: number | undefined;
  readonly bar: number;
  /** The largest mean size of a take, divided by the smallest; `undefined` if a point made no take. */
  readonly takesSpread: number | undefined;
}

/** Takes whose mean sizes differ by no more than this count as equally large. */
const EQUAL_TAKES = 1.1;

export interface DrainPoint extends Drain {
  readonly syncs: number;
  /** The rate, divided by that of one sync. */
  readonly ratio: number;
}

export interface BesidePoint extends Beside {
  readonly syncs: number;
}

const HEAD = [
  'primaries',
  'nodes',
  'connections',
  'orders/s',
  'Node µs',
  'Redis µs',
  'Postgres µs',
  'together',
  'a take',
  'a transaction',
];
const DRAIN_HEAD = ['syncs', 'orders/s', 'ratio', 'Node µs', 'Redis µs', 'Postgres µs', 'largest share'];
const BESIDE_HEAD = [
  'syncs',
  'accepted/s',
  'in Postgres at the end',
  'behind ms',
  'sync µs',
  'Postgres µs',
  'a transaction',
  'largest share',
];

export function report(
  { legs, drains, besides }: Measured,
  parameters: ScaleParameters,
  machine: Machine,
): BenchResult {
  const crowds = CROWDS.map(({ name, title, bar }) => ({
    title,
    name,
    result: crowdResult(legs, name, parameters.nodes, bar),
  }));
  const drained = drainPoints(drains);
  const beside = besidePoints(besides);
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    ...crowds.flatMap(({ title, result }) => ['', ...crowdText(title, result)]),
    ...drainText(drained),
    ...besideText(beside, parameters.nodes),
    '',
    'All answers were as expected, and verify found every sale in order.',
  ];
  const byName = Object.fromEntries(crowds.map(({ name, result }) => [name, result]));
  return { text: text.join('\n'), json: { ...byName, drains: drained, beside, parameters, machine } };
}

export function crowdResult(
  legs: readonly Leg[],
  crowd: CrowdName,
  mostNodes: number,
  bar: number,
): CrowdResult {
  const points = shopSizes(mostNodes).map(({ nodes, primaries }) => {
    const own = legs.filter(
      ({ size, crowd: name }) => name === crowd && size.nodes === nodes && size.primaries === primaries,
    );
    return { primaries, nodes, ...medians(own) };
  });
  const worstOverBest = spreadOf(points.map(({ cpuMicros }) => cpuMicros));
  const takesSpread = spreadOf(points.map(({ takeOrders }) => takeOrders));
  return { points, worstOverBest, bar, takesSpread };
}

/** The largest divided by the smallest; `undefined` if one is not known. */
function spreadOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length < values.length ? undefined : rounded(Math.max(...known) / Math.min(...known), 2);
}

export function drainPoints(drains: readonly DrainLeg[]): DrainPoint[] {
  const counts = [...new Set(drains.map(({ syncs }) => syncs))].sort((a, b) => a - b);
  const points = counts.map((syncs) => {
    const own = drains.filter((leg) => leg.syncs === syncs).map(({ measured }) => measured);
    const middle = (figure: (drain: Drain) => number | undefined, digits: number) =>
      medianOf(own, figure, digits);
    return {
      syncs,
      ordersPerSecond: middle((d) => d.ordersPerSecond, 0)!,
      nodeCpuMicros: middle((d) => d.nodeCpuMicros, 2),
      redisCpuMicros: middle((d) => d.redisCpuMicros, 2),
      postgresCpuMicros: middle((d) => d.postgresCpuMicros, 2),
      largestShare: middle((d) => d.largestShare, 2)!,
    };
  });
  const one = points[0]?.ordersPerSecond ?? 1;
  return points.map((point) => ({ ...point, ratio: rounded(point.ordersPerSecond / one, 2) }));
}

export function besidePoints(besides: readonly BesideLeg[]): BesidePoint[] {
  const counts = [...new Set(besides.map(({ syncs }) => syncs))].sort((a, b) => a - b);
  return counts.map((syncs) => {
    const own = besides.filter((leg) => leg.syncs === syncs).map(({ measured }) => measured);
    const middle = (figure: (beside: Beside) => number | undefined, digits: number) =>
      medianOf(own, figure, digits);
    return {
      syncs,
      acceptedPerSecond: middle((b) => b.acceptedPerSecond, 0)!,
      committedShare: middle((b) => b.committedShare, 3)!,
      behindMs: middle((b) => b.behindMs, 0)!,
      syncCpuMicros: middle((b) => b.syncCpuMicros, 2),
      postgresCpuMicros: middle((b) => b.postgresCpuMicros, 2),
      transactionOrders: middle((b) => b.transactionOrders, 0),
      largestShare: middle((b) => b.largestShare, 2)!,
    };
  });
}

function medians(legs: readonly Leg[]): Measurement {
  const middle = (figure: (m: Measurement) => number | undefined, digits: number) =>
    medianOf(legs, ({ measured }) => figure(measured), digits);
  return {
    connections: middle((m) => m.connections, 0)!,
    ordersPerSecond: middle((m) => m.ordersPerSecond, 0)!,
    nodeCpuMicros: middle((m) => m.nodeCpuMicros, 1),
    redisCpuMicros: middle((m) => m.redisCpuMicros, 1),
    postgresCpuMicros: middle((m) => m.postgresCpuMicros, 1),
    cpuMicros: middle((m) => m.cpuMicros, 1),
    takeOrders: middle((m) => m.takeOrders, 1),
    transactionOrders: middle((m) => m.transactionOrders, 0),
  };
}

function crowdText(title: string, { points, worstOverBest, bar, takesSpread }: CrowdResult): string[] {
  const rows = points.map((point) => [
    String(point.primaries),
    String(point.nodes),
    count(point.connections),
    count(point.ordersPerSecond),
    decimals(point.nodeCpuMicros, 1),
    decimals(point.redisCpuMicros, 1),
    decimals(point.postgresCpuMicros, 1),
    decimals(point.cpuMicros, 1),
    decimals(point.takeOrders, 1),
    decimals(point.transactionOrders, 0),
  ]);
  const verdict =
    worstOverBest === undefined
      ? 'this system reports no processor time, so nothing can be compared'
      : `the dearest order costs ${worstOverBest.toFixed(2)} times the cheapest ` +
        `(≤ ${bar.toFixed(2)} ${worstOverBest <= bar ? 'met' : 'not met'})`;
  const equality = takesSpread !== undefined && takesSpread <= EQUAL_TAKES ? 'equal' : 'not equal';
  const takes = `the largest takes have ${takesSpread?.toFixed(2)} times the orders of the smallest: ${equality}`;
  return [`${title}: ${verdict}`, takes, columns(rows, { head: HEAD, align: HEAD.map(() => 'right') })];
}

function drainText(points: readonly DrainPoint[]): string[] {
  if (points.length === 0) return [];
  const rows = points.map((point) => [
    String(point.syncs),
    count(point.ordersPerSecond),
    point.ratio.toFixed(2),
    decimals(point.nodeCpuMicros, 1),
    decimals(point.redisCpuMicros, 1),
    decimals(point.postgresCpuMicros, 1),
    `${Math.round(point.largestShare * 100)} %`,
  ]);
  return [
    '',
    'Draining a backlog on one primary',
    columns(rows, { head: DRAIN_HEAD, align: DRAIN_HEAD.map(() => 'right') }),
  ];
}

function besideText(points: readonly BesidePoint[], nodes: number): string[] {
  if (points.length === 0) return [];
  const rows = points.map((point) => [
    String(point.syncs),
    count(point.acceptedPerSecond),
    `${(point.committedShare * 100).toFixed(1)} %`,
    count(point.behindMs),
    decimals(point.syncCpuMicros, 1),
    decimals(point.postgresCpuMicros, 1),
    decimals(point.transactionOrders, 0),
    `${Math.round(point.largestShare * 100)} %`,
  ]);
  return [
    '',
    `Beside ${nodes} nodes that sell, on one primary`,
    columns(rows, { head: BESIDE_HEAD, align: BESIDE_HEAD.map(() => 'right') }),
  ];
}
