/** Buyers who come to nodes one after the other while something breaks, and what must be true afterwards. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { until } from '../fixtures.ts';
import { expectKept, expectWithinLimit, ordersOf } from '../shop/truth.ts';
import type { Answer, TestNode } from './node.ts';

/** The stock of a sale that a rush comes to: a unit for each buyer. */
export const STOCK = 100_000;
/** Buyers who ask at the same time. */
export const LINES = 24;
/** Pause after a refused buyer, before the next one comes. */
const BREATH_MS = 10;
/** Answers that say: nothing was taken. */
const DENIED = ['busy', 'unavailable'];

/** How one buyer's only request ended; `lost`: the node died before it answered. */
export interface Ending {
  readonly buyerId: string;
  readonly code: string;
  readonly answer: Answer | undefined;
}

/** Lines of buyers. Each buyer asks once, with its own key, at one of the nodes that are up. */
export class Rush implements AsyncDisposable {
  readonly saleId: string;
  readonly endings: Ending[] = [];
  readonly #nodes: readonly TestNode[];
  readonly #most: number;
  readonly #ended: Promise<unknown>;
  readonly #underWay = new Map<TestNode, number>();
  #stopped = false;
  #next = 0;

  /** @param most buyers who come, if the rush is not stopped before */
  constructor(saleId: string, nodes: readonly TestNode[], most = STOCK) {
    this.saleId = saleId;
    this.#nodes = nodes;
    this.#most = most;
    this.#ended = Promise.all(Array.from({ length: LINES }, () => this.#line()));
  }

  codes(from = 0): Set<string> {
    return new Set(this.endings.slice(from).map(({ code }) => code));
  }

  /** The buyers whose requests had this end. */
  buyersWith(...codes: string[]): string[] {
    return this.endings.filter(({ code }) => codes.includes(code)).map(({ buyerId }) => buyerId);
  }

  promises(...codes: string[]) {
    return this.endings.flatMap(({ buyerId, code, answer }) =>
      codes.includes(code) ? [{ buyerId, orderId: answer!.body.orderId as string, quantity: 1 }] : [],
    );
  }

  /** Waits until this many more purchases had this end. */
  async more(count: number, ...codes: string[]): Promise<void> {
    const from = this.endings.length;
    const found = () => this.endings.slice(from).filter(({ code }) => codes.includes(code)).length >= count;
    await until(found, { what: `${count} more purchases end ${codes.join(' or ')}`, timeoutMs: 60_000 });
  }

  /** Requests that this node has not answered yet. */
  underWayAt(node: TestNode): number {
    return this.#underWay.get(node) ?? 0;
  }

  /** Resolves when all buyers have come. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  /** Resolves when the last buyer has its answer. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #line(): Promise<void> {
    while (!this.#stopped && this.#next < this.#most) {
      const n = this.#next++;
      const up = this.#nodes.filter((node) => node.isUp);
      const buyerId = `buyer-${n}`;
      const node = up[n % up.length]!;
      this.#underWay.set(node, this.underWayAt(node) + 1);
      const answer = await buy(node, this.saleId, buyerId).catch(() => undefined);
      this.#underWay.set(node, this.underWayAt(node) - 1);
      this.endings.push({ buyerId, code: answer ? answer.code : 'lost', answer });
      if (answer?.status !== 201) await delay(BREATH_MS);
    }
  }
}

/** Asks with a key that is the buyer's own, so that a repetition is the same purchase. */
export function buy(node: TestNode, saleId: string, buyerId: string): Promise<Answer> {
  return node.buy(saleId, buyerId, { key: `key-of-${buyerId}` });
}

/** Asks with the same key until the order is committed. */
export async function settle(node: TestNode, saleId: string, buyerId: string): Promise<void> {
  await until(async () => (await buy(node, saleId, buyerId)).status === 201, {
    what: `the purchase of ${buyerId} is settled`,
  });
}

/**
 * Checks, once the logs are drained: each promise that ended with `kept` is an order of its own in Postgres, no buyer has two
 * orders, refused buyers have none, and the identities hold.
 */
export async function expectTrue(node: TestNode, databaseUrl: string, rush: Rush, kept: readonly string[]) {
  const { saleId } = rush;
  const drained = async () => {
    const { remaining, committedUnits } = await node.ops.show(saleId);
    return remaining! + committedUnits === STOCK;
  };
  await until(drained, { what: 'all that was taken is committed', timeoutMs: 60_000 });
  const orders = await ordersOf(databaseUrl, saleId);
  const promises = rush.promises(...kept);
  expectKept(promises, orders);
  expect(new Set(promises.map(({ orderId }) => orderId)).size).toBe(promises.length);
  expectWithinLimit(orders, 1);
  const holders = new Set([...orders.values()].map(({ buyerId }) => buyerId));
  expect(rush.buyersWith(...DENIED).filter((buyerId) => holders.has(buyerId))).toEqual([]);
  expect(await node.ops.verify(saleId)).toMatchObject({
    ok: true,
    findings: [],
    rejectedOrders: 0,
    committedOrders: orders.size,
    distinctBuyers: orders.size,
  });
  return orders;
}
