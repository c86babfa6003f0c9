/**
 * One run of a property: a sale in a backend, a node of two or more workers that sells it, and sync, which the test plays by
 * hand. Time passes only when the test says so.
 */
import { expect, vi } from 'vitest';
import { Board } from '../../src/engine/board/board.ts';
import type {
  Backend,
  LogPosition,
  Outcome,
  Purchase,
  Rejection,
  Sale,
  SaleState,
  TakeOrder,
  Watermark,
} from '../../src/engine/contract.ts';
import { BOARD_REPAIR_MS } from '../../src/engine/limits.ts';
import { OrderIds } from '../../src/engine/order-id.ts';
import { Engine } from '../../src/engine/purchase/engine.ts';
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { SaleDirectory } from '../../src/node/sale-directory.ts';
import { turn } from '../support/engine/frozen-time.ts';
import { aSale, type LoadedSale, loadSale } from '../support/shop/sales.ts';
import { type WatchedBackend, watched } from './watched-backend.ts';

/** Time passes in steps of this size. */
const STEP_MS = 10;
/** Not a multiple of a step, so that no deadline coincides with a step. */
export const REQUEST_DEADLINE_MS = 995;
/** A node knows of a change within this time, even if the message was lost and the next poll came just before. */
const LEARNED_WITHIN_MS = 2 * BOARD_REPAIR_MS;
/** Messages of the backend take real time, but less than this. */
const MESSAGE_LIMIT_NS = 10_000_000_000n;
const LANE_CAPACITY = 10_000;
const ORDER_ID_KEY = new Uint8Array(32).fill(9);

/** A purchase and its answer. */
export interface Bought {
  readonly purchase: Purchase;
  outcome: Outcome | undefined;
}

interface SaleNode {
  readonly board: Board;
  readonly directory: SaleDirectory;
  readonly engines: readonly Engine[];
}

export interface TrialOptions {
  readonly sale: Partial<Sale>;
  /** Units of each segment. */
  readonly split: readonly number[];
  readonly workers: number;
}

export class Trial {
  readonly backend: WatchedBackend;
  readonly loaded: LoadedSale;
  /** Milliseconds since the start of the run. */
  clock = 0;
  readonly #workers: number;
  readonly #nodes: SaleNode[] = [];
  readonly #faults: unknown[] = [];
  readonly #cursors: LogPosition[];
  /** The newest log entry of each segment. */
  readonly #told = new Map<number, Watermark>();
  #nextWorker = 1;

  private constructor(backend: WatchedBackend, loaded: LoadedSale, workers: number) {
    this.backend = backend;
    this.loaded = loaded;
    this.#workers = workers;
    this.#cursors = segmentsOf(loaded.sale).map((s) => loaded.position(0, '', s));
  }

  static async begin(backend: Backend, { sale, split, workers }: TrialOptions): Promise<Trial> {
    const store = watched(backend);
    const stock = split.reduce((sum, units) => sum + units, 0);
    const definition = aSale({ ...sale, stock, segments: split.length });
    const trial = new Trial(store, await loadSale(store, definition, { split }), workers);
    await trial.startNode();
    return trial;
  }

  get sale(): Sale {
    return this.loaded.sale;
  }

