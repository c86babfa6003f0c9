/** Reads the parts of a console's picture. Nothing is counted for consoles alone: metrics and operators need the same figures. */
import type { Registry } from 'prom-client';
import type { Backend } from '../../engine/contract.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type {
  ConsolePicture,
  NodePicture,
  PlaceRates,
  SalePicture,
  ShownSale,
  ShownSales,
  StateTotal,
} from '../../operations/console/console-operations.ts';
import type { SaleQuery, SaleStatus } from '../../operations/sale-list.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import type { Database } from '../../postgres/database.ts';
import { readSaleTotals } from '../../sales/sale-totals.ts';
import type { WorkerMetrics } from '../worker/worker.ts';
import { countsByCode, type PlaceCounts, placeCounts, placeRates, purchaseRates } from './purchase-rates.ts';

/** Limit for each answer of the workers, the backend and Postgres. */
const ANSWER_MS = 5_000;
/** Rates over a longer time would say nothing about now: the console was closed meanwhile. */
const RATES_WITHIN_MS = 10_000;

export interface NodeSources {
  node(): Promise<NodePicture>;
  totals(): Promise<readonly StateTotal[]>;
  list(query: SaleQuery): Promise<ShownSales>;
  detail(saleId: string): Promise<SalePicture>;
  processes(): Pick<ConsolePicture, 'process' | 'version' | 'others'>;
}

export interface NodeSourceParts {
  readonly db: Database;
  readonly backend: Backend;
  readonly sales: Pick<SaleOperations, 'list' | 'show'>;
  readonly registry: Registry;
  workers(): Promise<readonly WorkerMetrics[]>;
  /** As `OpsHost.notReady`. */
  notReady(): Promise<string | undefined>;
  readonly processes: NodeSources['processes'];
}

export function nodeSources(parts: NodeSourceParts): NodeSources {
  const { db, backend, sales, registry, processes } = parts;
  const purchases = new RateMeter(purchaseRates);
  const places = new RateMeter(placeRates);
  return {
    processes,
    async node() {
      const [workers, notReady] = await withTimeout(
        ANSWER_MS,
        Promise.all([parts.workers(), parts.notReady()]),
      );
      const [sync, deadLetters] = await Promise.all([
        syncLag(registry),
        gauge(registry, 'stockade_webhook_dead_letters'),
      ]);
      const perSecond = purchases.rates(countsByCode(workers.map(({ requests }) => requests)));
      return { perSecond, queue: queueOf(workers, places), ...loadOf(workers), sync, deadLetters, notReady };
    },
    totals: () => withTimeout(ANSWER_MS, readSaleTotals(db)),
    async list(query) {
      const page = await sales.list(query);
      return { sales: page.sales.map(shown), next: page.next };
    },
    async detail(saleId) {
      const status = await sales.show(saleId);
      const sale = shown(status);
      if (status.archivedAt !== undefined) return { sale, segments: [] };
      const reading = backend.sales.snapshot(saleId, status.segments, status.generation);
      const segments = await withTimeout(ANSWER_MS, reading);
      return {
        sale,
        segments: segments.map(({ segment, counters }) => ({
          segment,
          left: counters?.left,
          taken: counters?.taken,
          inTransit: counters?.inTransit,
        })),
      };
    },
  };
}

/** Tells rates from the counts of two pictures in turn. */
class RateMeter<Counts, Rates> {
  readonly #ratesOf: (before: Counts, now: Counts, seconds: number) => Rates;
  #last: { readonly counts: Counts; readonly atMs: number } | undefined;

  constructor(ratesOf: (before: Counts, now: Counts, seconds: number) => Rates) {
    this.#ratesOf = ratesOf;
  }

  rates(counts: Counts): Rates | undefined {
    const [last, atMs] = [this.#last, monotonicMs()];
    this.#last = { counts, atMs };
    if (!last || atMs === last.atMs || atMs - last.atMs > RATES_WITHIN_MS) return undefined;
    return this.#ratesOf(last.counts, counts, (atMs - last.atMs) / 1_000);
  }
}

function queueOf(
  workers: readonly WorkerMetrics[],
  meter: RateMeter<PlaceCounts, PlaceRates>,
): NodePicture['queue'] {
  const counts = placeCounts(workers.map(({ places }) => places.answers));
  const perSecond = meter.rates(counts);
  if (counts.all === 0) return undefined;
  return { perSecond, streams: workers.reduce((sum, { places }) => sum + places.listeners, 0) };
}

function loadOf(workers: readonly WorkerMetrics[]): Pick<NodePicture, 'connections' | 'queued' | 'waiting'> {
  const load = { connections: 0, queued: 0, waiting: 0 };
  for (const { connections, lanes } of workers) {
    load.connections += connections.open;
    for (const lane of lanes) {
      load.queued += lane.queued;
      load.waiting += lane.waiting;
    }
  }
  return load;
}

async function syncLag(registry: Registry): Promise<NodePicture['sync']> {
  const lagOrders = await gauge(registry, 'stockade_sync_lag_orders');
  const lagSeconds = await gauge(registry, 'stockade_sync_lag_seconds');
  return lagOrders === undefined || lagSeconds === undefined ? undefined : { lagOrders, lagSeconds };
}

/** The value of a gauge without labels; `undefined` if this process does not have it. */
async function gauge(registry: Registry, name: string): Promise<number | undefined> {
  return (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
}

function shown(sale: SaleStatus): ShownSale {
  const { id, title, state, archivedAt, startsAt, endsAt, stock, movedUnits, segments, perBuyerLimit } = sale;
  const { remaining, generation, committedOrders, committedUnits, waitingErasures } = sale;
  const { behindHead, offeredUnits } = sale;
  return {
    ...{ id, title, state, archivedAt, startsAt, endsAt, stock, movedUnits, segments, perBuyerLimit },
    ...{ remaining, generation, committedOrders, committedUnits, waitingErasures },
    ...{ behindHead, offeredUnits },
  };
}
