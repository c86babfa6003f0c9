/**
 * Who has asked how much, for all workers of a node, in a table that does not grow.
 *
 * Purpose: to refuse the requests of one buyer or one address that come faster than a policy allows, in well below a
 * microsecond, without I/O. Goals: memory that is fixed when the node starts; a limit that threads share; nobody can aim at
 * the cell of somebody else. Non-goals: one limit over several nodes (each counts what it sees).
 *
 * The rule is the generic cell rate algorithm (GCRA, ITU-T I.371, in its form with a theoretical arrival time): a key has
 * one number, the time at which its next request would be due if all came evenly. A request is let in unless it is earlier
 * than that by more than the burst allows, and moves it on by one interval. What is refused moves nothing.
 *
 * The table is set-associative. A key's hash names a set of eight cells, which are one line of the processor's cache, and
 * the fingerprint that its cell carries. Times are in ticks, a 64th of the interval, and wrap after 2^32 of them.
 *
 *   cell: [fingerprint, 0: empty | time at which the next request is due]
 *
 * No locks. Threads that meet at a cell's time settle it by compare-and-swap: a limit is exact while its cell stays. A key
 * without a cell takes an empty one, or the one that is due first. Whoever loses his cell is forgotten: he may ask as if he
 * had never asked. Each step that can be overtaken errs that way, and nobody is refused for what another has done, but for
 * two keys of one set with the same 32-bit fingerprint.
 */
import { monotonicMs } from '../lib/monotonic.ts';
import { KeyedHash } from './keyed-hash.ts';
import { intervalMs, type RatePolicy } from './rate-policy.ts';

const CELLS_PER_SET = 8;
const WORDS_PER_CELL = 2;
const WORDS_PER_SET = CELLS_PER_SET * WORDS_PER_CELL;
const CELL_BYTES = WORDS_PER_CELL * 4;
const TICKS_PER_INTERVAL = 64;
/** Threads read their clocks at different moments: a time may be so much further ahead than it could be by the policy. */
const CLOCK_MARGIN_MS = 1_000;
const NO_CELL = -1;

/** What all limiters of one policy share, in all threads. */
export interface SharedRates {
  readonly table: SharedArrayBuffer;
  /** Random, of HASH_KEY_BYTES. */
  readonly key: Uint8Array;
}

/** @param keys that the table has room for; the next power of two, 8 at least. Each takes 8 bytes */
export function rateTable(keys: number): SharedArrayBuffer {
  const cells = 2 ** Math.ceil(Math.log2(Math.max(keys, CELLS_PER_SET)));
  return new SharedArrayBuffer(cells * CELL_BYTES);
}

export class RateLimiter {
  /** Keys that were forgotten, by this thread, while their requests still counted. */
  evictions = 0;
  readonly #cells: Int32Array;
  readonly #hash: KeyedHash;
  readonly #lastSet: number;
  readonly #tickMs: number;
  /** By how many ticks a request may come before it is due. */
  readonly #tolerance: number;
  /** A time further ahead was not written by this policy lately: the ticks have wrapped since. */
  readonly #most: number;
  readonly #now: () => number;
  /** Of the key that was named last. */
  #set = 0;
  #fingerprint = 0;

  /** @param now milliseconds, on a clock that all threads share */
  constructor(policy: RatePolicy, { table, key }: SharedRates, now: () => number = monotonicMs) {
    this.#cells = new Int32Array(table);
    this.#hash = new KeyedHash(key);
    this.#lastSet = this.#cells.length / WORDS_PER_SET - 1;
    this.#tickMs = intervalMs(policy) / TICKS_PER_INTERVAL;
    this.#tolerance = (policy.burst - 1) * TICKS_PER_INTERVAL;
    const burst = policy.burst * TICKS_PER_INTERVAL;
    // Of a generous policy the margin would be a good part of all times there are.
    this.#most = burst + Math.min(CLOCK_MARGIN_MS / this.#tickMs, burst);
    this.#now = now;
  }

