/**
 * Worker numbers: each names one worker's order ids and lanes, and belongs to one worker at a time. They are leased from
 * Postgres for an hour and renewed every five minutes, so that selling goes on while Postgres is away for most of that.
 *
 * A number is given on only REUSE_MARGIN_S after its lease has run out; a holder stops using it when one of its clocks
 * says that the lease is over: the one that can be set, which goes on while the machine is suspended, or the one that
 * can't. So a clock that is set back does not prolong a lease, and one that is set ahead ends it: then Postgres is asked
 * at once, which knows whether the numbers are still this holder's.
 *
 * Postgres' clock may be set as well. Two rules keep order ids from repeating all the same:
 *
 *   the naming time of a holder never goes back: a renewal brings Postgres' clock to it, not the other way round
 *   `expires_at` is never before a time by which ids of that number have been named, and its next holder begins behind it
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { NotExecuted, StockadeError } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { type Database, rows } from './database.ts';

const LEASE_S = 3_600;
const RENEW_EVERY_MS = 300_000;
const RETRY_RENEWAL_MS = 10_000;
/** How soon a lease is asked for again that is over by this machine's clock. */
const LOOK_EVERY_MS = 1_000;
const REUSE_MARGIN_S = 60;
const SHARED_KEY_BYTES = 32;

/**
 * When a lease is over, on two clocks of this machine, by whichever comes first; and the same moment by that of Postgres.
 * All threads have the same clocks.
 */
export interface LeaseEnd {
  /** Milliseconds since the Unix epoch. */
  readonly wallMs: number;
  /** As `monotonicMs` counts. */
  readonly monotonicMs: number;
  /** Milliseconds since the Unix epoch, by Postgres. */
  readonly postgresMs: number;
}

const LOST =
  'a worker number of this node was leased to another one, after Postgres could not be reached for an hour; start the node anew';
const OVER: LeaseEnd = { wallMs: 0, monotonicMs: 0, postgresMs: 0 };

interface LeasedRow {
  readonly worker: number;
  readonly ends: number;
}

/** By Postgres, unless its clock was set back behind what this holder has named. */
const NOW_OR_NAMED = 'GREATEST(now(), to_timestamp(?::float8))';
const LEASED_COLUMNS = 'worker, extract(epoch FROM expires_at)::float8 * 1000 AS ends';

export class WorkerLeases {
  readonly numbers: readonly number[];
  readonly #db: Database;
  readonly #holder: string;
  #end: LeaseEnd;
  /** The last lease that was this holder's: by it ids were named, if any were. */
  #lastHeld: LeaseEnd;
  #timer: NodeJS.Timeout | undefined;
  readonly #look: NodeJS.Timeout;
  #renewing = false;
  #listener: (end: LeaseEnd) => void = () => {};
  #tellLost!: (error: Error) => void;
  /** Resolves with the reason if one of the numbers is somebody else's now. None of them may be used any more. */
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
    this.#look = setInterval(() => this.#renewAfterStep(), LOOK_EVERY_MS);
    this.#look.unref();
  }

  /** @throws StockadeError `no_worker_numbers` if all are leased */
  static async take(db: Database, count: number): Promise<WorkerLeases> {
    const holder = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
    const end = endFromNow();
    // In a transaction: who gets too few must not keep the few.
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
        `only ${free.length} of ${count} worker numbers are free; leases of nodes that died run out within an hour`,
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

  /** Gives the numbers back. They are free for others after the margin, by a clock that is past what they have named. */
  async release(): Promise<void> {
    clearTimeout(this.#timer);
    clearInterval(this.#look);
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

  /** The lease is over by the clock that can be set, and not by the other: it was set ahead, or the machine slept. */
  #renewAfterStep(): void {
    const { wallMs, monotonicMs: steadyMs } = this.#end;
    if (Date.now() >= wallMs && monotonicMs() < steadyMs && !this.#renewing) void this.#renewAndGoOn();
  }

  async #renewAndGoOn(): Promise<void> {
    this.#renewing = true;
    const renewed = await this.#renew().catch(() => undefined);
    this.#renewing = false;
    if (renewed !== undefined) this.#listener(this.#end);
    // A number that is somebody else's does not come back: the node has to begin anew, with others.
    if (renewed === false) this.#tellLost(new StockadeError('lease_lost', LOST));
    else this.#renewIn(renewed ? RENEW_EVERY_MS : RETRY_RENEWAL_MS);
  }

  /**
   * The row still names this holder as long as nobody else was given the number, even if the lease ran out meanwhile.
   * @returns whether all numbers are this node's
   */
  async #renew(): Promise<boolean> {
    const end = endFromNow();
    const renewed = await rows<LeasedRow>(
      this.#db,
      `UPDATE worker_leases SET expires_at = ${NOW_OR_NAMED} + ? * interval '1 second'
       WHERE holder = ? RETURNING ${LEASED_COLUMNS}`,
      [this.#namedUpToS(), LEASE_S, this.#holder],
    );
    // Another holder on one of the rows: the numbers are not this node's any more, whatever the old lease says.
    const isOurs = renewed.length === this.numbers.length;
    this.#end = isOurs ? { ...end, postgresMs: renewed[0]!.ends } : OVER;
    if (isOurs) this.#lastHeld = this.#end;
    return isOurs;
  }

  /** No id was named by a later time. In seconds since the Unix epoch. */
  #namedUpToS(): number {
    return namingTimeMs(this.#lastHeld) / 1_000;
  }
}

/** To be asked for before Postgres is: then the lease ends here no later than there. */
function endFromNow(): Omit<LeaseEnd, 'postgresMs'> {
  return { wallMs: Date.now() + LEASE_S * 1_000, monotonicMs: monotonicMs() + LEASE_S * 1_000 };
}

export function isLeased(end: LeaseEnd): boolean {
  return Date.now() < end.wallMs && monotonicMs() < end.monotonicMs;
}

/**
 * The time by which order ids are named, in milliseconds since the Unix epoch: that of Postgres, counted on since the lease
 * was given. By a clock of the holder's, which can be set, the next holder of the number could come to the same second.
 * From renewal to renewal it never goes back.
 */
export function namingTimeMs({ postgresMs, monotonicMs: endMs }: LeaseEnd): number {
  return postgresMs - (endMs - monotonicMs());
}

/** @throws NotExecuted when the lease is over: another worker may have the number by now */
export function assertLeased(end: LeaseEnd): void {
  if (isLeased(end)) return;
  throw new NotExecuted(
    `the lease of this worker's number was good until ${new Date(end.wallMs).toISOString()} and could not be renewed`,
  );
}

/** The key of the order ids. */
export function orderIdKey(db: Database): Promise<Uint8Array> {
  return sharedKey(db, 'order_id_key');
}

/** A random key of 32 bytes, the same for all nodes of this database; made by the first who asks. */
export async function sharedKey(db: Database, name: string): Promise<Uint8Array> {
  await db.raw('INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING', [
    name,
    randomBytes(SHARED_KEY_BYTES),
  ]);
  return (await readSharedKey(db, name))!;
}

/** @returns `undefined` if nobody has asked for it yet */
export async function readSharedKey(db: Database, name: string): Promise<Uint8Array | undefined> {
  const [row] = await rows<{ value: Buffer }>(db, 'SELECT value FROM settings WHERE name = ?', [name]);
  return row && new Uint8Array(row.value);
}
