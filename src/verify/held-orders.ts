/**
 * Checks that each order in a buyer's record belongs there. Any program with access to the backend can add an order
 * that does not exist to a record, so that its buyer is refused; or change units and keys, so that the buyer may buy
 * again or gets another buyer's answer.
 *
 *   in the log ──applied──> live in Postgres ──ended──> return pending ──removed from the record──> applied
 *            └──refused────────────────────────────────────^
 *
 * A record holds an order in all of these states except the last. The stores change while they are
 * read, so they are read in this order: record, Postgres, log, Postgres, record. If an order was not in Postgres at
 * first, it was in the log; or its return was applied meanwhile, and the record no longer has it at the last reading.
 * So an order that is in neither the log nor Postgres, but in the record before and after, was written by another
 * program. records.ts checks the opposite: an order of the log belongs in its buyer's record until a cursor has
 * passed it.
 *
 * Memory: a page of records, and the orders of some pages of the log. Work: one query to Postgres for each page; each
 * entry beyond the cursor is read about once.
 */

import pLimit from 'p-limit';
import type { Backend, HeldOrder, Holding, SegmentRef, TakeOrder } from '../engine/contract.ts';
import { ID_PATTERN } from '../engine/limits.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { chunksOf } from '../lib/chunks-of.ts';
import { numbers, texts } from '../postgres/array-literal.ts';
import { readCursors } from '../postgres/cursors.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';
import { foreignRecords } from './foreign-write.ts';
import { LogOrders } from './log-orders.ts';
import { differenceOf, isSame, type KnownOrder, ordersOf, type RecordedOrder } from './recorded-order.ts';
import { MAX_STRAYS, type Stray, stray } from './stray-findings.ts';
import type { Truth } from './truth.ts';

/** Orders per query. */
const LOOKED_UP_ORDERS = 2_000;
const PARALLEL_SEGMENTS = 4;
/** A field that take.lua writes for a moment, within the script. */
const PLACEHOLDER = ' ';
const SHOWN_CHARACTERS = 200;
/** Text after "is in the buyer's record". */
const UNKNOWN = ' and not in Postgres';
const ENDED = ' although it has ended';

export interface StraySearch {
  readonly strays: readonly Stray[];
  /** Buyers whose records can't be read. */
  readonly unreadable: ReadonlySet<string>;
  /** Segments whose records can't be read at all, and why. */
  readonly faults: readonly string[];
}

/** @throws StaleGeneration if the sale is rebuilt meanwhile */
export async function findStrays(db: Database, backend: Backend, { row }: Truth): Promise<StraySearch> {
  const { sale, generation } = row;
  const strays: Stray[] = [];
  const unreadable = new Set<string>();
  const faults: string[] = [];
  const segments = Array.from({ length: sale.segments }, (_, segment) => segment);
  await pLimit(PARALLEL_SEGMENTS).map(segments, async (segment) => {
    const search = new SegmentSearch(db, backend, { saleId: sale.id, segment, generation }, sale.segments);
    try {
      for await (const page of search.pages()) {
        strays.push(...page.strays);
        for (const buyerId of page.unreadable) unreadable.add(buyerId);
        if (strays.length >= MAX_STRAYS) return;
      }
    } catch (error) {
      faults.push(foreignRecords(segment, error));
    }
  });
  return { strays, unreadable, faults };
}

class SegmentSearch {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #ref: SegmentRef;
  readonly #segments: number;
  readonly #log: LogOrders;
  /** The segment's cursor at the last reading. */
  #applied = 0;

  constructor(db: Database, backend: Backend, ref: SegmentRef, segments: number) {
    this.#db = db;
    this.#backend = backend;
    this.#ref = ref;
    this.#segments = segments;
    this.#log = new LogOrders(backend, ref);
  }

