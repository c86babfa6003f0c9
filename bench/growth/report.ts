/** The results of a run, as tables and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count, decimals, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import type { Bytes } from './bytes.ts';
import { type GrowthParameters, OPTIONS } from './options.ts';
import type { Figures, Measured, MeasuredDimension, MeasuredPoint, WaitingPoint } from './run-all.ts';
import { WAITING_BUYERS } from './waiting.ts';

/** The promised limit for the growth of an order's cost, from any point of a dimension to a later one. */
const BAR = 1.3;
/** The same for buyers who wait, when they are spread over more sales. */
const WAITING_BAR = 2;
const WAITING_HEAD = ['sales', 'order µs', 'Node', 'Redis', 'Postgres', 'wall'];
const HEAD = ['at', 'take µs', 'Node', 'Redis', 'wall', 'commit µs', 'Node', 'Redis', 'Postgres', 'wall'];
const IDLE_HEAD = 'idle ms/s';

export function report(
  { dimensions, waiting, bytes }: Measured,
  parameters: GrowthParameters,
  machine: Machine,
): BenchResult {
  const grown = dimensions.map((dimension) => ({ ...dimension, growth: growthOf(dimension.points) }));
  const barred = grown
    .filter(({ hasBar }) => hasBar)
    .map(({ growth }) => Math.max(growth.take, growth.commit));
  const worstGrowth = Math.max(...barred);
  const waitingGrowth = largestRise(waiting.map(({ order }) => order.cpu));
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    ...grown.flatMap((dimension) => ['', ...dimensionText(dimension)]),
    '',
    ...waitingText(waiting, waitingGrowth),
    '',
    ...bytesText(bytes),
    '',
    `Worst growth: ${worstGrowth.toFixed(2)} (bar: ${barText(worstGrowth)})`,
    'All orders were taken and committed, and verify found every sale in order.',
  ];
  const { redisBytesPerOrder, redisBytesPerBuyer } = bytes;
  const byName = Object.fromEntries(
    grown.map(({ name, hasBar, growth, points }) => [name, { hasBar, growth, points }]),
  );
  return {
    text: text.join('\n'),
    json: {
      worstGrowth,
      redisBytesPerOrder,
      redisBytesPerBuyer,
      bytes,
      dimensions: byName,
      waiting: { bar: WAITING_BAR, growth: waitingGrowth, points: waiting },
      parameters,
      machine,
    },
  };
}

interface Growth {
  readonly take: number;
  readonly commit: number;
}

function growthOf(points: readonly MeasuredPoint[]): Growth {
  return {
    take: largestRise(points.map(({ take }) => take.cpu)),
    commit: largestRise(points.map(({ commit }) => commit.cpu)),
  };
}

/** The largest ratio of a value to an earlier one; at least 1. */
function largestRise(values: readonly number[]): number {
  let [least, rise] = [Number.POSITIVE_INFINITY, 1];
  for (const value of values) {
    least = Math.min(least, value);
    rise = Math.max(rise, value / least);
  }
  return rounded(rise, 3);
}

function dimensionText({ title, hasBar, costsIdle, points, growth }: MeasuredDimension & { growth: Growth }) {
  const head = costsIdle ? [...HEAD, IDLE_HEAD] : HEAD;
  const bar = (value: number) => value.toFixed(2) + (hasBar ? ` (${barText(value)})` : '');
  return [
    `${title}: growth of take ${bar(growth.take)}, of commit ${bar(growth.commit)}`,
    columns(points.map(row), { head, align: head.map(() => 'right') }),
  ];
}

function row({ at, take, commit, idle }: MeasuredPoint) {
  const cells = [count(at), ...cellsOf(take, false), ...cellsOf(commit, true)];
  return idle ? [...cells, decimals(idle.cpu / 1_000, 1)] : cells;
}

function cellsOf({ cpu, node, redis, postgres, wall }: Figures, withPostgres: boolean) {
  const parts = withPostgres ? [node, redis, postgres] : [node, redis];
  return [cpu, ...parts, wall].map((value) => decimals(value, 1));
}

function waitingText(points: readonly WaitingPoint[], growth: number): string[] {
  const rows = points.map(({ at, order }) => [count(at), ...cellsOf(order, true)]);
  return [
    `sales over which ${WAITING_BUYERS} buyers are spread, who wait for their commits: growth ${growth.toFixed(2)} (${barText(growth, WAITING_BAR)})`,
    columns(rows, { head: WAITING_HEAD, align: WAITING_HEAD.map(() => 'right') }),
  ];
}

function barText(growth: number, bar = BAR): string {
  return `≤ ${bar.toFixed(2)} ${growth <= bar ? 'met' : 'not met'}`;
}

function bytesText(bytes: Bytes): string[] {
  const { redisBytesPerOrder, contentBytesPerOrder, redisBytesPerBuyer, contentBytesPerBuyer } = bytes;
  const rows = [
    ['order in the log', redisBytesPerOrder, contentBytesPerOrder],
    ['buyer in the record', redisBytesPerBuyer, contentBytesPerBuyer],
  ].map(([name, held, put]) => [name as string, decimals(held as number, 1), decimals(put as number, 1)]);
  return [columns(rows, { head: ['bytes of Redis', 'held', 'content'], align: ['left', 'right', 'right'] })];
}
