/**
 * Leases of worker numbers. A number is part of one worker's order ids and names its lanes, and belongs to one worker
 * at a time. Numbers are leased from Postgres for an hour and renewed every five minutes, so that selling continues
 * while Postgres is away for most of that.
 *
 * A number is leased again only REUSE_MARGIN_S after its lease has run out. A holder stops using it when one of two
 * clocks says that the lease is over: the wall clock, which can be set and which goes on while the machine is
 * suspended, or the monotonic clock, which can't be set. So setting the wall clock back does not prolong a lease.
 * Setting it ahead ends the lease: then the holder asks Postgres at once whether the numbers are still its own.
 *
 * Postgres' clock may be set as well. Two rules keep order ids from repeating all the same:
 *
 *   the naming time of a holder never goes back: a renewal brings Postgres' clock to it, not the other way round
 *   `expires_at` is never before the time of an id with that number, and the next holder's ids begin after it
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { type Database, rows } from './database.ts';
import { endFromNow, type LeaseEnd, namingTimeMs, OVER } from './lease-end.ts';
import { HOLDER_MARK } from './older-nodes.ts';

const LEASE_S = 3_600;
const RENEW_EVERY_MS = 300_000;
const RETRY_RENEWAL_MS = 10_000;
/** How often the wall clock is compared with the end of the lease. */
const COMPARE_CLOCK_EVERY_MS = 1_000;
const REUSE_MARGIN_S = 60;

const LOST =
  'a worker number of this node was leased to another node, after Postgres could not be reached for an hour: restart this node';

interface LeasedRow {
  readonly worker: number;
  readonly ends: number;
}

/** Postgres' time, unless its clock was set back behind the time of an id that this holder has named. */
const NOW_OR_NAMED = 'GREATEST(now(), to_timestamp(?::float8))';
const LEASED_COLUMNS = 'worker, extract(epoch FROM expires_at)::float8 * 1000 AS ends';

export class WorkerLeases {
  readonly numbers: readonly number[];
  readonly #db: Database;
  readonly #holder: string;
  #end: LeaseEnd;
  /** The last lease that this holder had: its ids carry times of that lease. */
  #lastHeld: LeaseEnd;
  #timer: NodeJS.Timeout | undefined;
  readonly #clockTimer: NodeJS.Timeout;
  #renewing = false;
  #isReleased = false;
  #listener: (end: LeaseEnd) => void = () => {};
  #tellLost!: (error: Error) => void;
  /** Resolves with the reason if another node holds one of the numbers. None of them may be used any more. */
  readonly lost = new Promise<Error>((resolve) => {
    this.#tellLost = resolve;
  });

  private constructor(db: Database, holder: string, numbers: number[], end: LeaseEnd) {
    this.#db = db;
    this.#holder = holder;
    this.numbers = numbers;
    this.#end = end;
    this.#lastHeld = end;
    this.#renewIn(RENEW_EVERY_MS);
    this.#clockTimer = setInterval(() => this.#renewAfterStep(), COMPARE_CLOCK_EVERY_MS);
    this.#clockTimer.unref();
  }

  /** @throws StockadeError `no_worker_numbers` if all are leased */
  static async take(db: Database, count: number): Promise<WorkerLeases> {
    const holder = `${HOLDER_MARK}${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
    const end = endFromNow(LEASE_S * 1_000);
    // In a transaction, so that a node that gets too few numbers keeps none.
    const taken = await db.transaction(async (trx) => {
      const free = await rows<LeasedRow>(
        trx,
        `UPDATE worker_leases SET holder = ?, expires_at = now() + ? * interval '1 second'
         WHERE worker IN (
           SELECT worker FROM worker_leases WHERE expires_at < now() - ? * interval '1 second'
           ORDER BY expires_at, worker LIMIT ? FOR UPDATE SKIP LOCKED)
         RETURNING ${LEASED_COLUMNS}`,
        [holder, LEASE_S, REUSE_MARGIN_S, count],
      );
      if (free.length === count) return free;
      throw new StockadeError(
        'no_worker_numbers',
        `only ${free.length} of ${count} worker numbers are free: stop other workers, or wait, as leases of dead nodes end within an hour`,
      );
    });
    const numbers = taken.map((row) => row.worker).sort((a, b) => a - b);
    return new WorkerLeases(db, holder, numbers, { ...end, postgresMs: taken[0]!.ends });
  }

  /** Until when the numbers may be used. */
  get end(): LeaseEnd {
    return this.#end;
  }

  /** Calls back with each new end. */
  onRenewed(listener: (end: LeaseEnd) => void): void {
    this.#listener = listener;
  }

  /**
   * Returns the numbers. Others may lease them after the margin. It begins after the latest time in any id that this
   * holder has named.
   */
  async release(): Promise<void> {
    this.#isReleased = true;
    clearTimeout(this.#timer);
    clearInterval(this.#clockTimer);
    await this.#db.raw(
      `UPDATE worker_leases SET expires_at = ${NOW_OR_NAMED}, holder = '' WHERE holder = ?`,
      [this.#namedUpToS(), this.#holder],
    );
  }

  #renewIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#renewAndGoOn(), ms);
    this.#timer.unref();
  }

  /**
   * The lease is over by the wall clock but not by the monotonic clock: the wall clock was set ahead, or the machine
   * slept.
   */
  #renewAfterStep(): void {
    const { wallMs, monotonicMs: steadyMs } = this.#end;
    if (Date.now() >= wallMs && monotonicMs() < steadyMs) void this.#renewAndGoOn();
  }

  /** The timer may come while a renewal after a step of the clock is under way. That one goes on for both. */
  async #renewAndGoOn(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    const renewed = await this.#renew().catch(() => undefined);
    this.#renewing = false;
    // The numbers were returned meanwhile.
    if (this.#isReleased) return;
    if (renewed !== undefined) this.#listener(this.#end);
    // A number that another node holds does not come back: the node must restart and lease others.
    if (renewed === false) this.#tellLost(new StockadeError('lease_lost', LOST));
    else this.#renewIn(renewed ? RENEW_EVERY_MS : RETRY_RENEWAL_MS);
  }

  /**
   * The row names this holder until the number is leased to another, even if the lease ran out meanwhile.
   * @returns whether all numbers are this node's
   */
  async #renew(): Promise<boolean> {
    const end = endFromNow(LEASE_S * 1_000);
    const renewed = await rows<LeasedRow>(
      this.#db,
      `UPDATE worker_leases SET expires_at = ${NOW_OR_NAMED} + ? * interval '1 second'
       WHERE holder = ? RETURNING ${LEASED_COLUMNS}`,
      [this.#namedUpToS(), LEASE_S, this.#holder],
    );
    // If another holder is on one of the rows, none of the numbers may be used, whatever the old lease says.
    const isOurs = renewed.length === this.numbers.length;
    this.#end = isOurs ? { ...end, postgresMs: renewed[0]!.ends } : OVER;
    if (isOurs) this.#lastHeld = this.#end;
    return isOurs;
  }

  /** No id of this holder carries a later time. In seconds since the Unix epoch. */
  #namedUpToS(): number {
    return namingTimeMs(this.#lastHeld) / 1_000;
  }
}
