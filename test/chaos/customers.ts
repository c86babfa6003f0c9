/**
 * Customers that buy over HTTP until they are stopped. Each has a connection to every node, through its proxy (the door). Some accept `202`, some want two
 * units, some ask for more than the limit. All of them send a key. If the outcome of a purchase is unknown, the customer
 * repeats it with the same key at another door: some at once, others after the last fault.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'undici';
import { type Random, random } from '../support/random.ts';
import { type Answer, History, isOpen, type Purchase } from './history.ts';

/** A customer stops waiting for an answer after this time, which is longer than a node's own deadline. */
const ANSWER_LIMIT_MS = 3_000;
const RETRY_PAUSE_MS = { least: 20, most: 150 };
/** The pause between two purchases of a customer, until the rush. */
const THINKING_MS = { least: 20, most: 80 };
/** The same pause when little stock is left, so that later customers still find something to buy. */
const HESITATING_MS = { least: 500, most: 1_000 };
/** How often a customer repeats an unknown purchase at once, before it leaves it for the end. */
const PERSISTENCE = 6;
/** Refusals that may be different at the next attempt. */
const PASSING = new Set(['busy', 'unavailable', 'rate_limited', 'paused', 'not_started']);

export interface CustomersOptions {
  readonly doors: readonly string[];
  readonly saleId: string;
  readonly customers: number;
  /** After so many units customers pause longer until `rush`, so that stock is left for the last part of the round. */
  readonly reserveFrom: number;
  readonly seed: number;
}

export class Customers implements AsyncDisposable {
  readonly history = new History();
  readonly #options: CustomersOptions;
  readonly #random: Random;
  readonly #buyers: string[] = [];
  readonly #running: Promise<void>[];
  #stopped = false;
  #rushing = false;
  #soldOut = 0;

  constructor(options: CustomersOptions) {
    this.#options = options;
    this.#random = random(options.seed);
    this.#running = Array.from({ length: options.customers }, (_, i) => this.#shop(i));
  }

  /**
   * Customers stop pausing and buy everything that is left. Resolves when each was answered "sold out", or has
   * reached the limit.
   */
  async rush(limitMs: number): Promise<boolean> {
    this.#rushing = true;
    this.#soldOut = 0;
    const deadline = performance.now() + limitMs;
    while (this.#soldOut < this.#options.customers && performance.now() < deadline) await delay(10);
    return this.#soldOut >= this.#options.customers;
  }

  /** Starts no new purchases. Resolves when each customer's last one has ended. */
  async stop(): Promise<History> {
    this.#stopped = true;
    await Promise.all(this.#running);
    return this.history;
  }

  /** Repeats all purchases with an unknown outcome, with their keys, until all outcomes are known. */
  async settle(limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs;
    const open = this.history.open;
    const doors = this.#openDoors();
    try {
      await Promise.all(
        doors.map(async (door, i) => {
          for (let n = i; n < open.length; n += doors.length) {
            while (isOpen(open[n]!) && performance.now() < deadline) {
              await this.#ask(door, open[n]!);
              if (isOpen(open[n]!)) await this.#pause(RETRY_PAUSE_MS);
            }
          }
        }),
      );
    } finally {
      await closeAll(doors);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #shop(number: number): Promise<void> {
    const doors = this.#openDoors();
    let turn = number;
    const nextDoor = () => doors[turn++ % doors.length]!;
    try {
      while (!this.#stopped) {
        await this.#think();
        await this.#buy(nextDoor);
      }
    } finally {
      await closeAll(doors);
    }
  }

  async #think(): Promise<void> {
    if (this.#rushing) return;
    await this.#pause(THINKING_MS);
    if (this.history.units >= this.#options.reserveFrom) await this.#pause(HESITATING_MS);
  }

  async #buy(nextDoor: () => Client): Promise<void> {
    const purchase = this.#newPurchase();
    this.history.purchases.push(purchase);
    const asksAtOnce = this.#random.chance(0.6);
    for (let attempt = 0; attempt < PERSISTENCE; attempt++) {
      if (attempt > 0) await this.#pause(RETRY_PAUSE_MS);
      await this.#ask(nextDoor(), purchase);
      const { answer } = purchase;
      if (answer.kind === 'ok' || (answer.kind === 'refused' && answer.final)) break;
      if (!asksAtOnce || this.#stopped) break;
    }
    if (purchase.answer.kind === 'refused' && purchase.answer.code === 'sold_out') this.#soldOut++;
    if (purchase.answer.kind === 'ok' && this.#random.chance(0.05)) await this.#repeat(nextDoor(), purchase);
  }

  #newPurchase(): Purchase {
    const { chance, whole } = this.#random;
    const comesBack = this.#buyers.length > 0 && chance(0.2);
    const buyerId = comesBack
      ? this.#buyers[whole(0, this.#buyers.length - 1)]!
      : `buyer-${this.#buyers.length}`;
    if (!comesBack) this.#buyers.push(buyerId);
    return {
      buyerId,
      key: `key-${this.history.purchases.length}`,
      quantity: chance(0.2) ? 2 : 1,
      hurried: chance(0.4),
      attempts: 0,
      unknowns: 0,
      answer: { kind: 'unknown' },
    };
  }

  async #ask(door: Client, purchase: Purchase): Promise<void> {
    const answer = await send(door, this.#options.saleId, purchase);
    purchase.attempts++;
    if (answer.kind === 'unknown') purchase.unknowns++;
    purchase.answer = answer;
    if (answer.kind === 'ok') this.history.served(purchase, answer.status);
  }

  /** A key always names the same order. */
  async #repeat(door: Client, purchase: Purchase): Promise<void> {
    const first = purchase.answer;
    const again = await send(door, this.#options.saleId, purchase);
    if (first.kind !== 'ok' || again.kind !== 'ok') return;
    if (again.orderId !== first.orderId) {
      this.history.changed.push(`${purchase.key}: ${first.orderId}, then ${again.orderId}`);
    }
  }

  #openDoors(): Client[] {
    const limits = {
      headersTimeout: ANSWER_LIMIT_MS,
      bodyTimeout: ANSWER_LIMIT_MS,
      connect: { timeout: ANSWER_LIMIT_MS },
    };
    return this.#options.doors.map((url) => new Client(url, limits));
  }

  #pause({ least, most }: { least: number; most: number }): Promise<void> {
    return delay(this.#random.whole(least, most));
  }
}

async function send(door: Client, saleId: string, purchase: Purchase): Promise<Answer> {
  try {
    const { statusCode, body } = await door.request({
      method: 'POST',
      path: `/v1/sales/${saleId}/orders`,
      headers: {
        'x-buyer-id': purchase.buyerId,
        'idempotency-key': purchase.key,
        ...(purchase.hurried && { prefer: 'respond-async' }),
      },
      body: JSON.stringify({ quantity: purchase.quantity }),
    });
    return read(statusCode, (await body.json()) as { code?: string; orderId?: string });
  } catch {
    return { kind: 'unknown' };
  }
}

function read(status: number, { code = '', orderId = '' }: { code?: string; orderId?: string }): Answer {
  if (status === 201 || status === 202) return { kind: 'ok', status, orderId };
  if (code === 'unknown' || status === 500) return { kind: 'unknown' };
  return { kind: 'refused', code, final: !PASSING.has(code) };
}

async function closeAll(doors: readonly Client[]): Promise<void> {
  await Promise.all(doors.map((door) => door.destroy()));
}