  get #node(): SaleNode {
    return this.#nodes.at(-1)!;
  }

  /** Starts a node with its own memory on the same backend. It replaces the one before. */
  async startNode(): Promise<void> {
    await this.#nodes.at(-1)?.directory.stop();
    const board = new Board(1);
    const directory = new SaleDirectory(this.backend, board, async () => true);
    await directory.start();
    const engines: Engine[] = [];
    while (engines.length < this.#workers) engines.push(await this.#startEngine(board, directory));
    this.#nodes.push({ board, directory, engines });
  }

  #startEngine(board: Board, directory: SaleDirectory): Promise<Engine> {
    const worker = this.#nextWorker++;
    const ids = new OrderIds({ key: ORDER_ID_KEY, worker });
    return Engine.start({
      backend: this.backend,
      directory,
      board,
      worker,
      nextOrderId: () => ids.next(),
      requestDeadlineMs: REQUEST_DEADLINE_MS,
      laneCapacity: LANE_CAPACITY,
      onFault: (error) => this.#faults.push(error),
    });
  }

  /** Starts a purchase and does not wait for its outcome. */
  buy(worker: number, purchase: Omit<Purchase, 'saleId'>): Bought {
    const bought: Bought = { purchase: { ...purchase, saleId: this.sale.id }, outcome: undefined };
    const engine = this.#node.engines[worker % this.#workers]!;
    engine.buy(bought.purchase, (outcome) => {
      expect(bought.outcome, 'a purchase is answered once').toBeUndefined();
      bought.outcome = outcome;
    });
    return bought;
  }

  /** Lets everything happen that needs no time. */
  quiet(): Promise<void> {
    return this.backend.quiet();
  }

  async elapse(ms: number): Promise<void> {
    for (const end = this.clock + ms; this.clock < end; this.clock += STEP_MS) {
      vi.advanceTimersByTime(STEP_MS);
      await this.quiet();
    }
  }

  /** Waits for the effect of a message of the backend. */
  async messages(arrived: () => boolean): Promise<void> {
    const limit = process.hrtime.bigint() + MESSAGE_LIMIT_NS;
    while (!arrived() && process.hrtime.bigint() < limit) await turn();
  }

  async setState(state: SaleState): Promise<void> {
    await this.backend.sales.setState({ sale: this.sale, state, generation: this.loaded.generation });
    await this.learn();
  }

  /** Waits until the node knows the sale's state and epoch. */
  async learn(): Promise<void> {
    const { board, directory } = this.#node;
    const view = directory.views.get(this.sale.id);
    if (!view) return;
    const [version] = await this.backend.sales.versions([this.sale.id]);
    const known = () => {
      const { state } = directory.views.get(this.sale.id)!.record;
      return state === version!.state && board.epoch(view.slot) === version!.epoch;
    };
    const since = this.clock;
    for (await this.quiet(); !known(); await this.elapse(STEP_MS)) {
      expect(this.clock - since, 'milliseconds in which the node learned nothing').toBeLessThan(
        LEARNED_WITHIN_MS,
      );
    }
  }

  /** Reads the logs beyond the cursors, as sync does, and tells the backend the verdict on each order. */
  async commit(
    segments: readonly number[],
    maxEntries: number,
    judge: (order: TakeOrder, nth: number) => Rejection['reason'] | undefined,
  ): Promise<void> {
    const reads = await this.backend.log.readLog(
      segments.map((segment) => this.#cursors[segment]!),
      maxEntries,
    );
    const watermarks: Watermark[] = [];
    let nth = 0;
    for (const { position, entries } of reads) {
      const last = entries.at(-1);
      if (!last) continue;
      const rejected: Rejection[] = [];
      for (const order of entries.flatMap((entry) => entry.orders)) {
        const reason = judge(order, nth++);
        if (!reason) continue;
        rejected.push({ orderId: order.orderId, reason });
        await this.giveBack(order, reason === 'limit' ? order.quantity : 0);
      }
      const { seq, tail, ordersSoFar: orders } = last;
      const tails = entries.map((entry) => entry.tail);
      this.#cursors[position.segment] = { ...position, seq, tail };
      this.#told.set(position.segment, {
        ...this.loaded.ref(position.segment),
        seq,
        orders,
        rejected,
        tails,
      });
      watermarks.push(this.#told.get(position.segment)!);
    }
    await this.backend.log.advance(watermarks);
  }

  /** Repeats the last notification, as a sync does that does not know whether its predecessor has sent it. */
  async tellAgain(): Promise<void> {
    const told = [...this.#told.values()];
    await this.backend.log.advance(told.map((w) => ({ ...w, tails: w.tails!.slice(-1) })));
  }

  commitAll(): Promise<void> {
    return this.commit(segmentsOf(this.sale), Number.MAX_SAFE_INTEGER, () => undefined);
  }

  async giveBack({ buyerId, orderId }: Pick<TakeOrder, 'buyerId' | 'orderId'>, units: number): Promise<void> {
    const ref = this.loaded.ref(homeSegment(buyerId, this.sale.segments));
    await this.backend.log.compensate({ ...ref, buyerId, orderId, units });
  }

  async left(): Promise<number> {
    return (await this.loaded.left()).reduce((sum, left) => {
      expect(left).toBeGreaterThanOrEqual(0);
      return sum + left;
    }, 0);
  }

  held(buyerId: string) {
    return this.loaded.held(buyerId, homeSegment(buyerId, this.sale.segments));
  }

  /** Every purchase is answered by its deadline, and nothing is left running. */
  async end(): Promise<void> {
    await this.#node.directory.stop();
    let closed = false;
    const closing = Promise.all(
      this.#nodes.flatMap(({ engines }) => engines.map((engine) => engine.close())),
    );
    void closing.then(() => {
      closed = true;
    });
    const since = this.clock;
    for (await this.quiet(); !closed; await this.elapse(STEP_MS)) {
      expect(this.clock - since, 'milliseconds for the last purchase').toBeLessThan(
        REQUEST_DEADLINE_MS + 2 * STEP_MS,
      );
    }
    await closing;
    expect(this.#faults).toEqual([]);
  }
}

function segmentsOf({ segments }: Sale): number[] {
  return Array.from({ length: segments }, (_, segment) => segment);
}
