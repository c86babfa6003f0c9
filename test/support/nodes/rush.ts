/** Buyers who come to nodes one after the other while something breaks. */
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../fixtures.ts';
import type { Answer, TestNode } from './node.ts';

/** Buyers who ask at the same time. */
export const LINES = 24;
/** Pause after a refused buyer, before the next one comes. */
const BREATH_MS = 10;

/** How one buyer's only request ended; `lost`: the node died before it answered. */
export interface Ending {
  readonly buyerId: string;
  readonly code: string;
  readonly answer: Answer | undefined;
}

/** Lines of buyers. Each buyer asks once, with its own key, at one of the nodes that are up. */
export class Rush implements AsyncDisposable {
  readonly endings: Ending[] = [];
  readonly #saleId: string;
  readonly #nodes: readonly TestNode[];
  readonly #most: number;
  readonly #ended: Promise<unknown>;
  readonly #underWay = new Map<TestNode, number>();
  #stopped = false;
  #next = 0;

  /** @param most buyers who come, if the rush is not stopped before */
  constructor(saleId: string, nodes: readonly TestNode[], most = Number.POSITIVE_INFINITY) {
    this.#saleId = saleId;
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
      const answer = await buy(node, this.#saleId, buyerId).catch(() => undefined);
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
