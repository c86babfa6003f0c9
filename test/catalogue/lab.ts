/**
 * Runs strategies call by call: with stores of their own, any number of nodes, and calls that stop at the points that a test
 * names.
 *
 * No test relies on timing. A call stops at a named point of the strategy. Whether it is blocked by another call shows in what
 * it does (it waits for a mutex, it sleeps on the test's clock) or in Postgres (its session waits for a lock).
 */
import { Redis } from 'ioredis';
import pg from 'pg';
import type {
  Outcome,
  Point,
  SaleSpec,
  SellingRow,
  Setting,
  SoldOrder,
  Stores,
  Strategy,
} from '../../catalogue/parts/contract.ts';
import { turn } from '../support/engine/frozen-time.ts';
import { emptyDatabase, freshPrefix, redisAdminUrl, until } from '../support/fixtures.ts';
import { Abandoned, Call, callFallsAsleep, HOLDING_STEPS } from './call.ts';
import { type NodeClock, TestTime } from './test-time.ts';

export interface LabOptions extends Partial<SaleSpec> {
  /** Servers of the test's own, beside the run's Redis and a new database. */
  readonly lockRedis?: readonly string[];
  readonly zookeeper?: readonly string[];
}

let ordersNamed = 0;

/** Most calls to a server on this machine are answered within so many turns of the event loop. */
const SHORT_TURNS = 200;

/** The labs' own in the run's Redis: each move of the time looks at all keys of a database. */
const LAB_DATABASE = 9;

export class Lab implements AsyncDisposable {
  readonly row: SellingRow;
  readonly sale: SaleSpec;
  readonly stores: Stores;
  readonly redis: Redis;
  readonly time: TestTime;
  readonly #lockServers: readonly Redis[];
  readonly #watcher: pg.Pool | undefined;
  readonly #nodes: LabNode[] = [];
  readonly #calls: Call[] = [];

