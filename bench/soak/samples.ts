/** The resources that the node and its stores use at a moment. */
import { readdirSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { type Database, rows } from '../../src/postgres/database.ts';
import { residentBytesOf } from '../../test/support/servers/process/process-table.ts';
import type { StockadeNode } from '../support/stockade-node.ts';

export interface Sample {
  readonly seconds: number;
  readonly residentBytes: number;
  readonly workerHeapBytes: number;
  readonly mainHeapBytes: number;
  /** Files and sockets that the node has open. */
  readonly handles: number;
  /** Connections at the public port. */
  readonly connections: number;
  readonly redisClients: number;
  readonly redisBytes: number;
  readonly postgresConnections: number;
  /** Rows of the outbox, pages for the webhook, and returns that are not applied. */
  readonly waitingRows: number;
  /** Purchases in lanes, or waiting for their commits. */
  readonly underWay: number;
}

export interface Sampled {
  readonly node: StockadeNode;
  readonly redis: Redis;
  readonly db: Database;
}

const WAITING = `
  SELECT (SELECT count(*) FROM order_events) + (SELECT count(*) FROM webhook_pages)
       + (SELECT count(*) FROM stock_returns WHERE applied_at IS NULL) AS waiting,
         (SELECT count(*) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()) AS connections`;

export async function takeSample({ node, redis, db }: Sampled, seconds: number): Promise<Sample> {
  const [text, figures, clients, memory, [held]] = await Promise.all([
    node.metrics(),
    node.figures(),
    redis.info('clients'),
    redis.info('memory'),
    rows<{ waiting: string; connections: string }>(db, WAITING),
  ]);
  return {
    seconds,
    residentBytes: residentBytesOf(node.pid),
    workerHeapBytes: metricIn(text, 'stockade_worker_heap_bytes'),
    mainHeapBytes: metricIn(text, 'nodejs_heap_size_used_bytes{thread="main"}'),
    handles: handlesOf(node.pid),
    connections: metricIn(text, 'stockade_connections'),
    // Without the connection of this query.
    redisClients: infoIn(clients, 'connected_clients') - 1,
    redisBytes: infoIn(memory, 'used_memory'),
    postgresConnections: Number(held!.connections),
    waitingRows: Number(held!.waiting),
    underWay: figures.underWay,
  };
}

/** Rows and bytes of each table, without empty tables. */
export async function tablesOf(db: Database): Promise<{ name: string; rows: number; bytes: number }[]> {
  await db.raw('ANALYZE');
  const found = await rows<{ name: string; rows: number; bytes: string }>(
    db,
    `SELECT relname AS name, reltuples::bigint::int AS rows, pg_total_relation_size(oid) AS bytes
     FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND reltuples > 0
     ORDER BY 3 DESC`,
  );
  return found.map(({ name, rows: count, bytes }) => ({ name, rows: count, bytes: Number(bytes) }));
}

function handlesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function metricIn(text: string, metric: string): number {
  return Number(new RegExp(`^${metric} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

function infoIn(text: string, field: string): number {
  return Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);
}
