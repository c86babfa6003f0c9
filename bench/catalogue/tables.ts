/** The figures as table cells, for the report and the page. */
import type { Align } from '../../src/cli/terminal/output.ts';
import { count } from '../support/figures.ts';
import type { CatalogueResult } from './result.ts';

export interface Table {
  readonly head: readonly string[];
  readonly align: readonly Align[];
  readonly rows: readonly (readonly string[])[];
}

export function sellingTable({ rows }: CatalogueResult): Table {
  const head = ['orders/s', 'p50 ms', 'p99 ms', 'failed %', 'Redis/order', 'Postgres/order'];
  return table(
    head,
    rows.map(({ id, title, selling }) => [
      id,
      title,
      count(selling.ordersPerSecond),
      ms(selling.p50Ms),
      ms(selling.p99Ms),
      selling.failedPercent.toFixed(1),
      each(selling.redisCommandsPerOrder),
      each(selling.postgresStatementsPerOrder),
    ]),
  );
}

export function crowdTable({ rows }: CatalogueResult): Table {
  const head = ['requests/s', 'p50 ms', 'p99 ms', 'failed %', 'sold', 'oversold', 'undersold', 'above limit'];
  return table(
    head,
    rows.map(({ id, title, crowd, stock, limit }) => [
      id,
      title,
      count(crowd.requestsPerSecond),
      ms(crowd.p50Ms),
      ms(crowd.p99Ms),
      crowd.failedPercent.toFixed(1),
      count(crowd.sold),
      count(crowd.oversold),
      crowd.undersold === null ? '-' : count(crowd.undersold),
      count(crowd.buyersAboveLimit),
      stock,
      limit,
    ]),
    ['stock in tests', 'limit in tests'],
  );
}

export function namingTable({ naming }: CatalogueResult): Table {
  return table(
    ['ids/s', 'p50 ms', 'p99 ms', 'Redis/id'],
    naming.map(({ id, title, ...row }) => [
      id,
      title,
      count(row.idsPerSecond),
      ms(row.p50Ms),
      ms(row.p99Ms),
      each(row.redisCommandsPerId),
    ]),
  );
}

/** Milliseconds, from thousands down to less than a thousandth. */
export function ms(value: number): string {
  if (value >= 10) return value.toFixed(1);
  if (value >= 0.1) return value.toFixed(2);
  return value.toFixed(value < 0.01 ? 4 : 3);
}

export function each(value: number): string {
  return value < 100 ? value.toFixed(1) : count(value);
}

function table(
  figures: readonly string[],
  rows: readonly (readonly string[])[],
  words: readonly string[] = [],
): Table {
  const left = () => 'left' as const;
  return {
    head: ['id', 'strategy', ...figures, ...words],
    align: ['left', 'left', ...figures.map(() => 'right' as const), ...words.map(left)],
    rows,
  };
}
