/**
 * A shop without HTTP: stores of its own, and any number of engines and syncs on them, all in this process. Everything that was
 * started ends with the shop.
 */

import { pino } from 'pino';
import { redisUrls } from '../../../src/config/values/redis-urls.ts';
import { Board } from '../../../src/engine/board/board.ts';
import { openRedis } from '../../../src/engine/cluster/open-redis.ts';
import type { Backend } from '../../../src/engine/contract.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { OrderIds } from '../../../src/engine/order-id.ts';
import { Engine, type EngineOptions } from '../../../src/engine/purchase/engine.ts';
import type { BackpressureOptions } from '../../../src/lib/backpressure.ts';
import { lostOrderNames } from '../../../src/node/lost-order-names.ts';
import { SaleDirectory } from '../../../src/node/sale-directory.ts';
import type { LedgerEntry, SaleStatus } from '../../../src/operations/sale-operations.ts';
import { Expiry } from '../../../src/orders/expiry.ts';
import type { Buy } from '../../../src/orders/late-payment.ts';
import { OrderService } from '../../../src/orders/order-service.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { LocalLocks, type SaleLocks } from '../../../src/postgres/sale-locks.ts';
import { QueueHead } from '../../../src/queue/head/head.ts';
import { readSale } from '../../../src/sales/sale-rows.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { Sync } from '../../../src/sync/sync.ts';
import { BY } from '../author.ts';
import { freshDatabase, freshPrefix, redisUrl } from '../fixtures.ts';
import { LONG_TIMEOUTS } from '../long-timeouts.ts';
import { blockedStatements } from '../postgres/blocked.ts';
import { SeenEvents, SeenExpiry, SeenHead } from './seen-events.ts';
import { Till } from './till.ts';

const SILENT = pino({ enabled: false });
const CONNECTIONS = 8;
const LANE_CAPACITY = 100_000;
const MAX_LOG_ORDERS = 1_000_000;
const RETURN_WAIT_MS = 20_000;
const KEY = new Uint8Array(32).fill(7);

export interface ShopOptions {
  readonly backend?: 'redis' | 'memory';
  /** Servers of the test, instead of those of the run. */
  readonly redis?: string;
  readonly database?: string;
}

let salesMade = 0;

export class Shop implements AsyncDisposable {
  readonly db: Database;
  readonly databaseUrl: string;
  readonly backend: Backend;
  readonly redisUrl: string;
  readonly keyPrefix: string;
  readonly locks = new LocalLocks();
  readonly service: SaleService;
  readonly #ends: (() => Promise<unknown>)[] = [];
  #workers = 0;

  private constructor(parts: Pick<Shop, 'db' | 'databaseUrl' | 'backend' | 'redisUrl' | 'keyPrefix'>) {
    this.db = parts.db;
    this.databaseUrl = parts.databaseUrl;
    this.backend = parts.backend;
    this.redisUrl = parts.redisUrl;
    this.keyPrefix = parts.keyPrefix;
    this.service = new SaleService(this.db, this.backend, this.locks);
  }

  static async open({ backend = 'redis', redis, database }: ShopOptions = {}): Promise<Shop> {
    const databaseUrl = database ?? (await freshDatabase());
    const db = openDatabase({ url: databaseUrl, maxConnections: CONNECTIONS });
    // The run's databases have all tables.
    if (database !== undefined) await migrate(db);
    const place = { redisUrl: redis ?? redisUrl(), keyPrefix: freshPrefix() };
    return new Shop({ db, databaseUrl, ...place, backend: await openBackend(backend, place) });
  }

  /** Another backend object on the same stock, as another process would have. Redis only. */
  async anotherBackend(): Promise<Backend> {
    const backend = await openBackend('redis', this);
    this.#ends.push(() => backend.close());
    return backend;
  }

  /** Creates a sale with an id of its own, open and built. */
  sell(spec: { stock: number } & Record<string, unknown>): Promise<SaleStatus> {
    return this.service.create({ id: `sale-${++salesMade}`, ...spec }, BY.actor);
  }

  /** The changes that operators made to a sale: its ledger without the creation. */
  async changesOf(saleId: string): Promise<LedgerEntry[]> {
    const [creation, ...changes] = (await this.service.ledger(saleId)).ledger;
    if (creation?.action !== 'create') throw new Error(`the ledger of ${saleId} begins with a change`);
    return changes;
  }

  /** Whether no process that uses these locks is working on the sale. */
  async isUnlocked(saleId: string, locks: SaleLocks = this.locks): Promise<boolean> {
    if (!(await locks.tryLock(saleId))) return false;
    await locks.unlock(saleId);
    return true;
  }

  /** Until it is unlocked, nothing is applied to the sale, and it can't be rebuilt. */
  lockRow(saleId: string) {
    return this.#lock('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [saleId]);
  }

  lockMovements(saleId: string) {
    return this.#lock('SELECT 1 FROM stock_movements WHERE sale_id = ? FOR UPDATE', [saleId]);
  }

  lockQueue(saleId: string) {
    return this.#lock('SELECT 1 FROM queues WHERE sale_id = ? FOR UPDATE', [saleId]);
  }

  /** Until it is unlocked, nobody reads or writes the table. */
  lockTable(table: string) {
    return this.#lock(`LOCK TABLE ${table}`);
  }

