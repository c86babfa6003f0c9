/**
 * Checks one sale for the auditor: P1, P3, P4 and P7 after each event, P4 and P6 at each answer. The rest is checked after the
 * weather is over (finale.ts).
 *
 * Until Redis loses writes, the units that segments can still sell or have in their logs never exceed those that Postgres has.
 * Between a loss and the next generation they may. The guard in Postgres and the rebuild exist for that case, and what Postgres
 * holds must be correct even then.
 *
 * A sale may be deleted, and another one may get its id. That begins the next life of the id: nothing that was seen or promised
 * in an earlier one counts in it.
 */
import type { Outcome } from '../../../src/engine/contract.ts';
import { time } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';
import type { Auditor } from './auditor.ts';
import { isPublished, readBooks, readTruth, type SaleBooks, type Truth } from './books.ts';
import { LeavingWatch } from './leaving-watch.ts';
import { LedgerWatch } from './ledger-watch.ts';
import { OrderWatch } from './order-watch.ts';
import { QueueWatch } from './queue-watch.ts';
import { TakeWatch } from './take-watch.ts';

const LIVE = new Set(['unpaid', 'paid', 'redeemed']);
/** A "sold out" from a board may be this old: 250 ms, and one more because boards count whole milliseconds. */
const BOARD_MS = 251;

/** An answer that promises an order. */
export interface Promised {
  readonly orderId: string;
  readonly buyerId: string;
  readonly units: number;
  readonly code: 'committed' | 'accepted';
}

export class SaleAuditor {
  readonly saleId: string;
  /** How often the sale was deleted. */
  life = 0;
  promises: Promised[] = [];
  /** All orders that were named in an answer, also to a purchase that came in an earlier life. */
  readonly named = new Set<string>();
  /** Orders for which a cancellation or a refund was requested. */
  readonly askedBack = new Set<string>();
  orders = new OrderWatch((what) => this.fail(what));
  ledger = new LedgerWatch(0, (what) => this.fail(what));
  leaving = new LeavingWatch((what) => this.fail(what));
  readonly takes = new TakeWatch((what) => this.fail(what));
  /** Absent: the sale has no queue. */
  queue: QueueWatch | undefined;
  truth: Truth | undefined;
  readonly #run: Auditor;
  readonly #world: World;
  readonly #unchecked: Promised[] = [];
  /** Orders of earlier lives. */
  readonly #gone = new Set<string>();
  /** The generation in which Redis lost writes, until there is a later one. */
  #lossIn: number | undefined;
  #seenPostgres = -1;
  #seenRedis = -1;
  /** Since when there have been units for sale without a break, with the epoch raised. */
  #openSince: number | undefined;
  #epochAtZero = 0;
  #forSale = 0;
  /** When the number of units for sale last rose. */
  #suppliedAt = 0;

  constructor(run: Auditor, world: World, saleId: string) {
    this.#run = run;
    this.#world = world;
    this.saleId = saleId;
  }

  get everLost(): boolean {
    return this.#run.everLost;
  }

  get nodesDied(): number {
    return this.#run.nodesDied;
  }

  get left(): Set<string> {
    return this.#run.left;
  }

  get erased(): string[] {
    return this.#run.erased;
  }

  /** Checks the queue too, from now on. */
  watchQueue(): void {
    this.queue = new QueueWatch(
      this.#world,
      (what) => this.fail(what),
      () => this.everLost,
    );
  }

  trace(line: string): void {
    this.#run.trace(line);
  }

  /** See `Auditor.fail`. */
  fail(what: string): never {
    this.#run.fail(`sale ${this.saleId}: ${what}`);
  }

  get isLossOpen(): boolean {
    return this.#lossIn !== undefined;
  }

  /** Redis has lost writes. */
  lost(): void {
    this.#lossIn = this.truth?.generation ?? 0;
  }

