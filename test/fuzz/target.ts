/** The node under test: its sales and orders, what it logs, and whether it still works. */

import { BY } from '../support/author.ts';
import type { TestNode } from '../support/nodes/node.ts';
import { residentBytesOf } from '../support/servers/process/process-table.ts';
import { ApiDescription, type PortName } from './description.ts';
import { SALES } from './requests.ts';
import type { Names } from './wire.ts';

/** pino's number for "error". */
const ERROR_LEVEL = 50;
/** Memory that caches and metrics may take under a flood of requests. More growth than this is a leak. */
const MAX_GROWTH_BYTES = 400 * 1024 * 1024;
const KNOWN_ORDERS = 10;
const VERIFY_LIMIT_MS = 60_000;

export class Target {
  readonly apis: Readonly<Record<PortName, ApiDescription>> = {
    public: ApiDescription.read('public'),
    ops: ApiDescription.read('ops'),
  };
  readonly #node: TestNode;
  readonly #residentBytes: number;
  #sales: string[] = [];
  #orders: string[] = [];
  #logRead = 0;
  #round = 0;

  constructor(node: TestNode) {
    this.#node = node;
    this.#residentBytes = residentBytesOf(node.pid);
  }

  portOf(name: PortName): number {
    return Number(new URL(name === 'public' ? this.#node.publicUrl : this.#node.opsUrl).port);
  }

  get names(): Names {
    const sales = this.#sales;
    const orders = this.#orders;
    return {
      sale: (n) => sales[n % sales.length] ?? 'none',
      order: (n) => orders[n % Math.max(1, orders.length)] ?? '1',
      token: this.#node.opsToken,
    };
  }

  /** Replaces the sales by new ones, because requests may have closed the old ones. */
  async newSales(): Promise<void> {
    const round = this.#round++;
    this.#orders = [];
    this.#sales = Array.from({ length: SALES }, (_, i) => `fuzz-${round}-${i}`);
    for (const [i, id] of this.#sales.entries()) {
      await this.#node.ops.create(
        {
          ...{ id, stock: i === 0 ? 3 : 500, segments: (i % 4) + 1, perBuyerLimit: i % 2 === 0 ? 1 : 5 },
          ...(i === 5 && { startsAt: '2098-01-01T00:00:00Z' }),
          ...(i === 6 && { payWithinSeconds: 1 }),
        },
        BY.actor,
      );
    }
  }

  /** Remembers orders that answers name, so that later requests are about them. */
  learn(orderId: string): void {
    this.#orders = [orderId, ...this.#orders.filter((id) => id !== orderId)].slice(0, KNOWN_ORDERS);
  }

  /** @returns what is wrong with the node; `undefined` if nothing is */
  async complaint(): Promise<string | undefined> {
    if (!this.#node.isUp) return `the node has ended with ${this.#node.lastEnd}`;
    const log = await this.#node.log();
    const lines = log.slice(this.#logRead).split('\n');
    this.#logRead = log.length - lines.pop()!.length;
    return lines.find(isFault)?.slice(0, 2_000);
  }

  /** Checks that a purchase works, nothing was oversold, and memory has not leaked. @throws if not */
  async assertSound(): Promise<void> {
    const complaint = await this.complaint();
    if (complaint !== undefined) throw new Error(complaint);
    const id = `after-${this.#round++}`;
    await this.#node.ops.create({ id, stock: 1, segments: 4 }, BY.actor);
    const bought = await this.#node.buy(id, 'somebody');
    if (bought.status !== 201) throw new Error(`a purchase was answered ${bought.status} ${bought.code}`);
    for (const sale of (await this.#node.ops.list({ limit: 1_000 })).sales)
      await this.#assertVerified(sale.id);
    const growth = residentBytesOf(this.#node.pid) - this.#residentBytes;
    if (growth > MAX_GROWTH_BYTES)
      throw new Error(`the node has grown by ${Math.round(growth / 2 ** 20)} MB`);
  }

  /** Waits if a recovery or a resize is under way. */
  async #assertVerified(saleId: string): Promise<void> {
    const deadline = Date.now() + VERIFY_LIMIT_MS;
    for (;;) {
      const report = await this.#node.ops.verify(saleId);
      if (report.ok) {
        if (report.rejectedOrders > 0) throw new Error(`Postgres has rejected orders of ${saleId}`);
        return;
      }
      if (Date.now() > deadline) throw new Error(`verify of ${saleId}: ${report.findings.join('; ')}`);
    }
  }
}

function isFault(line: string): boolean {
  // A line that is not the logger's comes from Node, about an uncaught exception.
  if (!line.startsWith('{')) return line.trim() !== '';
  const { level } = JSON.parse(line) as { level?: number };
  return level !== undefined && level >= ERROR_LEVEL;
}