  async #lock(sql: string, bindings: readonly string[] = []) {
    const trx = await this.db.transaction();
    await trx.raw(sql, bindings);
    const unlock = async () => {
      if (!trx.isCompleted()) await trx.rollback();
    };
    return { unlock, [Symbol.asyncDispose]: unlock };
  }

  /** Whether a statement waits for a lock in Postgres. */
  async isBlocked(): Promise<boolean> {
    return (await blockedStatements(this.db)) > 0;
  }

  async startSync(options: SyncSpec = {}): Promise<WatchedSync> {
    const seen = new SeenEvents();
    const {
      db = this.db,
      backend = this.backend,
      locks = this.locks,
      batchRows = 1_000,
      backpressure,
    } = options;
    const { rebalanceEveryMs = 0 } = options;
    const parts = { db, backend, locks, batchRows, events: seen, rebalanceEveryMs };
    const sync = new Sync({ ...parts, ...(backpressure && { backpressure }) });
    await sync.start();
    let stopped: Promise<void> | undefined;
    const stop = () => (stopped ??= sync.stop());
    if (!options.hangs) this.#ends.push(stop);
    return { seen, ready: sync.ready, stop };
  }

  async isSale(saleId: string): Promise<boolean> {
    const row = await readSale(this.db, saleId);
    return row !== undefined && row.archivedAt === undefined;
  }

  /** Starts an engine, which sells like one worker of a node. */
  async startEngine({
    requestDeadlineMs = LONG_TIMEOUTS.requestDeadlineMs,
    backend = this.backend,
    checkToken,
  }: EngineSpec = {}): Promise<Till> {
    const board = new Board(64);
    const directory = new SaleDirectory(backend, board, (id) => this.isSale(id));
    await directory.start();
    const worker = ++this.#workers;
    const faults: unknown[] = [];
    const ids = new OrderIds({ key: KEY, worker });
    const engine = await Engine.start({
      backend,
      directory,
      board,
      worker,
      nextOrderId: () => ids.next(),
      requestDeadlineMs,
      laneCapacity: LANE_CAPACITY,
      ...(checkToken && { checkToken }),
      onFault: (error) => faults.push(error),
      onUncommitted: lostOrderNames(this.db, SILENT),
    });
    const till = new Till(engine, { board, directory, faults });
    this.#ends.push(() => till.close());
    return till;
  }

  /**
   * Changes of orders, as a node serves them, but an answer waits for the return of units however slow the machine is. Late
   * payments buy with `buy`.
   */
  orders(buy: Buy, backend = this.backend): OrderService {
    return new OrderService({ db: this.db, backend, buy, returnWaitMs: RETURN_WAIT_MS });
  }

  startExpiry({
    backend = this.backend,
    db = this.db,
    pageOrders = 500,
    leftOutMs = 30_000,
    hangs = false,
  } = {}): SeenExpiry {
    const seen = new SeenExpiry();
    const expiry = new Expiry({ db, backend, events: seen, pageOrders, leftOutMs });
    expiry.start();
    if (!hangs) this.#ends.push(() => expiry.stop());
    return seen;
  }

  /** Starts the head of the queues, as a node does. @param hangs it is stopped by nobody, like a head whose process hangs */
  startHead(
    buy: Buy,
    { backend = this.backend, db = this.db, locks = this.locks, hangs = false }: HeadSpec = {},
  ) {
    const seen = new SeenHead();
    const head = new QueueHead({ db, backend, locks, buy, events: seen });
    head.start();
    let stopped: Promise<void> | undefined;
    const stop = () => (stopped ??= head.stop());
    if (!hangs) this.#ends.push(stop);
    return { seen, stop };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
    await this.backend.close();
    await this.db.destroy();
  }
}

interface HeadSpec {
  readonly db?: Database;
  readonly backend?: Backend;
  readonly locks?: SaleLocks;
  readonly hangs?: boolean;
}

interface EngineSpec extends Partial<Pick<EngineOptions, 'requestDeadlineMs' | 'checkToken'>> {
  readonly backend?: Backend;
}

export interface SyncSpec {
  readonly db?: Database;
  readonly backend?: Backend;
  readonly locks?: SaleLocks;
  readonly batchRows?: number;
  readonly backpressure?: BackpressureOptions;
  /** Default: never. */
  readonly rebalanceEveryMs?: number;
  /** The sync is made to hang for ever, as if its process had died: nothing waits for its end. */
  readonly hangs?: boolean;
}

export interface WatchedSync {
  readonly seen: SeenEvents;
  readonly ready: Promise<void>;
  stop(): Promise<void>;
}

export function buyers(count: number, name = 'buyer'): string[] {
  return Array.from({ length: count }, (_, i) => `${name}-${i}`);
}

async function openBackend(
  kind: 'redis' | 'memory',
  { redisUrl: url, keyPrefix }: { redisUrl: string; keyPrefix: string },
): Promise<Backend> {
  if (kind === 'memory') return new MemoryBackend({ maxLogOrders: MAX_LOG_ORDERS });
  const options = { keyPrefix, takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs, maxLogOrders: MAX_LOG_ORDERS };
  return (await openRedis({ urls: redisUrls(url), ...options })).backend;
}
