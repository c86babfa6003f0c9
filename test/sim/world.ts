/** The machines of one run: stores, nodes, and what is between them. One Postgres per process; its rows last for a run. */
import { PGlite } from '@electric-sql/pglite';
import { network } from './network.ts';
import { PostgresServer, query } from './postgres/pg-server.ts';
import { firstValue } from './postgres/reply.ts';
import { RedisServer } from './redis/redis-server.ts';
import { type Machine, time, WORLD } from './virtual-time.ts';

export const POSTGRES_PORT = 5432;
const FIRST_REDIS_PORT = 7001;
const TABLES = [
  ...['sales', 'orders', 'segment_cursors', 'stock_movements', 'stock_returns'],
  ...['order_events', 'webhook_pages', 'sale_losses', 'lost_orders'],
];

export class World {
  readonly db: PGlite;
  postgres: PostgresServer;
  redis: RedisServer[] = [];

  private constructor(db: PGlite) {
    this.db = db;
    this.postgres = new PostgresServer(db, network, POSTGRES_PORT);
  }

  /** Before the virtual time is installed: PGlite starts in real time. */
  static async open(): Promise<World> {
    return new World(await PGlite.create({}));
  }

  /** Empty stores, and nobody who uses them. */
  begin(redisServers: number): void {
    network.begin();
    this.postgres = new PostgresServer(this.db, network, POSTGRES_PORT);
    this.sql(`TRUNCATE ${TABLES.join(', ')} RESTART IDENTITY CASCADE`);
    this.redis = [];
    const installation = { servers: this.redis };
    for (let i = 0; i < redisServers; i++)
      this.redis.push(new RedisServer(network, installation, FIRST_REDIS_PORT + i));
  }

  get redisUrls(): string[] {
    return this.redis.map(({ port }) => `redis://127.0.0.1:${port}`);
  }

  /** As nobody in the simulation can: at once, unseen, between all that happens. */
  sql<T>(statement: string): T | undefined {
    return firstValue<T>(this.postgres.run(query(statement)).reply);
  }
}

/** Runs until the work has ended, in virtual time. @throws what it throws, or if there is nothing left to happen */
export async function runToEnd<T>(work: () => Promise<T>, machine: Machine = WORLD): Promise<T> {
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
  }
  if ('error' in end) throw end.error;
  return end.value;
}
