/**
 * Rebuilds that operators request. Each runs in the process that got the request, whether or not a client still
 * waits; progress and result can be queried.
 *
 *   none ──recover──> running ──built, by this process or by another──> nodes name the lost orders ──a second──> done
 *                        └──the stores fail──> failed
 *
 * If the process dies, the lock is free, and the sync that finds the sale continues where the rebuild stopped.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Backend } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { Recovery, RecoveryReport } from '../operations/recover-operations.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { readSale } from '../sales/sale-rows.ts';
import { readLosses } from './lost-orders.ts';
import { type RebuildReport, rebuildSale } from './rebuild.ts';
import { ifFreeToRebuild } from './rebuild-lock.ts';

const RETRY_MS = 100;
/**
 * Nodes learn of a new generation within BOARD_REPAIR_MS, and then ask Postgres once. Names that come later are
 * stored too.
 */
const NAMES_MS = 1_000;
/** Another process that has lost its lock may begin a newer generation. If that happens more often, something else is wrong. */
const MAX_ATTEMPTS = 5;
/** Results that are kept for queries. */
const MAX_KEPT = 1_000;

export class Recoveries {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #locks: SaleLocks;
  readonly #claim: () => Promise<void>;
  readonly #known = new Map<string, Recovery>();
  readonly #runs = new Map<string, Promise<void>>();

  /** @param claim see `SyncStores` */
  constructor(db: Database, backend: Backend, locks: SaleLocks, claim: () => Promise<void>) {
    this.#db = db;
    this.#backend = backend;
    this.#locks = locks;
    this.#claim = claim;
  }

  begin(saleId: string): Recovery {
    const known = this.#known.get(saleId);
    if (known?.state === 'running') return known;
    const running: Recovery = { saleId, state: 'running', step: 'salvage', done: 0, total: 0 };
    this.#keep(running);
    const run = this.#run(saleId).finally(() => this.#runs.delete(saleId));
    this.#runs.set(saleId, run);
    return running;
  }

  /** Starts a rebuild, or joins the one under way, and waits for its end. */
  async complete(saleId: string): Promise<Recovery> {
    this.begin(saleId);
    await this.#runs.get(saleId);
    return this.stateOf(saleId);
  }

  /** The state, with the lost orders that are known by now. */
  async stateOf(saleId: string): Promise<Recovery> {
    const known = this.#known.get(saleId) ?? { saleId, state: 'none' };
    if (known.state !== 'done') return known;
    return { ...known, losses: await readLosses(this.#db, saleId, known.generation) };
  }

  #keep(recovery: Recovery): void {
    this.#known.delete(recovery.saleId);
    this.#known.set(recovery.saleId, recovery);
    for (const [saleId, { state }] of this.#known) {
      if (this.#known.size <= MAX_KEPT) return;
      if (state !== 'running') this.#known.delete(saleId);
    }
  }

  /** Never rejects. */
  async #run(saleId: string): Promise<void> {
    const began = monotonicMs();
    try {
      const built = await this.#rebuild(saleId);
      const tookMs = Math.round(monotonicMs() - began);
      if (this.#backend.durable) {
        this.#keep({ saleId, state: 'running', step: 'names', done: 0, total: 1 });
        await delay(NAMES_MS);
      }
      const losses = await readLosses(this.#db, saleId, built.generation);
      this.#keep({ ...built, saleId, state: 'done', tookMs, losses });
    } catch (error) {
      this.#keep({
        saleId,
        state: 'failed',
        problem: problemOf(error),
      });
    }
  }

  async #rebuild(saleId: string): Promise<Omit<RecoveryReport, 'losses' | 'tookMs'>> {
    // The generation that sells now. If a rebuild is under way already, its result is as good as that of a new one.
    const before = (await this.#backend.sales.read(saleId))?.generation ?? 0;
    for (let attempt = 1; ; ) {
      const another = await this.#builtSince(saleId, before);
      if (another !== undefined) return { generation: another };
      try {
        const mine = await ifFreeToRebuild(this.#locks, saleId, () => this.#attempt(saleId));
        if (mine) return mine.value;
        this.#keep({ saleId, state: 'running', step: 'wait', done: 0, total: 0 });
        await delay(RETRY_MS);
      } catch (error) {
        if (!(error instanceof StaleGeneration) || ++attempt > MAX_ATTEMPTS) throw error;
      }
    }
  }

  async #attempt(saleId: string): Promise<RebuildReport & { rejectedOrders: number }> {
    await this.#claim();
    let rejectedOrders = 0;
    const witness = { newest: [], rejected: () => void rejectedOrders++, ordersLost() {} };
    const report = await rebuildSale(this.#db, this.#backend, saleId, witness, {
      progress: (progress) => this.#keep({ saleId, state: 'running', ...progress }),
    });
    // The sale existed, and was not archived, when the request came.
    if (!report)
      throw new Error(`sale ${saleId} is archived, or not in Postgres: there is nothing to rebuild`);
    return { ...report, rejectedOrders };
  }

  /** The generation in which another process has rebuilt the sale since. */
  async #builtSince(saleId: string, generation: number): Promise<number | undefined> {
    const [row, record] = await Promise.all([readSale(this.#db, saleId), this.#backend.sales.read(saleId)]);
    const built = row !== undefined && record?.generation === row.generation;
    return built && row.generation > generation ? row.generation : undefined;
  }
}

/** Why a rebuild failed, as a part of a sentence. When Redis is away, its client's error speaks of an option of the client. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'MaxRetriesPerRequestError') return 'Redis does not answer';
  return error.message.replace(/\.+$/, '');
}
