/**
 * The sales that this node knows. There is one directory per node, in the main thread; it also keeps the node's board up to
 * date.
 *
 * Changes arrive as messages, and messages can get lost. So every BOARD_POLL_MS the directory reads the epochs of the sales
 * that the board holds as sold out, which also confirms the board (board.ts). Every few polls it reads the backend's change
 * counter, and if that has changed, the epochs of all known sales. A writer may die between a change and raising the
 * counter; so once within ten seconds the epochs of all known sales are read in any case. An epoch that can't be read is read
 * at the next poll.
 *
 * On a cluster, each sale is asked for alone, and a poll waits only for a moment: the server of one sale may hang.
 *
 * The directory remembers for a while which ids no sale has. It forgets that when the counter has changed: a sale may have
 * been created whose message was lost.
 *
 * A sale that the backend does not have is gone if Postgres has archived it or does not have it either: the directory
 * forgets it, and so do its listeners. Otherwise it is being rebuilt, and all stays as it is.
 */
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { Board } from '../engine/board/board.ts';
import type { Directory, SaleListener, SaleView } from '../engine/board/directory.ts';
import { BoardSlots } from '../engine/board/slots.ts';
import type { Backend, SaleRecord, SaleVersion } from '../engine/contract.ts';
import { Busy, NotExecuted } from '../engine/errors.ts';
import { BOARD_POLL_MS, SALE_ID_PATTERN } from '../engine/limits.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { withTimeout } from '../lib/with-timeout.ts';

/** The change counter is read once in this many polls, which is within BOARD_REPAIR_MS. */
const POLLS_PER_COUNTER = 3;
/** The epochs of all known sales are read once in this many polls, even if the counter is unchanged. */
const POLLS_PER_FULL = 120;
/** They are also read after this time, because polls may be slow: ten seconds, less the time of a poll. */
const FULL_MS = 9_900;
/**
 * How long a poll waits for the counter, and for the epochs, if they are on several servers. With both of these times, the board is
 * still confirmed within BOARD_REPAIR_MS.
 */
const SPREAD_MS = BOARD_POLL_MS / 2;
/** How long the directory remembers that no sale has an id. */
const UNKNOWN_TTL_MS = 1_000;
const REMEMBERED_UNKNOWN = 10_000;
/** Parallel lookups of unknown ids, so that a flood of made-up ids does not become a flood of commands. */
const PARALLEL_LOOKUPS = 16;
/** Lookups that may wait. Each takes one or two milliseconds, so a purchase behind more would miss its deadline. */
const WAITING_LOOKUPS_MAX = 1_000;
/** A sale is read from the backend at most once in this time, unless a change of it is announced. */
const REFRESH_MS = 50;

