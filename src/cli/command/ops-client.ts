/** The operators' services for sales, orders, events and buyers, through the ops port of a running node. */
import type { Config } from '../../config/config.ts';
import { VERIFY_DEADLINE_MS } from '../../config/ops-deadlines.ts';
import type { Author } from '../../engine/sale/author.ts';
import { changeToJson, type SaleAction, type SaleChange } from '../../engine/sale/sale-change.ts';
import { urlQuery } from '../../lib/url-query.ts';
import type { BuyerOperations, ErasureReport, ErasureWish } from '../../operations/buyer-operations.ts';
import type { PageQuery } from '../../operations/checked-input.ts';
import type { ConsolePicture, ConsoleQuery } from '../../operations/console/console-operations.ts';
import type { Deletion } from '../../operations/delete-operations.ts';
import type { DeadLetter, DeadLetters, EventOperations } from '../../operations/event-operations.ts';
import type { OrderEdit } from '../../operations/order.ts';
import type { OrderPage, OrderQuery, RefundPage, RefundQuery } from '../../operations/order-list.ts';
import type { Order, OrderChange, OrderOperations, OrderOutcome } from '../../operations/order-operations.ts';
import { queryText } from '../../operations/order-query.ts';
import {
  type PlacePage,
  type PlaceQuery,
  placeQueryText,
  type QueueChange,
  type QueueOperations,
  type QueueStatus,
} from '../../operations/queue/queue-operations.ts';
import type { RebalanceOptions, RebalanceReport } from '../../operations/rebalance-operations.ts';
import type { Recovery } from '../../operations/recover-operations.ts';
import { type SalePage, type SaleQuery, saleQueryText } from '../../operations/sale-list.ts';
import type {
  LedgerPage,
  SaleOperations,
  SaleStatus,
  VerifyOptions,
  VerifyReport,
} from '../../operations/sale-operations.ts';
import { type Call, OpsConnection, type Problem } from './ops-connection.ts';

/** How an error names a change that the sale's state does not allow: "it can't be paused". */
const DONE: Readonly<Record<SaleAction, string>> = {
  pause: 'paused',
  resume: 'resumed',
  close: 'closed',
  archive: 'archived: close it first',
  'top-up': 'topped up',
  withdraw: 'withdrawn from',
  window: 'given another window',
  'require-token': 'changed',
  queue: 'changed',
  resize: 'resized',
  edit: 'edited',
};

