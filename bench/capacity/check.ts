/** The model beside what was measured. Batches come from the number of buyers here, not from the measurement. */
import { columns } from '../../src/cli/terminal/output.ts';
import { decimals } from '../support/figures.ts';
import type { BenchResult } from '../support/run.ts';
import { batchesOfCrowd } from './batches.ts';
import { type Costs, type Measured, orderMicros, type Point } from './costs.ts';

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

export function checkReport(measured: Measured, costs: Costs): BenchResult {
  const checked = checkAll(measured, costs);
  const pair = (model: number, found: number, digits = 0) =>
    `${decimals(model, digits)} / ${decimals(found, digits)}`;
  const rows = checked.map(({ point, take, transaction, node, redis, postgres, error }) => [
    point.use,
    point.phase,
    String(point.connections),
    String(point.segments),
    pair(take, point.take, 1),
    point.phase === 'committed' ? pair(transaction, point.transaction) : '',
    pair(node, point.node),
    pair(redis, point.redis),
    pair(postgres, point.postgres),
    `${error < 0 ? '' : '+'}${Math.round(error * 100)} %`,
  ]);
  const head = [
    'use',
    'phase',
    'buyers',
    'segments',
    'a take',
    'a transaction',
    'Node µs',
    'Redis µs',
    'Postgres µs',
    'error',
  ];
  const align = head.map((_, i) => (i < 2 ? ('left' as const) : ('right' as const)));
  const text = [
    'Each pair: model / measured. The costs were fitted to the rows "fit" alone.',
    '',
    columns(rows, { head, align }),
  ];
  return { text: text.join('\n'), json: { checked, costs } };
}