  /** Must be called after each event. @throws Violation */
  check(): void {
    const { postgres, redis } = this.#world;
    const writes = redis.reduce((sum, server) => sum + server.writes, 0);
    if (writes === this.#seenRedis && postgres.writes === this.#seenPostgres) return;
    if (postgres.isInTransaction) {
      // While a transaction is open, nothing can be said of both stores. But a moment without units must not be
      // missed.
      if (writes === this.#seenRedis) return;
      this.#seenRedis = writes;
      if (this.truth && !this.isLossOpen) this.#noteOpen(this.truth, this.#readBooks(this.truth));
      return;
    }
    if (postgres.writes !== this.#seenPostgres) {
      const before = this.truth;
      this.truth = readTruth(this.#world, this.saleId);
      if (before && !this.truth) this.#saleGone(before);
      this.#checkTruth();
    }
    this.#seenPostgres = postgres.writes;
    this.#seenRedis = writes;
    if (this.truth) this.#checkBooks(this.truth, this.#readBooks(this.truth));
  }

  #readBooks({ segments }: Truth): SaleBooks {
    return readBooks(this.#world, this.saleId, segments);
  }

  /** The sale has left Postgres, and another sale may get its id. */
  #saleGone(last: Truth): void {
    this.leaving.gone(last);
    this.life++;
    for (const { orderId } of this.promises) this.#gone.add(orderId);
    this.promises = [];
    this.#unchecked.length = 0;
    this.orders = new OrderWatch((what) => this.fail(what));
    this.ledger = new LedgerWatch(this.life, (what) => this.fail(what));
    this.leaving = new LeavingWatch((what) => this.fail(what));
    [this.#openSince, this.#epochAtZero, this.#forSale] = [undefined, 0, 0];
  }

  #checkTruth(): void {
    const { truth } = this;
    if (!truth) return;
    if (this.#lossIn !== undefined && truth.generation > this.#lossIn) this.#lossIn = undefined;
    this.leaving.check(truth);
    if (truth.isDeleting) return;
    if (truth.isArchived && !this.everLost) this.#checkAllKept(truth);
    const live = truth.orders.filter(({ status }) => LIVE.has(status));
    const sold = live.reduce((sum, { units }) => sum + units, 0);
    const total = truth.initial + truth.moved;
    if (sold > total) this.fail(`P1: ${sold} units are sold of ${total}`);
    if (sold + truth.stock !== total)
      this.fail(`P7: ${truth.initial} + ${truth.moved} units are not ${truth.stock} in stock + ${sold} sold`);
    const held = new Map<string, number>();
    for (const { buyer, units } of live) held.set(buyer, (held.get(buyer) ?? 0) + units);
    for (const [buyer, units] of held)
      if (units > truth.limit) this.fail(`P3: ${buyer} holds ${units} units, ${truth.limit} are allowed`);
    for (const promised of this.#unchecked.splice(0)) this.#checkKept(promised);
    this.orders.check(truth);
    this.ledger.check(truth);
    this.queue?.check(this.saleId, truth);
  }

  /** An archived sale has no log any more, so every order that was promised must be in Postgres. */
  #checkAllKept({ orders }: Truth): void {
    const kept = new Set(orders.map(({ id }) => id));
    const missing = this.promises.filter(({ orderId }) => !kept.has(orderId));
    if (missing.length > 0) this.fail(`P5: archived without the promised orders ${JSON.stringify(missing)}`);
  }

  #checkKept({ orderId, buyerId, units }: Promised): void {
    const order = this.truth?.orders.find(({ id }) => id === orderId);
    if (!order)
      this.fail(`P4: ${buyerId} was answered 201 for order ${orderId}, which Postgres does not have`);
    if (this.leaving.buyerOf(order.buyer) !== buyerId || order.units !== units || order.status === 'rejected')
      this.fail(
        `P4: ${buyerId} was answered 201 for ${units} units of order ${orderId}: ${JSON.stringify(order)}`,
      );
    const isOver = order.status === 'cancelled' || order.status === 'refunded';
    if (isOver && !this.askedBack.has(orderId))
      this.fail(`P4: order ${orderId} of ${buyerId} is ${order.status}, which no client asked for`);
  }

  #checkBooks(truth: Truth, books: SaleBooks): void {
    const { generation, stock } = truth;
    for (const [i, segment] of books.segments.entries()) {
      if (!segment) continue;
      if (segment.left < 0) this.fail(`P1: segment ${i} has ${segment.left} units left`);
      if (segment.left + segment.taken !== segment.supplied)
        this.fail(
          `P7: segment ${i} was supplied ${segment.supplied}: ${segment.left} left, ${segment.taken} taken`,
        );
    }
    const published = books.segments.filter((segment) => isPublished(segment, generation));
    if (this.isLossOpen || published.length < truth.segments) {
      this.#openSince = undefined;
      return;
    }
    const left = published.reduce((sum, segment) => sum + segment.left + segment.inTransit, 0);
    const logged = published.reduce(
      (sum, segment, i) => sum + segment.taken - (truth.cursors[i]?.units ?? 0),
      0,
    );
    if (left + logged > stock)
      this.fail(`P1: ${left} units are for sale, ${logged} in the logs, ${stock} in Postgres`);
    this.#noteOpen(truth, books);
  }

  /** Updates since when there have been units for sale. */
  #noteOpen({ generation, segments }: Truth, books: SaleBooks): void {
    const published = books.segments.filter((segment) => isPublished(segment, generation));
    if (published.length < segments) {
      this.#openSince = undefined;
      return;
    }
    const left = published.reduce((sum, segment) => sum + segment.left + segment.inTransit, 0);
    if (left > this.#forSale) this.#suppliedAt = time.now;
    this.#forSale = left;
    const isOpen = books.state === 'open' && books.generation === generation;
    const sells = isOpen && published.every(({ state }) => state === 'open') && left > 0;
    if (!sells) [this.#openSince, this.#epochAtZero] = [undefined, books.epoch];
    else if (books.epoch > this.#epochAtZero) this.#openSince ??= time.now;
  }

  /**
   * Checks the answer to a purchase.
   * @param asked when the purchase came to the node, and in which life of the sale
   * @param byBoard whether the node's board was used since then, perhaps for this purchase
   */
  answered(
    buyerId: string,
    outcome: Outcome,
    { begun, life }: { readonly begun: number; readonly life: number },
    byBoard: boolean,
  ): void {
    this.check();
    const isSold = outcome.code === 'committed' || outcome.code === 'accepted';
    if (isSold) this.named.add(outcome.orderId);
    // Its order has left Postgres, or is about to.
    if (life !== this.life || this.truth?.isDeleting) return;
    if (outcome.code === 'limit_reached') {
      const old = outcome.orderIds.filter((orderId) => this.#gone.has(orderId));
      if (old.length > 0)
        this.fail(`P2: ${buyerId} is refused because of the deleted orders ${old.join(', ')}`);
    }
    if (isSold) {
      const { orderId, quantity: units, code } = outcome;
      const promised = { orderId, buyerId, units, code } as const;
      this.promises.push(promised);
      this.leaving.promised(orderId, buyerId);
      if (code === 'accepted') return;
      if (this.#world.postgres.isInTransaction) this.#unchecked.push(promised);
      else this.#checkKept(promised);
    }
    if (outcome.code === 'sold_out' && !this.isLossOpen) this.#checkSoldOut(buyerId, begun, byBoard);
  }

  /**
   * P2. A "sold out" from a board may be a while old. Any other "sold out" means that the segments were asked for this purchase,
   * so there was a moment without units after it began. Returned units count from when their epoch is raised, because the
   * purchase may have asked just before.
   */
  #checkSoldOut(buyerId: string, begun: number, byBoard: boolean): void {
    const since = this.#openSince;
    const isOwnLook = !byBoard && this.#suppliedAt < begun;
    if (since !== undefined && since < (isOwnLook ? begun : begun - BOARD_MS))
      this.fail(
        `P2: ${buyerId} was answered "sold out", but units were for sale since ${(time.now - since).toFixed(0)} ms`,
      );
  }
}