  /** @returns 0 if the request is let in; else the milliseconds after which the next one is */
  admit(key: string): number {
    this.#name(key);
    const now = this.#nowTicks();
    const known = this.#find(this.#set, this.#fingerprint);
    const cell = known === NO_CELL ? this.#claim(this.#set, this.#fingerprint, now) : known;
    return cell === NO_CELL ? 0 : this.#charge(cell, now);
  }

  /** Requests of this key that still count, and the part of one. */
  counting(key: string): number {
    this.#name(key);
    const cell = this.#find(this.#set, this.#fingerprint);
    return cell === NO_CELL
      ? 0
      : this.#ahead(Atomics.load(this.#cells, cell + 1), this.#nowTicks()) / TICKS_PER_INTERVAL;
  }

  /** One request of this key counts no more. */
  giveBack(key: string): void {
    this.#name(key);
    const cell = this.#find(this.#set, this.#fingerprint);
    if (cell === NO_CELL) return;
    const now = this.#nowTicks();
    const due = Atomics.load(this.#cells, cell + 1);
    const next = (now + Math.max(0, this.#ahead(due, now) - TICKS_PER_INTERVAL)) | 0;
    // Who fails has met another request of the key, and lets this one count on.
    Atomics.compareExchange(this.#cells, cell + 1, due, next);
  }

  /** Where the key's cell is, if it has one. */
  #name(key: string): void {
    this.#hash.of(key);
    this.#fingerprint = this.#hash.low || 1;
    this.#set = (this.#hash.high & this.#lastSet) * WORDS_PER_SET;
  }

  #nowTicks(): number {
    return (this.#now() / this.#tickMs) | 0;
  }

  #charge(cell: number, now: number): number {
    for (;;) {
      const due = Atomics.load(this.#cells, cell + 1);
      const ahead = this.#ahead(due, now);
      const early = ahead - this.#tolerance;
      if (early > 0) return early * this.#tickMs;
      const next = (now + ahead + TICKS_PER_INTERVAL) | 0;
      // Who fails has met somebody who was let in: after a burst of them all are refused, and the loop ends.
      if (Atomics.compareExchange(this.#cells, cell + 1, due, next) === due) return 0;
    }
  }

  #ahead(due: number, now: number): number {
    const ahead = (due - now) | 0;
    return ahead > 0 && ahead <= this.#most ? ahead : 0;
  }

  #find(set: number, fingerprint: number): number {
    for (let cell = set; cell < set + WORDS_PER_SET; cell += WORDS_PER_CELL) {
      if (Atomics.load(this.#cells, cell) === fingerprint) return cell;
    }
    return NO_CELL;
  }

  /** A cell of the set for a new key; none if others keep taking them at this very moment. */
  #claim(set: number, fingerprint: number, now: number): number {
    for (let attempt = 0; attempt < CELLS_PER_SET; attempt++) {
      const cell = this.#leastMissed(set, now);
      const before = Atomics.load(this.#cells, cell);
      const isLive = before !== 0 && this.#ahead(Atomics.load(this.#cells, cell + 1), now) > 0;
      // First the time: whoever finds the new fingerprint must not be refused for what its last holder has done.
      Atomics.store(this.#cells, cell + 1, now);
      if (Atomics.compareExchange(this.#cells, cell, before, fingerprint) !== before) continue;
      if (isLive) this.evictions++;
      return cell;
    }
    return NO_CELL;
  }

  #leastMissed(set: number, now: number): number {
    let found = set;
    let least = Number.POSITIVE_INFINITY;
    for (let cell = set; cell < set + WORDS_PER_SET; cell += WORDS_PER_CELL) {
      if (Atomics.load(this.#cells, cell) === 0) return cell;
      const ahead = this.#ahead(Atomics.load(this.#cells, cell + 1), now);
      if (ahead >= least) continue;
      found = cell;
      least = ahead;
    }
    return found;
  }
}