export class OpsClient
  implements SaleOperations, QueueOperations, OrderOperations, EventOperations, BuyerOperations
{
  readonly #connection: OpsConnection;

  /** @param withoutNode as of OpsConnection */
  constructor(config: Config, withoutNode?: string) {
    this.#connection = new OpsConnection(config, withoutNode);
  }

  /** Where the node is, without a user and password. */
  get url(): string {
    return this.#connection.shownUrl;
  }

  /** The pictures of the console, one a second, until the node or the signal ends them. @throws as the other calls */
  async *pictures(
    { limit, saleId, ...query }: ConsoleQuery,
    signal: AbortSignal,
  ): AsyncGenerator<ConsolePicture> {
    const path = `/v1/console/events${urlQuery({ ...query, limit, saleId })}`;
    for await (const data of this.#connection.events({ method: 'GET', path }, signal))
      yield JSON.parse(data) as ConsolePicture;
  }

  create(input: unknown, actor: string): Promise<SaleStatus> {
    const saleId = String((input as { id?: unknown } | null)?.id);
    const path = '/v1/sales';
    return this.#connection.call({ method: 'POST', path, body: input, saleId, operator: actor });
  }

  list(query: SaleQuery = {}): Promise<SalePage> {
    return this.#connection.call({ method: 'GET', path: `/v1/sales${saleQueryText(query)}` });
  }

  async show(saleId: string): Promise<SaleStatus> {
    const sale = await this.#connection.call<SaleStatus>({ method: 'GET', path: pathOf(saleId), saleId });
    // The public port has this route too, and shows buyers less.
    if (sale.stock === undefined) throw this.#connection.wrongPort();
    return sale;
  }

  change(saleId: string, change: SaleChange, { actor, reason }: Author): Promise<SaleStatus> {
    return this.#connection.call({
      method: 'PATCH',
      path: pathOf(saleId),
      body: { ...changeToJson(change), ...(reason === '' ? {} : { reason }) },
      saleId,
      wanted: DONE[change.action],
      operator: actor,
    });
  }

  ledger(saleId: string, { after, limit }: PageQuery = {}): Promise<LedgerPage> {
    const path = `${pathOf(saleId)}/ledger${urlQuery({ after, limit })}`;
    return this.#connection.call({ method: 'GET', path, saleId });
  }

  verify(saleId: string, options?: VerifyOptions): Promise<VerifyReport> {
    const path = `${pathOf(saleId)}/verify`;
    const body = options?.repair ? { body: { repair: true } } : {};
    return this.#connection.call({ method: 'POST', path, saleId, deadlineMs: VERIFY_DEADLINE_MS, ...body });
  }

  recover(saleId: string): Promise<Recovery> {
    return this.#connection.call({ method: 'POST', path: `${pathOf(saleId)}/recover`, saleId });
  }

  recovery(saleId: string): Promise<Recovery> {
    return this.#connection.call({ method: 'GET', path: `${pathOf(saleId)}/recover`, saleId });
  }

  delete(saleId: string, orders: number, { actor, reason }: Author): Promise<Deletion> {
    return this.#connection.call({
      method: 'DELETE',
      path: `${pathOf(saleId)}${urlQuery({ orders, reason: reason || undefined })}`,
      ...{ saleId, wanted: 'deleted: archive it first', orders },
      deadlineMs: VERIFY_DEADLINE_MS,
      operator: actor,
    });
  }

  deletion(saleId: string): Promise<Deletion> {
    return this.#connection.call({ method: 'GET', path: `${pathOf(saleId)}/deletion`, saleId });
  }

  rebalance(saleId: string, options: RebalanceOptions): Promise<RebalanceReport> {
    return this.#connection.call({
      method: 'POST',
      path: `${pathOf(saleId)}/rebalance`,
      body: options,
      saleId,
    });
  }

  showQueue(saleId: string, { count = false }: { readonly count?: boolean } = {}): Promise<QueueStatus> {
    const path = `${pathOf(saleId)}/queue${urlQuery({ count: count ? 'true' : undefined })}`;
    return this.#connection.call({ method: 'GET', path, saleId });
  }

  places(saleId: string, query: PlaceQuery = {}): Promise<PlacePage> {
    const path = `${pathOf(saleId)}/queue/places${placeQueryText(query)}`;
    return this.#connection.call({ method: 'GET', path, saleId });
  }

  changeQueue(saleId: string, change: QueueChange, { actor, reason }: Author): Promise<QueueStatus> {
    return this.#connection.call({
      method: 'PATCH',
      path: `${pathOf(saleId)}/queue`,
      body: { ...change, ...(reason !== '' && { reason }) },
      ...{ saleId, operator: actor },
    });
  }

  async drawFile(saleId: string): Promise<AsyncIterable<string>> {
    return this.#connection.text({ method: 'GET', path: `${pathOf(saleId)}/queue/draw`, saleId });
  }

  showOrder(orderId: string): Promise<OrderOutcome> {
    return this.#order({ method: 'GET', path: orderPathOf(orderId) });
  }

  changeOrder(
    orderId: string,
    { kind, ...change }: OrderChange,
    { actor, reason }: Author,
  ): Promise<OrderOutcome> {
    const path = `${orderPathOf(orderId)}/${kind}`;
    const body = { ...change, ...(reason !== '' && { reason }) };
    return this.#order({ method: 'POST', path, body, operator: actor });
  }

  editOrder(orderId: string, edit: OrderEdit, { actor, reason }: Author): Promise<OrderOutcome> {
    const body = { ...edit, ...(reason !== '' && { reason }) };
    return this.#order({ method: 'PATCH', path: orderPathOf(orderId), body, operator: actor });
  }

  listOrders(saleId: string, query: OrderQuery = {}): Promise<OrderPage> {
    const path = `${pathOf(saleId)}/orders${queryText(query)}`;
    return this.#connection.call({ method: 'GET', path, saleId });
  }

  refundsDue({ saleId, after, limit }: RefundQuery = {}): Promise<RefundPage> {
    const path = `/v1/refunds-due${urlQuery({ saleId, after, limit })}`;
    return this.#connection.call({ method: 'GET', path, ...(saleId && { saleId }) });
  }

  erase({ saleId, ...wish }: ErasureWish, { actor, reason }: Author): Promise<ErasureReport> {
    const named = saleId === undefined ? {} : { saleId };
    const body = { ...wish, ...named, ...(reason !== '' && { reason }) };
    return this.#connection.call({ method: 'POST', path: '/v1/erasures', body, operator: actor, ...named });
  }

  async deadLetters({ after, limit }: PageQuery = {}): Promise<DeadLetters> {
    const path = `/v1/events/dead${urlQuery({ after, limit })}`;
    const { dead, ...page } = await this.#connection.call<DeadPage>({ method: 'GET', path });
    return { ...page, listed: dead };
  }

  async resendDeadLetter(id: string): Promise<void> {
    const path = `/v1/events/dead/${segmentOf(id)}/resend`;
    await this.#connection.call({ method: 'POST', path });
  }

  async resendAllDeadLetters(): Promise<number> {
    const path = '/v1/events/dead/resend';
    return (await this.#connection.call<{ resent: number }>({ method: 'POST', path })).resent;
  }

  /** Closes the connections; not to be confused with closing a sale. */
  disconnect(): Promise<void> {
    return this.#connection.close();
  }

  /** Answers about the order are outcomes. Any other answer leaves the order undecided, so it is thrown with its reason. */
  async #order(call: Call): Promise<OrderOutcome> {
    const { status, body } = await this.#connection.send(call);
    if (status === 200 && body !== undefined) return doneFrom(body as DoneOrder);
    const problem = body as Problem | undefined;
    switch (problem?.code) {
      case 'unknown_order':
        return { code: 'unknown_order' };
      case 'wrong_status':
        return { code: 'wrong_status', orderStatus: problem.orderStatus! };
      case 'wrong_state':
        return { code: 'wrong_state', state: 'paused' };
      case 'expired':
        return { code: 'expired', refundDue: problem.refundDue! };
      default:
        throw this.#connection.errorFrom(call, status, problem);
    }
  }
}

function pathOf(saleId: string): string {
  return `/v1/sales/${segmentOf(saleId)}`;
}

function orderPathOf(orderId: string): string {
  return `/v1/orders/${segmentOf(orderId)}`;
}

/**
 * An id as one segment of a path. URL parsers resolve `.` and `..`, even escaped, so the request would reach another route.
 * Escaped twice, they arrive as an id that no sale or order has.
 */
function segmentOf(id: string): string {
  return /^\.{1,2}$/.test(id) ? id.replaceAll('.', '%252E') : encodeURIComponent(id);
}

type DeadPage = Omit<DeadLetters, 'listed'> & { readonly dead: readonly DeadLetter[] };

type DoneOrder = Order & { readonly retaken?: true; readonly replaces?: string };

function doneFrom({ retaken: _, replaces, ...order }: DoneOrder): OrderOutcome {
  return { code: 'done', order, ...(replaces !== undefined && { replaces }) };
}