  async *pages(): AsyncGenerator<{ strays: Stray[]; unreadable: string[] }> {
    const { segment } = this.#ref;
    let from = '';
    do {
      const { holdings, next } = await this.#backend.audits.records(this.#ref, from);
      from = next;
      const unreadable = holdings.filter(({ fault }) => fault !== undefined);
      const misplaced = new Set(holdings.filter((holding) => this.#isMisplaced(holding)));
      // The engine never writes such records, unless the sale was rebuilt meanwhile with other segments: `recall`
      // throws then.
      if (misplaced.size > 0) await this.#backend.sales.recall(this.#ref, []);
      const strays = [
        ...unreadable.map(({ buyerId, fault }) =>
          stray(`the record of buyer ${printable(buyerId)} in segment ${segment} can't be read: ${fault}`),
        ),
        ...[...misplaced].map((holding) => this.#misplaced(holding)),
      ];
      const recorded = holdings.filter((holding) => !misplaced.has(holding)).flatMap(ordersOf);
      for (const chunk of chunksOf(recorded, LOOKED_UP_ORDERS)) strays.push(...(await this.#examine(chunk)));
      yield { strays, unreadable: unreadable.map(({ buyerId }) => buyerId) };
    } while (from !== '');
  }

  #isMisplaced({ buyerId, orders }: Holding): boolean {
    if (orders.length === 0 || buyerId === PLACEHOLDER) return false;
    return !ID_PATTERN.test(buyerId) || homeSegment(buyerId, this.#segments) !== this.#ref.segment;
  }

  #misplaced({ buyerId }: Holding): Stray {
    const { segment } = this.#ref;
    if (!ID_PATTERN.test(buyerId))
      return stray(`segment ${segment} has a record under ${printable(buyerId)}, which is no buyer's id`);
    const home = homeSegment(buyerId, this.#segments);
    return stray(`the record of buyer ${buyerId} is in segment ${segment}, and its home is segment ${home}`);
  }

  /** Compares orders with Postgres and the log. Those that agree with neither are read a second time. */
  async #examine(recorded: readonly RecordedOrder[]): Promise<Stray[]> {
    const differing = await this.#notAsInPostgres(recorded);
    if (recorded.some(({ order }) => order.seq > this.#applied)) await this.#readApplied();
    const unconfirmed = recorded.filter(
      ({ isTwice, order }, i) => isTwice || order.seq > this.#applied || differing.has(i),
    );
    if (unconfirmed.length === 0) return [];
    const logged = await this.#log.find(unconfirmed.map(({ order }) => order));
    const { saleId } = this.#ref;
    const isOfLog = (one: RecordedOrder) => {
      const order = logged.get(one.order);
      return order !== undefined && differenceOf(one, { ...order, saleId }, saleId) === undefined;
    };
    return this.#readAgain(
      unconfirmed.filter((one) => !isOfLog(one)),
      logged,
    );
  }

  /** Reads Postgres, then the records again, and reports the orders that are still there and still wrong. */
  async #readAgain(
    recorded: readonly RecordedOrder[],
    logged: ReadonlyMap<HeldOrder, TakeOrder>,
  ): Promise<Stray[]> {
    if (recorded.length === 0) return [];
    const { saleId } = this.#ref;
    const known = await this.#knownOrders(recorded);
    await this.#readApplied();
    const { holdings } = await this.#backend.sales.recall(
      this.#ref,
      recorded.map(({ buyerId }) => buyerId),
    );
    return recorded.flatMap((one, i) => {
      const { buyerId, order } = one;
      const isHeld = ordersOf({ buyerId, orders: holdings[i]!.orders }).some((now) => isSame(now, one));
      const problem = this.#problem(one, known.get(order.orderId));
      if (problem === undefined || !isHeld) return [];
      const inLog = logged.get(order);
      const differenceFromLog = inLog && differenceOf(one, { ...inLog, saleId }, saleId);
      const isMissingInLog = problem === UNKNOWN && order.seq > 0;
      const why =
        differenceFromLog ??
        (isMissingInLog ? `${problem}, nor is it in entry ${order.seq} of the log` : problem);
      const mayBeDeleted =
        (problem === UNKNOWN || problem === ENDED) && inLog === undefined && order.seq <= this.#applied;
      const what = `order ${order.orderId} of buyer ${buyerId} is in the buyer's record${why}`;
      return [{ what, goneUnits: mayBeDeleted ? order.quantity : 0 }];
    });
  }

  /** Why the record must not hold the order, according to Postgres; a text to follow "is in the buyer's record". */
  #problem(one: RecordedOrder, known: KnownOrder | undefined): string | undefined {
    if (!known) return UNKNOWN;
    if (known.isReturning) return undefined;
    const difference = differenceOf(one, known, this.#ref.saleId);
    if (difference !== undefined) return difference;
    if (!known.isLive) return ENDED;
    const { seq } = one.order;
    return seq > this.#applied
      ? `, which names entry ${seq} of the log: ${this.#applied} were applied`
      : undefined;
  }

  /** Read after the orders: an order that is in Postgres was at or below this cursor. */
  async #readApplied(): Promise<void> {
    const cursors = await readCursors(this.#db, this.#ref.saleId);
    this.#applied = cursors[this.#ref.segment]?.seq ?? 0;
  }

  /**
   * Most orders are correct. Postgres compares them, and returns the places of the others. A scalar subquery is never planned as a
   * join. For a join Postgres might read all orders of the sale for each of these: its statistics do not know a new sale.
   */
  async #notAsInPostgres(recorded: readonly RecordedOrder[]): Promise<Set<number>> {
    const found = await rows<{ place: string }>(
      this.#db,
      `SELECT w.place FROM unnest(?::bigint[], ?::text[], ?::integer[], ?::text[]) WITH ORDINALITY
         AS w (id, buyer, quantity, key, place)
       WHERE (SELECT o.sale_id = ? AND o.buyer_id = w.buyer AND o.quantity = w.quantity
           AND coalesce(o.idempotency_key, '') = w.key AND o.status IN ${LIVE}
         FROM orders o WHERE o.order_id = w.id) IS NOT TRUE`,
      [
        numbers(recorded.map(({ order }) => order.orderId)),
        texts(recorded.map(({ buyerId }) => buyerId)),
        numbers(recorded.map(({ order }) => order.quantity)),
        texts(recorded.map(({ order }) => order.key)),
        this.#ref.saleId,
      ],
    );
    return new Set(found.map(({ place }) => Number(place) - 1));
  }

  async #knownOrders(recorded: readonly RecordedOrder[]): Promise<Map<string, KnownOrder>> {
    const found = await rows<KnownOrder & { id: string }>(
      this.#db,
      `SELECT order_id::text AS id, sale_id AS "saleId", buyer_id AS "buyerId", quantity,
         coalesce(idempotency_key, '') AS key, status IN ${LIVE} AS "isLive",
         EXISTS (SELECT 1 FROM stock_returns r WHERE r.order_id = o.order_id AND r.applied_at IS NULL) AS "isReturning"
       FROM orders o WHERE order_id = ANY (?::bigint[])`,
      [numbers(recorded.map(({ order }) => order.orderId))],
    );
    return new Map(found.map(({ id, ...order }) => [id, order]));
  }
}

/** A buyer's id, or the beginning of any other text in quotes: other programs may have written it. */
const printable = (text: string) =>
  ID_PATTERN.test(text) ? text : JSON.stringify(text.slice(0, SHOWN_CHARACTERS));
