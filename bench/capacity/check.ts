/**
 * The model beside what was measured. Batches come from the number of buyers here, or from the purchases in a second as in a plan, and
 * never from the measurement.
 */
import { columns } from '../../src/cli/terminal/output.ts';
import { count, decimals } from '../support/figures.ts';
import type { BenchResult } from '../support/run.ts';
import { batchesOfCrowd } from './batches.ts';
import { type Costs, type Measured, type OpenPoint, orderMicros, type Point } from './costs.ts';
import { loadOf, MICROS } from './load.ts';

export interface Checked {
  readonly point: Point;
  readonly take: number;
  readonly transaction: number;
  /** Microseconds for each request, as the model says. */
  readonly node: number;
  readonly redis: number;
  readonly postgres: number;
  /** Of Node, Redis and Postgres together, as a share of what was measured; above 0: the model says too much. */
  readonly error: number;
}

export function checkAll({ points }: Measured, costs: Costs): Checked[] {
  return points.map((point) => {
    const crowd = batchesOfCrowd(point.connections, point.segments);
    const batches = { ...crowd, segments: point.segments, committed: point.committed };
    const node = orderMicros(costs.node, batches);
    const redis = orderMicros(costs.redis, batches);
    const postgres = orderMicros(costs.postgres, batches);
    const error = (node + redis + postgres) / (point.node + point.redis + point.postgres) - 1;
    return { point, ...crowd, node, redis, postgres, error };
  });
}

export interface CheckedOpen extends Omit<Checked, 'point'> {
  readonly point: OpenPoint;
}

/** A node and its stores on one machine. */
const LOOPBACK_MICROS = 50;

/** What a plan for one worker and one primary says of these loads. */
export function checkOpen(measured: Measured, costs: Costs): CheckedOpen[] {
  return measured.open.loads.map((point) => {
    const { perSecond, connections, segments } = point;
    const demand = {
      ...{ requests: perSecond, orders: perSecond, later: 0, buyers: 0, sales: 1, segments, connections },
      ...{ workers: 1, roundTripMicros: LOOPBACK_MICROS, usePercent: 99 },
    };
    const load = loadOf(demand, costs, measured, 1, 1);
    if (!load) throw new Error(`the model says that one worker does not keep up with ${perSecond} orders/s`);
    const { take, transaction } = load.batches;
    const micros = (program: keyof Costs) => (load.cores[program] * MICROS) / perSecond;
    const [node, redis, postgres] = [micros('node'), micros('redis'), micros('postgres')];
    const error = (node + redis + postgres) / (point.node + point.redis + point.postgres) - 1;
    return { point, take, transaction, node, redis, postgres, error };
  });
}

export function checkReport(measured: Measured, costs: Costs): BenchResult {
  const [checked, open] = [checkAll(measured, costs), checkOpen(measured, costs)];
  const text = [
    'Each pair: model / measured. The costs were fitted to the rows "fit" alone.',
    '',
    table(
      ['use', 'phase', 'buyers', 'segments'],
      2,
      checked.map((one) => [one.point.use, one.point.phase, one.point.connections, one.point.segments, one]),
    ),
    '',
    `Purchases that come at a given rate, as in a plan: ${measured.open.command}, ${measured.open.date}`,
    '',
    table(
      ['purchases/s', 'segments'],
      0,
      open.map((one) => [count(one.point.perSecond), one.point.segments, one]),
    ),
  ];
  return { text: text.join('\n'), json: { checked, open, costs } };
}

/** @param left how many columns of words come first */
function table(
  head: readonly string[],
  left: number,
  rows: readonly (readonly [...(string | number)[], Checked | CheckedOpen])[],
): string {
  const all = [...head, 'a take', 'a transaction', 'Node µs', 'Redis µs', 'Postgres µs', 'error'];
  return columns(
    rows.map((row) => {
      const one = row.at(-1) as Checked | CheckedOpen;
      return [...row.slice(0, -1).map(String), ...pairsOf(one)];
    }),
    { head: all, align: all.map((_, i) => (i < left ? ('left' as const) : ('right' as const))) },
  );
}

function pairsOf({
  point,
  take,
  transaction,
  node,
  redis,
  postgres,
  error,
}: Checked | CheckedOpen): string[] {
  const pair = (model: number, found: number, digits = 0) =>
    `${decimals(model, digits)} / ${decimals(found, digits)}`;
  const isCommitted = !('phase' in point) || point.phase === 'committed';
  return [
    pair(take, point.take, 1),
    isCommitted ? pair(transaction, point.transaction) : '',
    pair(node, point.node),
    pair(redis, point.redis),
    pair(postgres, point.postgres),
    `${error < 0 ? '' : '+'}${Math.round(error * 100)} %`,
  ];
}
