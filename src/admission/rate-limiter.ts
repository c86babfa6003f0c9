/**
 * Limits the rate of requests per key (a buyer or an address), for all workers of a node, in a table of fixed size.
 *
 * Purpose: to refuse requests of one key that come faster than a policy allows, in well below a microsecond, without I/O.
 * Goals: memory that is fixed when the node starts; a limit that threads share; a table in which no client can choose its
 * cell. Non-goals: one limit over several nodes (each node counts what it sees).
 *
 * The rule is the generic cell rate algorithm (GCRA, ITU-T I.371, in its form with a theoretical arrival time). Each key has
 * one number: the time at which its next request would be due if requests came evenly. A request that comes earlier than that
 * by more than the burst allows is refused, and changes nothing. Any other request is let in, and moves the time on by one
 * interval.
 *
 * The table is set-associative. A key's hash selects a set of eight cells, which is one line of the processor's cache, and a
 * fingerprint, which marks the key's cell in the set. Times are in ticks, a 64th of the interval, and wrap after 2^32 of them.
 *
 *   cell: [fingerprint, 0: empty | time at which the next request is due]
 *
 * There are no locks. Threads update a cell's time by compare-and-swap, so a limit is exact as long as its key keeps the cell.
 * A key without a cell takes an empty one, or the one that is due first. The key that loses its cell is forgotten, and starts
 * again with its full burst. Races between threads err on that side too. A key is never refused because of another key, except
 * for two keys of one set with the same 32-bit fingerprint.
 */
import { monotonicMs } from '../lib/monotonic.ts';
import { KeyedHash } from './keyed-hash.ts';
import { intervalMs, type RatePolicy } from './rate-policy.ts';

const CELLS_PER_SET = 8;
const WORDS_PER_CELL = 2;
const WORDS_PER_SET = CELLS_PER_SET * WORDS_PER_CELL;
const CELL_BYTES = WORDS_PER_CELL * 4;
const TICKS_PER_INTERVAL = 64;
/** Threads read the clock at different moments, so a time may be this much further ahead than the policy allows. */
const CLOCK_MARGIN_MS = 1_000;

/** The state that all limiters of one policy share, in all threads. */
export interface SharedRates {
  readonly table: SharedArrayBuffer;
  /** Random, of HASH_KEY_BYTES. */
  readonly key: Uint8Array;
}

/** @param keys how many the table has room for, rounded up to a power of two, at least 8. Each takes 8 bytes */
export function rateTable(keys: number): SharedArrayBuffer {
  const cells = 2 ** Math.ceil(Math.log2(Math.max(keys, CELLS_PER_SET)));
  return new SharedArrayBuffer(cells * CELL_BYTES);
}

export class RateLimiter {
  /** Keys that this thread removed while their requests still counted. */
  evictions = 0;
  readonly #cells: Int32Array;
  readonly #hash: KeyedHash;
  readonly #lastSet: number;
  readonly #tickMs: number;
  /** By how many ticks a request may come before it is due. */
  readonly #toleranceTicks: number;
  /** A time further ahead than this is stale: the ticks have wrapped since it was written. */
  readonly #maxAheadTicks: number;
  readonly #now: () => number;
  /** Set and fingerprint of the key that `#locate` was called with last. */
  #set = 0;
  #fingerprint = 0;

  /** @param now milliseconds, by a clock that all threads share */
  constructor(policy: RatePolicy, { table, key }: SharedRates, now: () => number = monotonicMs) {
    this.#cells = new Int32Array(table);
    this.#hash = new KeyedHash(key);
    this.#lastSet = this.#cells.length / WORDS_PER_SET - 1;
    this.#tickMs = intervalMs(policy) / TICKS_PER_INTERVAL;
    this.#toleranceTicks = (policy.burst - 1) * TICKS_PER_INTERVAL;
    const burst = policy.burst * TICKS_PER_INTERVAL;
    // For a policy with a short interval, the margin would cover a good part of the whole range of ticks.
    this.#maxAheadTicks = burst + Math.min(CLOCK_MARGIN_MS / this.#tickMs, burst);
    this.#now = now;
  }

  /** @returns 0 if the request is let in; else the milliseconds after which a request would be let in */
  admit(key: string): number {
    this.#locate(key);
    const now = this.#nowTicks();
    const known = this.#find(this.#set, this.#fingerprint);
    const cell = known ?? this.#claim(this.#set, this.#fingerprint, now);
    return cell === undefined ? 0 : this.#charge(cell, now);
  }

  /** How many requests of this key still count, with the fraction of one. */
  counting(key: string): number {
    this.#locate(key);
    const cell = this.#find(this.#set, this.#fingerprint);
    return cell === undefined
      ? 0
      : this.#ahead(Atomics.load(this.#cells, cell + 1), this.#nowTicks()) / TICKS_PER_INTERVAL;
  }

  /** Takes back one request of this key. */
  giveBack(key: string): void {
    this.#locate(key);
    const cell = this.#find(this.#set, this.#fingerprint);
    if (cell === undefined) return;
    const now = this.#nowTicks();
    const due = Atomics.load(this.#cells, cell + 1);
    const next = (now + Math.max(0, this.#ahead(due, now) - TICKS_PER_INTERVAL)) | 0;
    // If this fails, another thread has counted a request of the key meanwhile. Then this request goes on counting.
    Atomics.compareExchange(this.#cells, cell + 1, due, next);
  }

  /** Computes the key's set and fingerprint. */
  #locate(key: string): void {
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
      const early = ahead - this.#toleranceTicks;
      if (early > 0) return early * this.#tickMs;
      const next = (now + ahead + TICKS_PER_INTERVAL) | 0;
      // If this fails, another thread has let a request in. After a whole burst, requests are refused and the loop ends.
      if (Atomics.compareExchange(this.#cells, cell + 1, due, next) === due) return 0;
    }
  }

  #ahead(due: number, now: number): number {
    const ahead = (due - now) | 0;
    return ahead <= this.#maxAheadTicks ? Math.max(0, ahead) : 0;
  }

  #find(set: number, fingerprint: number): number | undefined {
    for (let cell = set; cell < set + WORDS_PER_SET; cell += WORDS_PER_CELL) {
      if (Atomics.load(this.#cells, cell) === fingerprint) return cell;
    }
    return undefined;
  }

  /** Takes a cell of the set for a new key; returns none if other threads keep taking cells at this very moment. */
  #claim(set: number, fingerprint: number, now: number): number | undefined {
    for (let attempt = 0; attempt < CELLS_PER_SET; attempt++) {
      const cell = this.#dueFirst(set, now);
      const before = Atomics.load(this.#cells, cell);
      const isLive = before !== 0 && this.#ahead(Atomics.load(this.#cells, cell + 1), now) > 0;
      // The time is stored first: a thread that finds the new fingerprint must not see the time of the former key.
      Atomics.store(this.#cells, cell + 1, now);
      if (Atomics.compareExchange(this.#cells, cell, before, fingerprint) !== before) continue;
      if (isLive) this.evictions++;
      return cell;
    }
    return undefined;
  }

  /** An empty cell, or else the one whose request is due first. */
  #dueFirst(set: number, now: number): number {
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