export class SaleDirectory implements Directory {
  readonly #backend: Backend;
  readonly #board: Board;
  readonly #exists: (saleId: string) => Promise<boolean>;
  readonly #views = new Map<string, SaleView>();
  readonly #unknown = new LRUCache<string, true>({ max: REMEMBERED_UNKNOWN, ttl: UNKNOWN_TTL_MS });
  /** The epoch of each sale's record when it was read last: each change of the record raises it. */
  readonly #readEpochs = new Map<string, number>();
  readonly #reading = new Map<string, Promise<SaleView | undefined>>();
  readonly #lookups = pLimit(PARALLEL_LOOKUPS);
  /** Lookups under way, by sale id: all purchases of a sale that this node does not know yet wait for one lookup. */
  readonly #lookingUp = new Map<string, Promise<SaleView | undefined>>();
  readonly #listeners: SaleListener[] = [];
  readonly #slots: BoardSlots;
  #changesHeard = 0;
  #polls = 0;
  /** The backend's change counter. When it changes, the epochs of all known sales are due. */
  #changeCounter: string | undefined;
  /** Sales whose epochs are to be read, also if the board does not hold them as sold out. A reading that fails leaves them here. */
  readonly #due = new Set<string>();
  /** Sales whose epochs are being read. A server that hangs is not asked again and again. */
  readonly #asking = new Set<string>();
  /** Whether the change counter is being read. */
  #isCounting = false;
  /** When all known sales were due last. */
  #allDueMs = monotonicMs();
  /** Sales that were due, and that the backend does not have. */
  readonly #missing: string[] = [];
  #isCheckingMissing = false;
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => Promise<void>) | undefined;

  /**
   * @param exists whether Postgres has the sale and it is not archived; if so and the backend does not have it, the
   * sale is being built
   */
  constructor(backend: Backend, board: Board, exists: (saleId: string) => Promise<boolean>) {
    this.#backend = backend;
    this.#board = board;
    this.#slots = new BoardSlots(board);
    this.#exists = exists;
  }

  async start(): Promise<void> {
    this.#unsubscribe = await this.#backend.subscribe({
      saleChanged: (saleId) => {
        this.#changesHeard++;
        this.#unknown.delete(saleId);
        // A read under way may have missed the change, so the next one must not share its result.
        this.#reading.delete(saleId);
        if (this.#views.has(saleId)) void this.#read(saleId).catch(() => {});
      },
      reconnected: () => this.#board.reopenAll(),
    });
    this.#schedule();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#unsubscribe?.();
  }

  get views(): ReadonlyMap<string, SaleView> {
    return this.#views;
  }

  /** Slots of the board that sales have, and former ones that a thread may still use. */
  get usedSlots(): number {
    return this.#slots.used;
  }

  /** @throws Busy if too many lookups wait */
  async lookup(saleId: string): Promise<SaleView | undefined> {
    const known = this.#views.get(saleId);
    if (known || this.#unknown.has(saleId) || !SALE_ID_PATTERN.test(saleId)) return known;
    const underWay = this.#lookingUp.get(saleId);
    if (underWay) return underWay;
    if (this.#lookups.pendingCount >= WAITING_LOOKUPS_MAX)
      throw new Busy(`${WAITING_LOOKUPS_MAX} lookups of sales are already waiting`);
    const begun = this.#lookups(() => this.#read(saleId)).finally(() => this.#lookingUp.delete(saleId));
    this.#lookingUp.set(saleId, begun);
    return begun;
  }

  async refresh(saleId: string, generation: number): Promise<SaleView | undefined> {
    const known = this.#views.get(saleId);
    if (known && known.record.generation > generation) return known;
    // The record may be lost together with the segments.
    const view = (await this.#read(saleId).catch(() => undefined)) ?? this.#views.get(saleId);
    // The record is no newer than the generation that a segment refused, so something is wrong: tell sync to look.
    if (view && view.record.generation <= generation) {
      const segments = Array.from({ length: view.record.sale.segments }, (_, i) => i);
      this.#backend.takes.hint({ saleId, segments, awaited: true });
    }
    return view;
  }

  listen(listener: SaleListener): void {
    this.#listeners.push(listener);
    for (const view of this.#views.values()) void tell(listener, (to) => to.changed(view)).catch(() => {});
  }

  /** One read at a time per sale. Calls during a read, and for REFRESH_MS after it, get the same result. */
  #read(saleId: string): Promise<SaleView | undefined> {
    const reading = this.#reading.get(saleId);
    if (reading) return reading;
    const begun = this.#readNow(saleId);
    this.#reading.set(saleId, begun);
    const end = () => {
      // A change that was announced meanwhile has begun another read.
      if (this.#reading.get(saleId) === begun) this.#reading.delete(saleId);
    };
    const forget = () => void setTimeout(end, REFRESH_MS).unref();
    begun.then(forget, forget);
    return begun;
  }

  async #readNow(saleId: string): Promise<SaleView | undefined> {
    const askedAtMs = monotonicMs();
    const changesBefore = this.#changesHeard;
    const known = this.#views.get(saleId);
    const record = await this.#backend.sales.read(saleId);
    if (record) return this.#learn(record, askedAtMs);
    if (await this.#exists(saleId)) throw new NotExecuted(`sale ${saleId} is being built`);
    // If another read has found a newer record meanwhile, the sale was made again.
    if (known && this.#views.get(saleId) === known) this.#forget(known);
    // If a change was announced meanwhile, the sale may exist now.
    if (changesBefore === this.#changesHeard) this.#unknown.set(saleId, true);
    return undefined;
  }

  #learn(record: SaleRecord, askedAtMs: number): SaleView {
    const { id } = record.sale;
    const known = this.#views.get(id);
    // Engines never go back to an older generation. So its news must not free the slot that they use.
    if (known && record.generation < known.record.generation) return known;
    const isSameGeneration = known?.record.generation === record.generation;
    const slot = isSameGeneration ? known.slot : this.#slots.take();
    this.#board.learn(slot, record.epoch, askedAtMs);
    this.#readEpochs.set(id, record.epoch);
    if (known && isSame(known.record, record)) return known;
    const view = { record, slot };
    this.#views.set(id, view);
    const told = this.#tellAll((listener) => listener.changed(view));
    if (known && !isSameGeneration) this.#slots.release(known.slot, told);
    return view;
  }

  #forget({ record, slot }: SaleView): void {
    const { id } = record.sale;
    this.#views.delete(id);
    this.#readEpochs.delete(id);
    this.#due.delete(id);
    const told = this.#tellAll((listener) => listener.gone(id));
    this.#slots.release(slot, told);
  }

  /** @returns a promise that resolves when all listeners have answered, and rejects if one has failed */
  #tellAll(news: (listener: SaleListener) => void | Promise<void>): Promise<unknown> {
    const told = Promise.all(this.#listeners.map((listener) => tell(listener, news)));
    told.catch(() => {});
    return told;
  }

  #hasChanged({ sale, generation, state }: SaleRecord, version: SaleVersion): boolean {
    return (
      generation !== version.generation ||
      state !== version.state ||
      this.#readEpochs.get(sale.id) !== version.epoch
    );
  }

  #schedule(): void {
    this.#timer = setTimeout(async () => {
      await this.#poll().catch(() => {});
      if (this.#timer) this.#schedule();
    }, BOARD_POLL_MS);
  }

  async #poll(): Promise<void> {
    const poll = this.#polls++;
    if (poll % POLLS_PER_FULL === 0 || monotonicMs() - this.#allDueMs >= FULL_MS) this.#allAreDue();
    if (poll % POLLS_PER_COUNTER === 0 && !this.#isCounting) await this.#briefly(this.#readCounter());
    const saleIds: string[] = [];
    for (const [saleId, { slot }] of this.#views)
      if ((this.#due.has(saleId) || this.#board.isClosed(slot)) && !this.#asking.has(saleId))
        saleIds.push(saleId);
    const reading = this.#backend.isSpread
      ? Promise.allSettled(saleIds.map((saleId) => this.#readVersions([saleId])))
      : this.#readVersions(saleIds);
    await this.#briefly(reading);
    void this.#checkMissing(this.#missing.splice(0));
  }

  /** Of several servers, one that hangs must not keep the board from being confirmed by the others. What it answers later counts. */
  #briefly(work: Promise<unknown>): Promise<unknown> {
    return this.#backend.isSpread ? withTimeout(SPREAD_MS, work).catch(() => {}) : work;
  }

  async #readCounter(): Promise<void> {
    let counter: string;
    this.#isCounting = true;
    try {
      counter = await this.#backend.sales.changeCounter();
    } finally {
      this.#isCounting = false;
    }
    if (counter === this.#changeCounter) return;
    this.#changeCounter = counter;
    // Reads under way may have missed the change.
    this.#changesHeard++;
    this.#unknown.clear();
    this.#reading.clear();
    this.#allAreDue();
  }

  #allAreDue(): void {
    this.#allDueMs = monotonicMs();
    for (const saleId of this.#views.keys()) this.#due.add(saleId);
  }

  async #readVersions(saleIds: readonly string[]): Promise<void> {
    const askedAtMs = monotonicMs();
    const due = new Set(saleIds.filter((saleId) => this.#due.delete(saleId)));
    let versions: readonly (SaleVersion | undefined)[];
    for (const saleId of saleIds) this.#asking.add(saleId);
    try {
      versions = await this.#backend.sales.versions(saleIds);
    } catch (error) {
      for (const saleId of due) this.#due.add(saleId);
      throw error;
    } finally {
      for (const saleId of saleIds) this.#asking.delete(saleId);
    }
    for (const [i, saleId] of saleIds.entries()) {
      const version = versions[i];
      // Read again: meanwhile the slot from before may have been given to another sale.
      const view = this.#views.get(saleId);
      if (!view) continue;
      if (version) {
        if (version.generation === view.record.generation)
          this.#board.learn(view.slot, version.epoch, askedAtMs);
        if (this.#hasChanged(view.record, version)) void this.#read(saleId).catch(() => {});
      } else if (due.has(saleId)) this.#missing.push(saleId);
    }
  }

  /**
   * Reads sales that may be gone. One after the other: while a backend that has lost all its sales is filled again, each read
   * also asks Postgres, which is busy with the rebuilds.
   */
  async #checkMissing(saleIds: readonly string[]): Promise<void> {
    if (this.#isCheckingMissing) return;
    this.#isCheckingMissing = true;
    for (const saleId of saleIds) await this.#read(saleId).catch(() => {});
    this.#isCheckingMissing = false;
  }
}

/** An error that a listener throws at once becomes one of the promise, so that the other listeners are told. */
async function tell(
  listener: SaleListener,
  news: (listener: SaleListener) => void | Promise<void>,
): Promise<void> {
  await news(listener);
}

function isSame(known: SaleRecord, read: SaleRecord): boolean {
  const { generation, state, sale, rules } = known;
  return (
    generation === read.generation &&
    state === read.state &&
    rules === read.rules &&
    JSON.stringify(sale) === JSON.stringify(read.sale)
  );
}
