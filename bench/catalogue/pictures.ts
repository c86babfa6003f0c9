/** The charts of the page. */
import type { Safety } from '../../catalogue/parts/contract.ts';
import { count } from '../support/figures.ts';
import { type Bar, type Chart, type ChartRow, drawChart, type Group } from './charts/chart.ts';
import type { Fill } from './charts/fills.ts';
import type { RowFigures } from './figures.ts';
import type { CatalogueResult } from './result.ts';
import { each, ms } from './tables.ts';

const GROUPS: Readonly<Record<string, string>> = {
  A: 'A: the database',
  B: 'B: locks',
  C: 'C: stock in Redis',
  D: 'D: segmented stock',
};

/** From the best to the worst. */
const SAFETIES: readonly Safety[] = ['safe', 'while-held', 'one-node', 'unsafe'];
const FILL: Readonly<Record<Safety, Fill>> = {
  safe: 'solid',
  'while-held': 'hatched',
  'one-node': 'dotted',
  unsafe: 'hollow',
};
const PROMISES: Chart['legend'] = [
  [FILL.safe, 'holds in the tests'],
  [FILL['while-held'], 'holds while no holder outlives its lock'],
  [FILL['one-node'], 'holds on one node'],
  [FILL.unsafe, 'fails in the tests'],
  ['none', '* may leave units unsold'],
];

export function ordersChart({ rows }: CatalogueResult): string {
  return drawChart({
    name: 'orders',
    title: 'Orders per second, while there is stock for everybody',
    axis: 'orders/s (logarithmic)',
    legend: PROMISES,
    groups: grouped(rows, (row) => ({
      bars: [promiseBar(row, row.selling.ordersPerSecond)],
    })),
  });
}

export function requestsChart({ rows, parameters }: CatalogueResult): string {
  return drawChart({
    name: 'requests',
    title: `Requests per second: a crowd for ${count(parameters.stock)} units, nearly all of them refused`,
    axis: 'requests/s (logarithmic)',
    legend: PROMISES,
    groups: grouped(rows, (row) => ({
      bars: [promiseBar(row, row.crowd.requestsPerSecond)],
    })),
  });
}

export function soldChart({ rows, parameters: { stock } }: CatalogueResult): string {
  return drawChart({
    name: 'sold',
    title: 'Units sold to that crowd in this run',
    axis: 'units (logarithmic)',
    legend: PROMISES,
    mark: { value: stock, text: `the stock: ${count(stock)} units` },
    groups: grouped(rows, (row) => ({
      bars: [promiseBar(row, row.crowd.sold, row.crowd.undersold === null ? ', time was over' : '')],
    })),
  });
}

export function latencyChart({ rows }: CatalogueResult): string {
  return drawChart({
    name: 'latency',
    title: 'How long a buyer waits for the answer, while there is stock for everybody',
    axis: 'milliseconds (logarithmic)',
    legend: [
      ['from', 'p50'],
      ['to', 'p99'],
    ],
    groups: grouped(rows, ({ selling: { p50Ms, p99Ms } }) => ({
      span: { from: p50Ms, to: p99Ms, text: `${ms(p50Ms)} – ${ms(p99Ms)}` },
    })),
  });
}

export function callsChart({ rows }: CatalogueResult): string {
  return drawChart({
    name: 'calls',
    title: 'What an order costs the stores',
    axis: 'per order (logarithmic)',
    legend: [
      ['solid', 'Redis commands'],
      ['hatched', 'Postgres statements'],
    ],
    groups: grouped(rows, ({ selling: { redisCommandsPerOrder, postgresStatementsPerOrder } }) => ({
      bars: [
        { value: redisCommandsPerOrder, text: each(redisCommandsPerOrder), fill: 'solid' as const },
        {
          value: postgresStatementsPerOrder,
          text: each(postgresStatementsPerOrder),
          fill: 'hatched' as const,
        },
      ].filter(({ value }) => value > 0),
    })),
  });
}

/** Filled by the worse of the two test results, for the stock and for the limit. */
function promiseBar({ stock, limit, undersells }: RowFigures, value: number, remark = ''): Bar {
  const worst = Math.max(SAFETIES.indexOf(stock), limit === 'not-checked' ? 0 : SAFETIES.indexOf(limit));
  return { value, text: `${count(value)}${undersells ? ' *' : ''}${remark}`, fill: FILL[SAFETIES[worst]!] };
}

function grouped(
  rows: readonly RowFigures[],
  show: (row: RowFigures) => Pick<ChartRow, 'bars' | 'span'>,
): Group[] {
  return Object.entries(GROUPS).map(([letter, title]) => ({
    title,
    rows: rows
      .filter(({ id }) => id.startsWith(letter))
      .map((row) => ({ id: row.id, title: row.title, ...show(row) })),
  }));
}
