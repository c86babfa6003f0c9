/** The memory that a node needs to export the orders of a sale, while a client reads them. */
import { note } from '../../src/cli/terminal/output.ts';
import type { Database } from '../../src/postgres/database.ts';
import { residentBytesOf } from '../../test/support/servers/process/process-table.ts';
import { BenchFailure } from '../support/failure.ts';
import { rounded } from '../support/figures.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import type { StoreServers } from '../support/stores.ts';
import type { BenchShop } from './shop.ts';

const LOOK_MS = 250;
/** Order ids of the exported sales: before those of the history. */
const FIRST_ID = 1n << 32n;

export interface Exported {
  readonly orders: number;
  readonly seconds: number;
  /** The most that the node had while it exported, in megabytes. */
  readonly peakMegabytes: number;
}

const saleOf = (orders: number) => `exported-${orders}`;

/**
 * Exports two ended sales, of which one has a tenth of the orders of the other. The smaller one is the first.
 * @throws BenchFailure if an export breaks off
 */
export async function measureExports(
  stores: StoreServers,
  shop: BenchShop,
  orders: number,
): Promise<Exported[]> {
  note(`Filling: ${orders} orders to export`);
  await fill(shop.db, orders);
  await using node = await StockadeNode.start(stores, {
    ...{ workers: 1, eventsStreamMax: 0, eventsYieldMs: 0, databaseUrl: shop.databaseUrl },
    flags: { 'key-prefix': shop.keyPrefix },
  });
  const measured: Exported[] = [];
  for (const count of sizesOf(orders)) measured.push(await measureExport(node, count));
  return measured;
}

async function fill(db: Database, orders: number): Promise<void> {
  for (const [at, count] of sizesOf(orders).entries()) {
    await db.raw(
      `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, state, generation, metadata,
         archived_at, live_orders) VALUES (?, 'Exported', ?, 0, 8, 1, now(), 'closed', 1, '{}', now(), ?)`,
      [saleOf(count), count, count],
    );
    await db.raw(
      `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer)
       SELECT ?::bigint + n, ?, 'buyer-' || lpad(n::text, 8, '0'), 1, 'paid', true FROM generate_series(1, ?::bigint) AS n`,
      [String(FIRST_ID + (BigInt(at) << 40n)), saleOf(count), count],
    );
  }
}

const sizesOf = (orders: number) => [Math.floor(orders / 10), orders];

async function measureExport(node: StockadeNode, orders: number): Promise<Exported> {
  let peak = 0;
  const look = () => {
    peak = Math.max(peak, residentBytesOf(node.pid));
  };
  const looks = setInterval(look, LOOK_MS);
  const began = performance.now();
  try {
    const exported = await read(node, saleOf(orders));
    look();
    if (exported !== orders) throw new BenchFailure(`${exported} of ${orders} orders were exported`);
  } finally {
    clearInterval(looks);
  }
  const seconds = rounded((performance.now() - began) / 1_000, 2);
  const peakMegabytes = rounded(peak / 1e6, 0);
  note(`export of ${orders} orders: ${seconds} s, at most ${peakMegabytes} MB`);
  return { orders, seconds, peakMegabytes };
}

/** @returns the orders that the last line counts */
async function read(node: StockadeNode, saleId: string): Promise<number> {
  const answer = await fetch(`${node.opsUrl}/v1/sales/${saleId}/orders/export`, {
    headers: { authorization: `Bearer ${node.opsToken}` },
  });
  let tail = '';
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream()))
    tail = (tail + piece).slice(-1_000);
  const last = JSON.parse(tail.trimEnd().split('\n').at(-1)!) as { end?: boolean; orders?: number };
  if (last.end !== true) throw new BenchFailure(`the export of ${saleId} has broken off: ${tail}`);
  return last.orders!;
}
