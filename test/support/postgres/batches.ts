/** Batches for stockade_apply_batch, and the sales that they are for. */
import type pg from 'pg';
import { type Row, type Rows, type Run, run } from './run-function.ts';

export type Cursor = readonly [
  sale: string,
  segment: number,
  generation: number,
  from: number,
  to: number,
  tail: string,
  orders: number,
  units: number,
];
export type Order = readonly [
  id: number,
  sale: number,
  buyer: string,
  quantity: number,
  key?: string | undefined,
  note?: object | undefined,
];

export interface Batch {
  readonly sales: readonly (readonly [id: string, units: number])[];
  readonly cursors?: readonly Cursor[];
  readonly orders?: readonly Order[];
  readonly withoutNotes?: boolean;
}

const QUEUED = { queue: 'fifo', per_buyer_limit: 1 };
export const SALES: readonly Row[] = [
  { ...QUEUED, id: 'c', stock: 30, pay_within_seconds: 10, offer_seconds: 99, live_orders: 9 },
  { ...QUEUED, id: 'a', stock: 10, pay_within_seconds: 60, offer_seconds: 20, live_orders: 7 },
  {
    ...{
      ...QUEUED,
      id: 'b',
      stock: 20,
      per_buyer_limit: 3,
      pay_within_seconds: 90,
      offer_seconds: 30,
      live_orders: 8,
    },
    draft_since: -5,
  },
];
const cursor = (sale_id: string, segment: number) => ({
  ...{ sale_id, segment, generation: 4, position: 6, tail: '1006', orders: 25, units: 30 },
});
const WORLD: Rows = {
  sales: SALES,
  segment_cursors: [cursor('a', 0), cursor('a', 1), cursor('b', 0), cursor('c', 1)],
};

/** Applies a batch to these rows, and those of `more` instead. */
export function apply(
  client: pg.Client,
  batch: Batch,
  more: Rows = {},
  without: readonly string[] = [],
): Promise<Run> {
  const { sales, cursors = [], orders = [], withoutNotes = false } = batch;
  const column = <T>(list: readonly (readonly T[])[], i: number) => list.map((one) => one[i] ?? null);
  const notes = orders.map(([, , , , , note]) => (note ? JSON.stringify(note) : null));
  const bindings = [
    ...[column<unknown>(sales, 0), column<unknown>(sales, 1)],
    ...[0, 1, 2, 3, 4, 5, 6, 7].map((i) => column<unknown>(cursors, i)),
    ...[0, 1, 2, 3, 4].map((i) => column<unknown>(orders, i)),
    withoutNotes ? null : notes,
  ];
  const slots = bindings.map((_, i) => `$${i + 1}`).join(', ');
  return run(client, {
    given: { ...WORLD, ...more },
    sql: `SELECT stockade_apply_batch(${slots})`,
    bindings,
    without,
  });
}

export const FROM_A: Cursor = ['a', 1, 4, 6, 8, '1008', 27, 2];
/** The row of an order that a batch has inserted. */
export const newOrder = (
  order_id: number,
  sale_id: string,
  buyer_id: string,
  expires_at: number,
  more: Row = {},
) => ({
  ...{ order_id, sale_id, buyer_id, quantity: 1, status: 'unpaid', one_per_buyer: sale_id !== 'b' },
  ...{ committed_at: 0, expires_at, ...more },
});
