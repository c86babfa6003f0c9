import type { Outcome, Purchase } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import { parseChange } from '../engine/sale/sale-change.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { Operations } from '../node/operations/operations.ts';
import { parseErasure } from '../operations/buyer-operations.ts';
import { isRowId, type PageQuery, parsePageQuery } from '../operations/checked-input.ts';
import { parseDeleteQuery } from '../operations/delete-operations.ts';
import { parseOrderEdit } from '../operations/order-edit.ts';
import { pagesOf } from '../operations/order-export.ts';
import type { OrderQuery } from '../operations/order-list.ts';
import type { OrderChange } from '../operations/order-operations.ts';
import { parseOrderExport, parseOrderQuery, parseRefundsQuery } from '../operations/order-query.ts';
import { parseSaleQuery } from '../operations/sale-list.ts';
import { checkedAuthor, checkedPayType, checkedPurchase, refusedPurchase } from './checked.ts';
import { type PlaceParts, placesOf } from './embedded-places.ts';
import type {
  ChangeAuthor,
  NewPurchase,
  PurchaseOutcome,
  Shop,
  ShopBuyers,
  ShopEvents,
  ShopOrders,
  ShopSales,
} from './shop.ts';
import type { ShopPlaces } from './shop-places.ts';

export interface EmbeddedParts extends Operations {
  readonly places: PlaceParts;
  buy(purchase: Purchase): Promise<Outcome>;
  metrics(): Promise<string>;
  /** Each resolves with the reason if a part fails that the shop can't run without. */
  readonly failures: readonly Promise<Error>[];
  /** How long `close` waits for operations under way. */
  readonly graceMs: number;
  /** Answers the purchases under way, then closes everything. */
  release(): Promise<void>;
}

const CLOSED = 'the shop was closed: open another one';
const UNAVAILABLE = { code: 'unavailable', detail: CLOSED } as const;

type Work = <T>(work: () => Promise<T>) => Promise<T>;

export class EmbeddedShop implements Shop {
  readonly places: ShopPlaces;
  readonly sales: ShopSales;
  readonly orders: ShopOrders;
  readonly buyers: ShopBuyers;
  readonly events: ShopEvents;
  readonly failed: Promise<Error>;
  readonly #parts: EmbeddedParts;
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(parts: EmbeddedParts) {
    this.#parts = parts;
    const work: Work = (operation) => this.#run(operation);
    this.places = placesOf(parts.places, async (operation) =>
      this.#closing ? UNAVAILABLE : this.#run(operation),
    );
    this.sales = salesOf(parts.sales, work);
    this.orders = ordersOf(parts.orders, work);
    this.buyers = buyersOf(parts.buyers, work);
    this.events = eventsOf(parts.events, work);
    this.failed = Promise.race(parts.failures).then((error) => {
      void this.close();
      return error;
    });
  }

