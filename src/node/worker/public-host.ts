/** What the routes of the buyers' port call in a worker. */
import { OfferTokens } from '../../admission/offer-token.ts';
import { parseOrigins } from '../../admission/origins.ts';
import { PlaceTokens } from '../../admission/place-token.ts';
import type { Backend } from '../../engine/contract.ts';
import { QUEUE_SHARE } from '../../engine/limits.ts';
import type { Engine } from '../../engine/purchase/engine.ts';
import { unitsLeft } from '../../engine/sale/units-left.ts';
import { type Authenticate, headerIdentity, jwtIdentity } from '../../http/identity/identity.ts';
import { onlyFromThisMachine } from '../../http/identity/local-site.ts';
import { READING_MS } from '../../http/public/live-sales.ts';
import type { PublicHost } from '../../http/public/public-server.ts';
import type { PublicSale } from '../../http/public/sale-reads.ts';
import { Cors } from '../../http/server/cors.ts';
import type { PlaceAnswers, RequestStats } from '../../http/server/request-stats.ts';
import { Bulkhead } from '../../lib/bulkhead.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { readOrder } from '../../orders/order-reader.ts';
import { OrderService } from '../../orders/order-service.ts';
import { readOwnOrders, readOwnOrdersOfSale } from '../../orders/own-orders.ts';
import type { Database } from '../../postgres/database.ts';
import { OlderNodes } from '../../postgres/older-nodes.ts';
import type { Traces } from '../../traces/traces.ts';
import type { Log } from '../process/log.ts';
import { AcceptedOrders } from './accepted-orders.ts';
import type { Admission, TokenCounts } from './admission.ts';
import type { QueueWork } from './queue-work.ts';
import type { WorkerSettings } from './worker-settings.ts';

/** How many single orders are read or changed at a time: enough to keep both connections to Postgres busy. */
const PARALLEL_ORDER_WORK = 16;
const WAITING_ORDER_WORK_MAX = 4_096;

export interface PublicHostParts {
  readonly settings: WorkerSettings;
  readonly backend: Backend;
  readonly db: Database;
  readonly log: Log;
  readonly engine: Engine;
  readonly admission: Admission;
  readonly stats: RequestStats;
  readonly tokenCounts: TokenCounts;
  readonly placeAnswers: PlaceAnswers;
  readonly traces: Traces | undefined;
  readonly queueWork: QueueWork;
}

export function publicHost(parts: PublicHostParts): PublicHost {
  const { settings, db, log, engine, admission, stats, tokenCounts, placeAnswers, queueWork } = parts;
  const { limits, tokens, challenge } = admission;
  const keys = settings.admission.tokens;
  const olderNodes = new OlderNodes(db);
  const orders = orderWork(parts);
  // Purchases read members of this object. Without spreads, because V8 would make a dictionary of it.
  return {
    readOrder: orders.readOrder,
    changeOrder: orders.changeOrder,
    ownOrders: orders.ownOrders,
    ownOrdersOfSale: orders.ownOrdersOfSale,
    findAccepted: orders.findAccepted,
    authenticate: limits.limitBuyers(authentication(settings, log)),
    gate: limits.gate,
    streamLimit: admission.streams,
    cors: corsOf(settings),
    publicPayment: settings.publicPayment,
    publicOrderNotes: settings.publicOrderNotes,
    olderNodesRun: () => olderNodes.areRunning(),
    engine,
    traces: parts.traces,
    tokens,
    queueSigners: { places: new PlaceTokens(keys), offers: new OfferTokens(keys) },
    queue: queueWork.queue,
    acceptOffer: queueWork.acceptOffer,
    challenge,
    knownRecord: (saleId) => engine.knownRecord(saleId),
    readRecord: async (saleId) => (await engine.view(saleId))?.record,
    tokenAnswered: (outcome) => tokenCounts.answered(outcome),
    placeAnswered: (route, outcome) => placeAnswers.answered(route, outcome),
    answered: (outcome, ms) => stats.answered(outcome, ms),
    readSale: (saleId) => publicSale(parts, saleId),
    readDeadlineMs: settings.requestDeadlineMs,
    fault: (error) => log.error({ err: error }, 'a request failed'),
  };
}

/** Reads and changes single orders, a bounded number at a time: a worker has two connections to Postgres. */
function orderWork({ settings, backend, db, engine }: PublicHostParts) {
  const { requestDeadlineMs } = settings;
  const bounds = {
    parallel: PARALLEL_ORDER_WORK,
    maxWaiting: WAITING_ORDER_WORK_MAX,
    maxWaitMs: requestDeadlineMs * QUEUE_SHARE,
  };
  const bulkhead = new Bulkhead(bounds);
  const searches = new Bulkhead(bounds);
  const orders = new OrderService({
    db,
    backend,
    // A late payment waits for the commit of its purchase. Meanwhile it must not use up the room of other orders.
    buy: (purchase) => bulkhead.aside(() => engine.purchase(purchase)),
  });
  const accepted = new AcceptedOrders({
    db,
    engine,
    guarded: (work) => searches.run(work),
    saleMs: requestDeadlineMs / 4,
  });
  return {
    readOrder: (orderId) => bulkhead.run(() => readOrder(db, orderId)),
    changeOrder: (orderId, change, buyerId, latestMs) =>
      bulkhead.run(() => orders.changeOrder(orderId, change, buyerId, latestMs)),
    ownOrders: (buyerId, query) => bulkhead.run(() => readOwnOrders(db, buyerId, query)),
    ownOrdersOfSale: (saleId, buyerId, query) =>
      bulkhead.run(() =>
        readOwnOrdersOfSale(db, { saleId, buyerId }, query, () => engine.recordOf(saleId, buyerId)),
      ),
    findAccepted: (buyerId, orderId) => accepted.find(buyerId, orderId),
  } satisfies Partial<PublicHost>;
}

function authentication({ jwt, isBehindGateway }: WorkerSettings, log: Log): Authenticate {
  // Without a gateway, the settings allow the port on the loopback only (config/relations.ts).
  if (!jwt) return isBehindGateway ? headerIdentity() : onlyFromThisMachine(headerIdentity());
  return jwtIdentity(jwt, (error) => log.error({ err: error }, "buyers' tokens can't be checked"));
}

export async function publicSale(
  { settings, engine, backend, queueWork }: PublicHostParts,
  saleId: string,
): Promise<PublicSale | undefined> {
  const view = await engine.view(saleId);
  if (!view) return undefined;
  const { sale, generation } = view.record;
  // Half of the time that a request or a stream waits: if these can't be read, there is time to show the sale without them.
  const limitMs = Math.min(settings.requestDeadlineMs, READING_MS) / 2;
  const reading = backend.sales.snapshot(sale.id, sale.segments, generation);
  const drawing = sale.queue?.order === 'draw' ? queueWork.draws.read(sale.id) : undefined;
  const [segments, draw] = await Promise.all([
    withTimeout(limitMs, reading).catch(() => []),
    drawing && withTimeout(limitMs, drawing).catch(() => undefined),
  ]);
  return { record: view.record, remaining: unitsLeft(segments), draw };
}

function corsOf({ corsOrigins }: WorkerSettings): Cors | undefined {
  const origins = corsOrigins === undefined ? undefined : parseOrigins(corsOrigins);
  return origins && new Cors(origins);
}
