/**
 * The auditor sees both stores after every event and fails the run when a promise is broken (docs/internals/simulation.md).
 * Here is what all sales of a run share; sale-auditor.ts checks each of them.
 */
import type { HeadEvents } from '../../../src/queue/head/head-events.ts';
import type { SyncEvents } from '../../../src/sync/held/sync-events.ts';
import { isOfTheStores } from '../machines/sim-node.ts';
import type { World } from '../machines/world.ts';
import { SaleAuditor } from './sale-auditor.ts';

export class Violation extends Error {}

const LOG_KEY = /\{(\S+):\d+\}:log$/;

export class Auditor {
  readonly sales: SaleAuditor[] = [];
  /** Buyers that an operator has tried to erase, and that don't buy any more. */
  readonly left = new Set<string>();
  /** Whether Redis has lost writes at any time. */
  everLost = false;
  nodesDied = 0;
  /** A record of what has happened, for replays. */
  trace: (line: string) => void = () => {};
  /** The first violation that was found. */
  violation: Violation | undefined;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    for (const server of world.redis) server.added = (key, fields) => this.#added(key, fields);
  }

  /** Watches this sale from now on. It need not be there yet. */
  watch(saleId: string): SaleAuditor {
    const sale = new SaleAuditor(this, this.#world, saleId);
    this.sales.push(sale);
    return sale;
  }

  /** The clock of a Redis server was set back. */
  redisSetBack(): void {
    for (const { takes } of this.sales) takes.isOff = true;
  }

  /** Redis has lost writes. */
  lost(): void {
    this.everLost = true;
    this.wentBack();
  }

  /** Redis has gone back, and lacks no order. */
  wentBack(): void {
    for (const sale of this.sales) sale.lost();
  }

  /** Throws a violation. It is stored too, because the product may catch it. */
  fail(what: string): never {
    this.note(what);
    throw this.violation!;
  }

  note(what: string): void {
    this.violation ??= new Violation(what);
  }

  /** Must be called after each event. @throws Violation */
  check(): void {
    for (const sale of this.sales) sale.check();
  }

  /** Buyers whose ids must be in neither store. A node may have died before it wrote an erasure. */
  get erased(): string[] {
    const watches = this.sales.map(({ leaving }) => leaving);
    return [...this.left].filter(
      (buyer) =>
        watches.some((watch) => watch.wasAsked(buyer)) && !watches.some((watch) => watch.isOpen(buyer)),
    );
  }

  #added(key: string, fields: readonly string[]): void {
    const saleId = LOG_KEY.exec(key)?.[1];
    if (saleId === undefined) return;
    const lines = fields[fields.indexOf('o') + 1]!;
    this.sales.find((sale) => sale.saleId === saleId)?.takes.taken(lines);
  }

  #hasQueue(saleId: string): boolean {
    return this.sales.some((sale) => sale.saleId === saleId && sale.queue !== undefined);
  }

  /** The events that a head of the queues reports. */
  head(node: string): HeadEvents {
    const tell = (what: string, info: object) => this.trace(`${node} head ${what} ${JSON.stringify(info)}`);
    const failed = (what: string, error: unknown) => {
      tell(what, { error: String(error) });
      if (!isOfTheStores(error)) this.fail(`${node} head ${what}: ${(error as Error).stack}`);
    };
    return {
      offered: (info) => tell('offered', info),
      passedOver: (info) => tell('passed over', info),
      delayed: (info) => tell('delayed', info),
      drawn: (info) => tell('drawn', info),
      saleFailed: ({ error }) => failed('failed on a sale', error),
      crashed: ({ error }) => failed('crashed', error),
    };
  }

  /** The events that a sync reports. */
  sync(node: string): SyncEvents {
    const tell = (what: string, info: object) => this.trace(`${node} sync ${what} ${JSON.stringify(info)}`);
    const onlyAfterLoss = (what: string, info: object) => {
      tell(what, info);
      if (!this.everLost) this.fail(`P1: Redis has lost nothing, but ${what}: ${JSON.stringify(info)}`);
    };
    return {
      applied: (info) => tell('applied', info),
      rejected: (info) => {
        // The queue's watch checks which offers may be refused.
        if (info.reason === 'duplicate' || this.#hasQueue(info.saleId)) tell('rejected', info);
        else onlyAfterLoss('an order was rejected', info);
      },
      logBroken: (info) => onlyAfterLoss('a log is broken', info),
      ordersLost: (info) => onlyAfterLoss('orders are lost', info),
      rebuilt: (info) => {
        if (info.why.startsWith('the segments have lost')) onlyAfterLoss('units are lost', info);
        else tell('rebuilt', info);
      },
      transferred: (info) => tell('transferred', info),
      backlog: () => {},
      foreign: (info) => onlyAfterLoss('another program has written', info),
      untold: ({ error }) => tell('watermarks were not accepted', { error: String(error) }),
      saleFailed: ({ error }) => tell('sale failed', { error: String(error) }),
      crashed: ({ error }) => tell('crashed', { error: String(error) }),
    };
  }
}