  private constructor(row: SellingRow, sale: SaleSpec, stores: Stores) {
    this.row = row;
    this.sale = sale;
    this.stores = stores;
    this.redis = plainRedis(stores.redis!);
    this.#lockServers = (stores.lockRedis ?? []).map(plainRedis);
    this.time = new TestTime([this.redis, ...this.#lockServers], stores.keyPrefix);
    this.#watcher = stores.postgres ? new pg.Pool({ connectionString: stores.postgres, max: 1 }) : undefined;
  }

  static async open(row: SellingRow, options: LabOptions = {}): Promise<Lab> {
    const { lockRedis, zookeeper, ...spec } = options;
    const stores: Stores = {
      keyPrefix: freshPrefix(),
      redis: `${redisAdminUrl()}/${LAB_DATABASE}`,
      ...(row.stores.includes('postgres') && { postgres: await emptyDatabase() }),
      ...(lockRedis && { lockRedis }),
      ...(zookeeper && { zookeeper }),
    };
    return new Lab(row, { id: 'sale', stock: 1, segments: 1, nodes: 1, ...spec }, stores);
  }

  /** Adds a node that sells. Settings and stores that are not given are the lab's. */
  async node(setting: Partial<Setting> = {}, stores: Partial<Stores> = {}): Promise<LabNode> {
    const name = `node-${this.#nodes.length + 1}`;
    const clock = this.time.clock(callFallsAsleep);
    const strategy = await this.row.open(
      { ...this.stores, ...stores, ...this.#postgresAs(name) },
      this.sale,
      {
        steps: HOLDING_STEPS,
        clock,
        checkBuyer: async () => {},
        ...setting,
      },
    );
    const node = new LabNode(this, name, strategy, clock);
    this.#nodes.push(node);
    return node;
  }

  /** A check of buyers by a service that hangs, and answers all requests `ms` from now. */
  hangingCheck(ms: number): (buyerId: string) => Promise<void> {
    const answersAt = this.time.now + ms;
    const clock = this.time.clock(callFallsAsleep);
    return async () => {
      if (this.time.now < answersAt) await clock.sleep(answersAt - this.time.now);
    };
  }

  async nodes(count: number, setting: Partial<Setting> = {}): Promise<LabNode[]> {
    const nodes: LabNode[] = [];
    while (nodes.length < count) nodes.push(await this.node(setting));
    return nodes;
  }

  /** Starts a sale of one unit, held up where it comes to one of these points. */
  begin(strategy: Strategy, buyerId: string, holdAt: readonly Point[]): Call {
    const call = new Call(() => strategy.sell(buyerId, `order-${++ordersNamed}`), holdAt);
    this.#calls.push(call);
    return call;
  }

  /** Resolves when each of the calls is held, waits for another, or is done. */
  async atRest(...calls: readonly Call[]): Promise<void> {
    const running = () => calls.filter((call) => call.state === 'running').length;
    for (let i = 0; i < SHORT_TURNS && running() > 0; i++) await turn();
    await until(async () => running() === 0 || running() === (await this.#blockedSessions()), {
      what: 'every call is held, waits or is done',
    });
  }

  /** Runs the calls to their ends, and moves time where they sleep. */
  async finish(...calls: readonly Call[]): Promise<Outcome[]> {
    const outcomes = Promise.all(calls.map((call) => call.finish()));
    outcomes.catch(() => {});
    while (calls.some((call) => call.state !== 'done')) {
      // A call that waited for a mutex may run now.
      await turn();
      await this.atRest(...calls);
      if (calls.some((call) => call.state === 'asleep')) await this.time.passToNextTimer();
    }
    return outcomes;
  }

  /** Ends the sessions of a node in Postgres, as the end of its process does. */
  async cutSessions(name: string): Promise<void> {
    await this.#watcher?.query(
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = $1`,
      [name],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const call of this.#calls) call.abandon();
    this.time.end(new Abandoned('asleep'));
    await Promise.allSettled(this.#calls.map((call) => call.outcome));
    await Promise.all(this.#nodes.map((node) => node.close()));
    await this.#watcher?.end();
    for (const redis of [this.redis, ...this.#lockServers]) redis.disconnect();
  }

  #postgresAs(name: string): Partial<Stores> {
    if (!this.stores.postgres) return {};
    const url = new URL(this.stores.postgres);
    url.searchParams.set('application_name', name);
    return { postgres: url.href };
  }

  /** Each belongs to one call. */
  async #blockedSessions(): Promise<number> {
    if (!this.#watcher) return 0;
    const { rows } = await this.#watcher.query(
      `SELECT count(*)::int AS blocked FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows[0].blocked;
  }
}

export class LabNode {
  readonly clock: NodeClock;
  readonly #lab: Lab;
  readonly #name: string;
  readonly #strategy: Strategy;
  #closed: Promise<void> | undefined;

  constructor(lab: Lab, name: string, strategy: Strategy, clock: NodeClock) {
    this.#lab = lab;
    this.#name = name;
    this.#strategy = strategy;
    this.clock = clock;
  }

  begin(buyerId: string, ...holdAt: readonly Point[]): Call {
    return this.#lab.begin(this.#strategy, buyerId, holdAt);
  }

  sell(buyerId: string): Promise<Outcome> {
    return this.begin(buyerId).outcome;
  }

  sold(): Promise<readonly SoldOrder[]> {
    return this.#strategy.sold();
  }

  left(): Promise<number> {
    return this.#strategy.left();
  }

  /** The process ends: no timer fires, its connections break, its calls never continue. */
  async die(): Promise<void> {
    this.clock.frozen = true;
    await this.#lab.cutSessions(this.#name);
    const closed = this.close();
    // A pool of Postgres waits for the calls that have a connection, and those of the dead end with the test.
    if (!this.#lab.stores.postgres) await closed;
  }

  close(): Promise<void> {
    this.#closed ??= this.#strategy.close();
    return this.#closed;
  }
}

/** How often each outcome was given. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code } of outcomes) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** The buyers in the order of their names, one for each order: a buyer with two orders is there twice. */
export function buyersOf(orders: readonly SoldOrder[]): string[] {
  return orders.map(({ buyerId }) => buyerId).sort();
}

/** Rows for `test.each`, each behind its id for the title. */
export function byId(...rows: readonly SellingRow[]): [id: string, row: SellingRow][] {
  return rows.map((row) => [row.id, row]);
}

function plainRedis(url: string): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: 0 });
  redis.on('error', () => {});
  return redis;
}
