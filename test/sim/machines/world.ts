/**
 * The machines of one run: stores, nodes, and the network between them. There is one Postgres per process; its rows
 * last for a run.
 */
import type { PGlite } from '@electric-sql/pglite';
import { QUEUE_TRUTH } from '../audit/queue-watch.ts';
import { PostgresServer, query } from '../postgres/pg-server.ts';
import { firstValue } from '../postgres/reply.ts';
import { RedisServer } from '../redis/redis-server.ts';
import { network } from './network.ts';
import { type Machine, time, WORLD } from './virtual-time.ts';

export const POSTGRES_PORT = 5432;
const FIRST_REDIS_PORT = 7001;
const TABLES = [
  ...['sales', 'orders', 'segment_cursors', 'stock_movements', 'stock_returns'],
  ...[
    'order_events',
    'webhook_pages',
    'sale_losses',
    'lost_orders',
    'order_changes',
    'erasures',
    'deleted_sales',
    'queues',
    'places',
    'queue_presence',
  ],
];

/** The changes made to an order, one word each. */
const MARKS = `concat_ws(' ', ${[
  ...['paid', 'redeemed', 'cancelled', 'expired', 'refunded'].map((done) => [done, `${done}_at`]),
  ...[
    ['due', 'refund_due_at'],
    ['retaken', 'retaken_by'],
  ],
]
  .map(([mark, column]) => `CASE WHEN ${column} IS NOT NULL THEN '${mark}' END`)
  .join(', ')})`;

/** See `Truth` in books.ts. $1: the sale's id */
const TRUTH = `SELECT json_build_object('initial', initial_stock, 'stock', stock, 'generation', generation,
  'segments', segments, 'state', state, 'requireToken', require_token, 'limit', per_buyer_limit,
  'isArchived', archived_at IS NOT NULL, 'isDeleting', deleting_since IS NOT NULL,
  'erasures', (SELECT coalesce(json_agg(json_build_object('buyer', buyer_id, 'pseudonym', pseudonym,
     'isDue', while_selling OR state = 'closed')), '[]') FROM erasures WHERE sale_id = $1),
  'moved', (SELECT coalesce(sum(units), 0) FROM stock_movements WHERE sale_id = $1),
  'orders', (SELECT coalesce(json_agg(json_build_object('id', order_id::text, 'buyer', buyer_id, 'units', quantity,
     'status', status, 'key', idempotency_key, 'retakenBy', retaken_by::text, 'marks', ${MARKS}) ORDER BY order_id), '[]') FROM orders WHERE sale_id = $1),
  'cursors', (SELECT coalesce(json_agg(json_build_object('segment', segment, 'generation', generation, 'units', units,
     'position', position) ORDER BY segment), '[]') FROM segment_cursors WHERE sale_id = $1),
  'pendingReturns', (SELECT count(*) FROM stock_returns WHERE sale_id = $1 AND applied_at IS NULL),
  'openMovements', (SELECT count(*) FROM stock_movements WHERE sale_id = $1 AND applied_at IS NULL),
  'ledger', (SELECT coalesce(json_agg(json_build_object('reason', reason, 'action', action, 'units', units,
     'detail', detail) ORDER BY stock_movements.id), '[]') FROM stock_movements WHERE sale_id = $1),
  'lostOrders', (SELECT coalesce(json_agg(order_id::text), '[]') FROM lost_orders WHERE sale_id = $1))
  FROM sales WHERE id = $1`;

export class World {
  readonly db: PGlite;
  postgres: PostgresServer;
  redis: RedisServer[] = [];

  constructor(db: PGlite) {
    this.db = db;
    this.postgres = new PostgresServer(db, network, POSTGRES_PORT);
  }

  /** The query of the auditor after each event, planned once. */
  prepare(): void {
    this.sql('DEALLOCATE ALL');
    this.sql(`PREPARE truth (text) AS ${TRUTH}`);
    this.sql(`PREPARE queue_truth (text) AS ${QUEUE_TRUTH}`);
  }

  /** Empty stores without clients. */
  begin(redisServers: number): void {
    network.begin();
    this.postgres = new PostgresServer(this.db, network, POSTGRES_PORT);
    // A run that found a violation may have ended in the middle of a transaction.
    this.sql('ROLLBACK');
    this.sql(`TRUNCATE ${TABLES.join(', ')} RESTART IDENTITY CASCADE`);
    this.redis = [];
    const installation = { servers: this.redis };
    for (let i = 0; i < redisServers; i++)
      this.redis.push(new RedisServer(network, installation, FIRST_REDIS_PORT + i));
  }

  get redisUrls(): string[] {
    return this.redis.map(({ port }) => `redis://127.0.0.1:${port}`);
  }

  /** A crash of Postgres empties its unlogged tables. */
  losePresence(): void {
    this.sql('DELETE FROM queue_presence');
  }

  /** The tables of Postgres that have this text in a row, as a word. */
  tablesWith(word: string): string[] {
    const pattern = `'(^|[^0-9A-Za-z-])${word}([^0-9A-Za-z]|$)'`;
    return TABLES.filter(
      (table) =>
        (this.sql<number>(`SELECT count(*)::int FROM ${table} t WHERE t::text ~ ${pattern}`) ?? 0) > 0,
    );
  }

  /** The keys of Redis that have this text in their values, as a word. */
  keysWith(word: string): string[] {
    const pattern = new RegExp(`(^|[^0-9A-Za-z-])${word}([^0-9A-Za-z]|$)`);
    const holds = (value: unknown): boolean => {
      if (typeof value === 'string') return pattern.test(value);
      if (value instanceof Map) return [...value].some(holds);
      return typeof value === 'object' && value !== null && Object.values(value).some(holds);
    };
    return this.redis.flatMap(({ redis }) =>
      [...redis.data].filter(([, value]) => holds(value)).map(([key]) => key),
    );
  }

  /** Runs a query that is no part of the simulated world: at once, between two events, and not in the trace. */
  sql<T>(statement: string): T | undefined {
    return firstValue<T>(this.postgres.run(query(statement)).reply);
  }
}

/**
 * Runs until the work has ended, in virtual time.
 * @param after called after each event @throws what it throws, or if no event is left
 */
export async function runToEnd<T>(
  work: () => Promise<T>,
  machine: Machine = WORLD,
  after: () => void = () => {},
): Promise<T> {
  let end: { value: T } | { error: unknown } | undefined;
  time.after(
    0,
    () =>
      void work().then(
        (value) => {
          end = { value };
        },
        (error) => {
          end = { error };
        },
      ),
    machine,
  );
  while (!end) {
    if (!(await time.step(Number.POSITIVE_INFINITY))) throw new Error('nothing is left to happen');
    after();
  }
  if ('error' in end) throw end.error;
  return end.value;
}
