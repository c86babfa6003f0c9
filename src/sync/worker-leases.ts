/**
 * Worker numbers: each names one worker's order ids and lanes, and belongs to one worker at a time. They are leased from
 * Postgres for an hour and renewed every five minutes, so that selling goes on while Postgres is away for most of that.
 *
 * A number is given on only REUSE_MARGIN_S after its lease has run out; a holder stops using it when its own clock says
 * that the lease is over. So two clocks may differ by up to the margin (`stockade doctor` compares them).
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { NotExecuted, StockadeError } from '../engine/errors.ts';
import { type Database, rows } from './database.ts';

const LEASE_S = 3_600;
const RENEW_EVERY_MS = 300_000;
const RETRY_RENEWAL_MS = 10_000;
const REUSE_MARGIN_S = 60;
const SHARED_KEY_BYTES = 32;

export class WorkerLeases {
  readonly numbers: readonly number[];
  readonly #db: Database;
  readonly #holder: string;
  #expiresAtMs: number;
  #timer: NodeJS.Timeout | undefined;

  private constructor(db: Database, holder: string, numbers: number[], expiresAtMs: number) {
    this.#db = db;
    this.#holder = holder;
    this.numbers = numbers;
    this.#expiresAtMs = expiresAtMs;
    this.#renewIn(RENEW_EVERY_MS, () => {});
  }

  /** @throws StockadeError `no_worker_numbers` if all are leased */
  static async take(db: Database, count: number): Promise<WorkerLeases> {
    const holder = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
    const asked = Date.now();
    // In a transaction: who gets too few must not keep the few.
    const taken = await db.transaction(async (trx) => {
      const free = await rows<{ worker: number }>(
        trx,
        `UPDATE worker_leases SET holder = ?, expires_at = now() + ? * interval '1 second'
         WHERE worker IN (
           SELECT worker FROM worker_leases WHERE expires_at < now() - ? * interval '1 second'
           ORDER BY expires_at, worker LIMIT ? FOR UPDATE SKIP LOCKED)
         RETURNING worker`,
        [holder, LEASE_S, REUSE_MARGIN_S, count],
      );
      if (free.length === count) return free;
      throw new StockadeError(
        'no_worker_numbers',
        `only ${free.length} of ${count} worker numbers are free; leases of nodes that died run out within an hour`,
      );
    });
    const numbers = taken.map((row) => row.worker).sort((a, b) => a - b);
    return new WorkerLeases(db, holder, numbers, asked + LEASE_S * 1_000);
  }

  /** Until when the numbers may be used, in milliseconds since the Unix epoch by this node's clock. */
  get expiresAtMs(): number {
    return this.#expiresAtMs;
  }

  /** Renews from now on by itself, and calls back with each new end. */
  onRenewed(listener: (expiresAtMs: number) => void): void {
    clearTimeout(this.#timer);
    this.#renewIn(RENEW_EVERY_MS, listener);
  }

  /** Gives the numbers back. They are free for others after the margin. */
  async release(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#db.raw("UPDATE worker_leases SET expires_at = now(), holder = '' WHERE holder = ?", [
      this.#holder,
    ]);
  }

  #renewIn(ms: number, listener: (expiresAtMs: number) => void): void {
    this.#timer = setTimeout(async () => {
      const renewed = await this.#renew().catch(() => undefined);
      if (renewed !== undefined) listener(this.#expiresAtMs);
      this.#renewIn(renewed ? RENEW_EVERY_MS : RETRY_RENEWAL_MS, listener);
    }, ms);
    this.#timer.unref();
  }

  /**
   * The row still names this holder as long as nobody else was given the number, even if the lease ran out meanwhile.
   * @returns whether all numbers are this node's
   */
  async #renew(): Promise<boolean> {
    const asked = Date.now();
    const renewed = await rows(
      this.#db,
      `UPDATE worker_leases SET expires_at = now() + ? * interval '1 second'
       WHERE holder = ? RETURNING worker`,
      [LEASE_S, this.#holder],
    );
    // Another holder on one of the rows: the numbers are not this node's any more, whatever the old lease says.
    const isOurs = renewed.length === this.numbers.length;
    this.#expiresAtMs = isOurs ? asked + LEASE_S * 1_000 : 0;
    return isOurs;
  }
}

/** @throws NotExecuted when the lease has run out: another worker may have the number by now */
export function assertLeased(expiresAtMs: number): void {
  if (Date.now() < expiresAtMs) return;
  throw new NotExecuted(
    `this worker's number could not be renewed since ${new Date(expiresAtMs).toISOString()}`,
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
  const [row] = await rows<{ value: Buffer }>(db, 'SELECT value FROM settings WHERE name = ?', [name]);
  return new Uint8Array(row!.value);
}
