/** A node without HTTP, put together like src/node/node.ts from the product's own parts. */
import { DeletionFinisher } from '../../../src/deletion/deletion-finisher.ts';
import { Board } from '../../../src/engine/board/board.ts';
import { openRedis } from '../../../src/engine/cluster/open-redis.ts';
import type { Backend, Outcome, Purchase } from '../../../src/engine/contract.ts';
import { OrderIds } from '../../../src/engine/order-id.ts';
import { Engine } from '../../../src/engine/purchase/engine.ts';
import { lostOrderNames } from '../../../src/node/lost-order-names.ts';
import type { Log } from '../../../src/node/process/log.ts';
import { SaleDirectory } from '../../../src/node/sale-directory.ts';
import { Expiry } from '../../../src/orders/expiry.ts';
import { OrderService } from '../../../src/orders/order-service.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { PostgresLocks } from '../../../src/postgres/sale-locks.ts';
import { QueueHead } from '../../../src/queue/head/head.ts';
import type { HeadEvents } from '../../../src/queue/head/head-events.ts';
import { readSale } from '../../../src/sales/sale-rows.ts';
import { BuyerService } from '../../../src/shop/buyer-service.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import type { SyncEvents } from '../../../src/sync/held/sync-events.ts';
import { Sync } from '../../../src/sync/sync.ts';
import { type Link, network } from './network.ts';
import { Machine, time, WORLD } from './virtual-time.ts';
import { POSTGRES_PORT, type World } from './world.ts';

export const DATABASE_URL = `postgres://sim@127.0.0.1:${POSTGRES_PORT}/sim`;
export const KEY_PREFIX = 'sim:';
const CONNECTIONS = 4;
const BOARD_SALES = 8;
const RESTART_MS = 200;
const KEY = new Uint8Array(32).fill(7);

export interface NodeOptions {
  /** 0: a process that only syncs. */
  readonly workers: number;
  readonly requestDeadlineMs: number;
  readonly takeTimeoutMs: number;
  readonly maxLogOrders: number;
  readonly batchRows: number;
  readonly rebalanceEveryMs: number;
  /** Whether it serves the queues of sales. Only if there are any: the head would look for them all the time. */
  readonly runsHead?: boolean;
}

/** Remembers when the board was last used. */
class WatchedBoard extends Board {
  saidSoldOutAt = Number.NEGATIVE_INFINITY;

  override isSoldOut(slot: number): boolean {
    const says = super.isSoldOut(slot);
    if (says) this.saidSoldOutAt = time.now;
    return says;
  }
}

/** What a node reports to the auditor. */
export interface NodeWatch {
  readonly sync: (node: string) => SyncEvents;
  readonly head: (node: string) => HeadEvents;
  fault(node: string, what: string, error: unknown): void;
  nextWorker(): number;
}

interface Running {
  readonly backend: Backend;
  readonly board: WatchedBoard;
  readonly db: Database;
  readonly engines: readonly Engine[];
  readonly sync: Sync;
  readonly service: SaleService;
  readonly orders: OrderService;
  readonly buyers: BuyerService;
}

const SILENT = { error() {}, warn() {}, info() {} } as unknown as Log;

export class SimNode {
  readonly name: string;
  machine: Machine;
  readonly #world: World;
  readonly #options: NodeOptions;
  readonly #watch: NodeWatch;
  #running: Running | undefined;
  #firstOfEngines = Number.POSITIVE_INFINITY;

  constructor(name: string, world: World, options: NodeOptions, watch: NodeWatch) {
    this.name = name;
    this.machine = new Machine(name);
    this.machine.isAlive = false;
    this.#world = world;
    this.#options = options;
    this.#watch = watch;
  }

  get isAlive(): boolean {
    return this.machine.isAlive;
  }

  /** Whether buyers can use it. */
  get isServing(): boolean {
    return this.#options.workers > 0;
  }

  /** `undefined` while the node starts, or is dead. */
  get running(): Running | undefined {
    return this.isAlive ? this.#running : undefined;
  }

  /** Whether an engine of this node has opened the connection. */
  isOfEngines(link: Link): boolean {
    return link.client === this.machine && link.number >= this.#firstOfEngines;
  }