  async purchase(input: NewPurchase): Promise<PurchaseOutcome> {
    const purchase = checkedPurchase(input);
    if (this.#closing) return UNAVAILABLE;
    // An embedded shop checks no purchase tokens, so no outcome is about tokens.
    return refusedPurchase(purchase) ?? ((await this.#parts.buy(purchase)) as PurchaseOutcome);
  }

  metrics(): Promise<string> {
    return this.#parts.metrics();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const ended = Promise.allSettled(this.#underWay);
    await withTimeout(this.#parts.graceMs, ended).catch(() => {});
    await this.#parts.release();
  }

  async #run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#closing) throw new StockadeError('closed', CLOSED);
    const work = operation();
    this.#underWay.add(work);
    try {
      return await work;
    } finally {
      this.#underWay.delete(work);
    }
  }
}

/** One page if the query has a limit, or else the entries of all pages. */
async function entriesOf<Page extends { readonly next?: string | undefined }, Entry>(
  read: (query: PageQuery) => Promise<Page>,
  entries: (page: Page) => readonly Entry[],
  { after, limit }: PageQuery,
): Promise<Entry[]> {
  const all: Entry[] = [];
  for (let next = after; ; ) {
    const page = await read({ after: next, limit });
    for (const entry of entries(page)) all.push(entry);
    next = page.next;
    if (next === undefined || limit !== undefined) return all;
  }
}

function salesOf(sales: Operations['sales'], run: Work): ShopSales {
  return {
    create: (sale, by) =>
      run(async () => {
        const { actor, reason } = checkedAuthor(by);
        return sales.create({ ...sale, reason }, actor);
      }),
    list: (query = {}) => run(() => sales.list(parseSaleQuery(query))),
    show: (saleId) => run(() => sales.show(saleId)),
    change: (saleId, input, by) =>
      run(async () => {
        const author = checkedAuthor(by);
        return sales.change(saleId, parseChange(input).change, author);
      }),
    delete: (saleId, orders = 0, by) =>
      run(async () =>
        sales.delete(saleId, parseDeleteQuery({ orders: String(orders) }).orders, checkedAuthor(by)),
      ),
    deletion: (saleId) => run(() => sales.deletion(saleId)),
    ledger: (saleId, query = {}) =>
      run(async () => {
        const page = (wanted: PageQuery) => sales.ledger(saleId, wanted);
        return entriesOf(page, ({ ledger }) => ledger, parsePageQuery({ ...query }, isRowId));
      }),
    verify: (saleId, options) => run(() => sales.verify(saleId, options)),
    rebalance: (saleId, { dryRun = false } = {}) => run(() => sales.rebalance(saleId, { dryRun })),
    recover: (saleId) => run(() => sales.recover(saleId)),
    recovery: (saleId) => run(() => sales.recovery(saleId)),
  };
}

function ordersOf(orders: Operations['orders'], run: Work): ShopOrders {
  const change = (orderId: string, what: () => OrderChange, by: ChangeAuthor | undefined) =>
    run(async () => orders.changeOrder(orderId, what(), checkedAuthor(by)));
  return {
    show: (orderId) => run(() => orders.showOrder(orderId)),
    list: (saleId, query = {}) => run(async () => orders.listOrders(saleId, parseOrderQuery({ ...query }))),
    async *export(saleId, query = {}) {
      const { format: _, ...wanted } = parseOrderExport({ ...query });
      const list = (page: OrderQuery) => run(() => orders.listOrders(saleId, page));
      for await (const page of pagesOf(list, wanted)) yield* page.orders;
    },
    pay: (orderId, payType, by) =>
      change(orderId, () => ({ kind: 'pay', payType: checkedPayType(payType) }), by),
    cancel: (orderId, by) => change(orderId, () => ({ kind: 'cancel' }), by),
    redeem: (orderId, by) => change(orderId, () => ({ kind: 'redeem' }), by),
    refund: (orderId, by) => change(orderId, () => ({ kind: 'refund' }), by),
    edit: (orderId, edit, by) =>
      run(async () => orders.editOrder(orderId, parseOrderEdit({ ...edit }).edit, checkedAuthor(by))),
    refundsDue: (saleId, query = {}) =>
      run(async () => {
        const page = (wanted: PageQuery) => orders.refundsDue({ ...wanted, saleId });
        return entriesOf(page, ({ orders }) => orders, parseRefundsQuery({ ...query }));
      }),
  };
}

function buyersOf(buyers: Operations['buyers'], run: Work): ShopBuyers {
  return {
    erase: (input, by) =>
      run(async () => {
        const author = checkedAuthor(by);
        const { wish } = parseErasure({ ...input, reason: author.reason }, author.actor, 'actor');
        return buyers.erase(wish, author);
      }),
  };
}

function eventsOf(events: Operations['events'], run: Work): ShopEvents {
  return {
    deadLetters: (query = {}) => run(async () => events.deadLetters(parsePageQuery({ ...query }, isRowId))),
    resendDeadLetter: (id) => run(() => events.resendDeadLetter(id)),
    resendAllDeadLetters: () => run(() => events.resendAllDeadLetters()),
  };
}
