/**
 * Order ids: 63 bits, `31-bit seconds since 2022-01-01Z | 32 bits`. The 32 bits are (worker number, counter), put
 * through a keyed bijection. Ids rise with time, never repeat, need no round trip, and don't reveal how much is sold.
 *
 * Ids never repeat: a worker number belongs to one worker at a time (it is leased), a counter value is used once per
 * second, and a bijection keeps different inputs different. For that, the key must be the same on every node.
 *
 * The bijection is a Feistel network of four rounds (Luby and Rackoff, "How to construct pseudorandom permutations",
 * 1988) over two halves of 16 bits. The round functions are tables of 2^16 values drawn from AES-256-CTR under the
 * key. Each second has its own round keys, so that counter 0 looks different in every second.
 */
import { createCipheriv, createHmac } from 'node:crypto';

/** 2022-01-01T00:00:00Z. 31 bits of seconds end in 2090. */
export const ORDER_ID_EPOCH_MS = Date.UTC(2022, 0, 1);

const MAX_SECOND = 2 ** 31 - 1;

const WORKER_NUMBER_BITS = 12;
export const MAX_WORKER_NUMBERS = 2 ** WORKER_NUMBER_BITS;
/** Ids that one worker can make in a second. Beyond that it uses ids of the next second. */
const COUNTERS = 2 ** (32 - WORKER_NUMBER_BITS);

/** An id is computed as two numbers: formatting one 64-bit BigInt costs more than the bijection. */
const BILLION = 1_000_000_000;

const ROUNDS = 4;
const HALF = 2 ** 16;

export interface OrderIdOptions {
  /** 32 bytes, the same on every node. */
  readonly key: Uint8Array;
  /** 0 to MAX_WORKER_NUMBERS - 1, this worker's alone. */
  readonly worker: number;
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number;
}

export class OrderIds {
  readonly #bijection: Bijection;
  readonly #worker: number;
  readonly #now: () => number;
  #second = -1;
  #counter = 0;
  /** The second's part of the id, `second * 2^32`, is too large for a number. So it is kept as billions and the rest. */
  #billions = 0;
  #rest = 0;

  /** @throws RangeError if the worker number or the key's length is out of range */
  constructor({ key, worker, now = Date.now }: OrderIdOptions) {
    if (!Number.isInteger(worker) || worker < 0 || worker >= MAX_WORKER_NUMBERS) {
      throw new RangeError(`worker number ${worker} is not within 0 to ${MAX_WORKER_NUMBERS - 1}`);
    }
    this.#bijection = new Bijection(key);
    this.#worker = worker;
    this.#now = now;
  }

  next(): string {
    const second = secondOf(this.#now());
    if (second > this.#second) this.#begin(second);
    else if (this.#counter === COUNTERS) this.#begin(this.#second + 1);
    const input = ((this.#worker << (32 - WORKER_NUMBER_BITS)) | this.#counter++) >>> 0;
    const rest = this.#rest + this.#bijection.map(input);
    const carry = Math.floor(rest / BILLION);
    return `${this.#billions + carry}${String(rest - carry * BILLION).padStart(9, '0')}`;
  }

  /** If the clock steps back, ids continue in the second that was reached. */
  #begin(second: number): void {
    this.#second = second;
    this.#counter = 0;
    const high = BigInt(second) << 32n;
    this.#billions = Number(high / BigInt(BILLION));
    this.#rest = Number(high % BigInt(BILLION));
    this.#bijection.tweak(second);
  }
}

const MAX_ORDER_ID = String(2n ** 63n - 1n);
/** An order id as a pattern: without leading zeros. Not every match fits in 63 bits. */
export const ORDER_ID_DIGITS = '0|[1-9]\\d{0,18}';
const ORDER_ID = new RegExp(`^(?:${ORDER_ID_DIGITS})$`);

/** False for text that can't be an order id, so that no store needs to be asked. */
export function isOrderId(text: string): boolean {
  return ORDER_ID.test(text) && fitsOrderId(text);
}

/** @param digits as ORDER_ID_DIGITS */
export function fitsOrderId(digits: string): boolean {
  return digits.length < MAX_ORDER_ID.length || digits <= MAX_ORDER_ID;
}

/** When the order was taken, in milliseconds since the Unix epoch, to the second. */
export function takenAtMs(orderId: string): number {
  return Number(BigInt(orderId) >> 32n) * 1000 + ORDER_ID_EPOCH_MS;
}

/** Smaller than every id of an order that was taken at this time or later, and above all others. */
export function firstIdAt(ms: number): string {
  const second = Math.ceil((ms - ORDER_ID_EPOCH_MS) / 1000);
  return String(BigInt(Math.min(Math.max(second, 0), MAX_SECOND)) << 32n);
}

function secondOf(ms: number): number {
  return Math.floor((ms - ORDER_ID_EPOCH_MS) / 1000);
}

class Bijection {
  readonly #key: Uint8Array;
  readonly #tables = new Uint16Array(ROUNDS * HALF);
  readonly #roundKeys = new Uint16Array(ROUNDS);

  constructor(key: Uint8Array) {
    if (key.length !== 32) throw new RangeError(`the order id key has ${key.length} bytes; it must have 32`);
    this.#key = key;
    const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
    const stream = cipher.update(Buffer.alloc(this.#tables.byteLength));
    new Uint8Array(this.#tables.buffer).set(stream);
  }

  tweak(second: number): void {
    const digest = createHmac('sha256', this.#key).update(String(second)).digest();
    for (const round of this.#roundKeys.keys()) this.#roundKeys[round] = digest.readUInt16LE(round * 2);
  }

  map(input: number): number {
    let left = input >>> 16;
    let right = input & 0xffff;
    for (let round = 0; round < ROUNDS; round++) {
      const mixed = left ^ this.#tables[round * HALF + (right ^ this.#roundKeys[round]!)]!;
      left = right;
      right = mixed;
    }
    return ((left << 16) | right) >>> 0;
  }
}