  /** Whether the node's board was used since then. */
  hasBelievedBoard(since: number): boolean {
    return (this.#running?.board.saidSoldOutAt ?? Number.NEGATIVE_INFINITY) >= since;
  }

  /** Starts the node. If that fails, the node ends and is started again, as a supervisor would. */
  start(): void {
    const machine = new Machine(this.name);
    machine.skewMs = this.machine.skewMs;
    this.machine = machine;
    this.#running = undefined;
    time.after(
      0,
      () =>
        void this.#start().then(
          (running) => {
            if (this.machine === machine) this.#running = running;
          },
          (error) => {
            if (!isOfTheStores(error)) this.#watch.fault(this.name, 'could not start', error);
            this.crash();
            time.after(RESTART_MS, () => this.isAlive || this.start(), WORLD);
          },
        ),
      machine,
    );
  }

  crash(): void {
    this.machine.isAlive = false;
    this.#running = undefined;
    network.breakAll(this.machine);
  }

  /**
   * Ends a process without buyers in order: its batches end, and its sales are released.
   * @param done called when it has ended; never if it dies before
   */
  stop(done: () => void): void {
    const { machine } = this;
    const sync = this.running?.sync;
    const end = () => {
      this.crash();
      time.after(0, done, WORLD);
    };
    time.after(0, () => void sync?.stop().then(end), machine);
  }

  /** @param done called with the outcome; never if the node dies before */
  buy(purchase: Purchase, worker: number, done: (outcome: Outcome) => void): void {
    const engines = this.running?.engines ?? [];
    engines[worker % engines.length]?.buy(purchase, done);
  }

  async #start(): Promise<Running> {
    const { batchRows, rebalanceEveryMs, runsHead } = this.#options;
    const db = openDatabase({ url: DATABASE_URL, maxConnections: CONNECTIONS });
    const locks = new PostgresLocks(DATABASE_URL);
    const backend = await this.#openBackend();
    const events = this.#watch.sync(this.name);
    const sync = new Sync({ db, backend, locks, events, batchRows, rebalanceEveryMs });
    await sync.start();
    await sync.ready;
    new Expiry({ db, backend, events: { expired() {}, failed() {} } }).start();
    new DeletionFinisher({ db, locks, events: { deleted() {}, failed() {} } }).start();
    const board = new WatchedBoard(BOARD_SALES);
    const engines = this.isServing ? await this.#openEngines(db, backend, board) : [];
    const buy = (purchase: Purchase) => engines[0]!.purchase(purchase);
    if (runsHead && this.isServing)
      new QueueHead({ db, backend, locks, buy, events: this.#watch.head(this.name) }).start();
    const service = new SaleService(db, backend, locks);
    const orders = new OrderService({ db, backend, buy });
    const buyers = new BuyerService({ db, backend });
    return { backend, board, db, engines, sync, service, orders, buyers };
  }

  async #openEngines(db: Database, backend: Backend, board: Board): Promise<Engine[]> {
    const { requestDeadlineMs, workers } = this.#options;
    const directory = new SaleDirectory(backend, board, async (id) => {
      const row = await readSale(db, id);
      return row !== undefined && row.archivedAt === undefined;
    });
    await directory.start();
    const engines: Engine[] = [];
    this.#firstOfEngines = network.nextNumber;
    for (let i = 0; i < workers; i++) {
      const worker = this.#watch.nextWorker();
      const ids = new OrderIds({ key: KEY, worker });
      engines.push(
        await Engine.start({
          backend: await this.#openBackend(),
          directory,
          board,
          worker,
          nextOrderId: () => ids.next(),
          requestDeadlineMs,
          laneCapacity: 1_000,
          onFault: (error) => this.#watch.fault(this.name, 'a batch has failed', error),
          onUncommitted: lostOrderNames(db, SILENT),
        }),
      );
    }
    return engines;
  }

  async #openBackend(): Promise<Backend> {
    const { takeTimeoutMs, maxLogOrders } = this.#options;
    const options = { keyPrefix: KEY_PREFIX, takeTimeoutMs, maxLogOrders };
    return (await openRedis({ urls: this.#world.redisUrls, ...options })).backend;
  }
}

/** Failed connections are expected. Every other error is a fault of the product. */
export function isOfTheStores(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const named = ['TypeError', 'RangeError', 'ReferenceError', 'AssertionError'].includes(error.name);
  return !named || error.name === 'AggregateError';
}
