import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { seldom } from '../../lib/seldom.ts';
import type { SyncEvents } from '../../sync/held/sync-events.ts';
import type { Log } from '../process/log.ts';

const TRANSACTION_BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const BATCH_BOUNDS = [1, 4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096];

function metricsOf(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers });
  return {
    orders: counter('stockade_sync_orders_total', 'Orders committed to Postgres'),
    batch: histogram('stockade_sync_batch_orders', 'Orders in one transaction', BATCH_BOUNDS),
    seconds: histogram(
      'stockade_sync_transaction_seconds',
      'Duration of one transaction',
      TRANSACTION_BOUNDS_S,
    ),
    lagOrders: gauge('stockade_sync_lag_orders', 'Orders in the logs that are not in Postgres yet'),
    lagSeconds: gauge(
      'stockade_sync_lag_seconds',
      'Age of the oldest order of the last transaction; while no transaction succeeds, how long orders have waited',
    ),
    rejected: new Counter({
      name: 'stockade_guard_rejections_total',
      help: 'Orders that Postgres rejected; 0 in normal operation',
      labelNames: ['reason'],
      registers,
    }),
    broken: counter(
      'stockade_log_breaks_total',
      'Order logs with a missing entry: the backend has lost writes',
    ),
    lost: counter(
      'stockade_sync_lost_orders_total',
      'Orders that the backend lost before they were in Postgres; a lower bound',
    ),
    transfers: new Counter({
      name: 'stockade_transfers_total',
      help: 'Transfers of units between segments that sync made to even out a sale, or that it finished for another process',
      labelNames: ['why'],
      registers,
    }),
    transferredUnits: counter(
      'stockade_transferred_units_total',
      'Units moved by the transfers of stockade_transfers_total',
    ),
    rebuilds: counter(
      'stockade_rebuilds_total',
      'Times that a sale was loaded into the backend from Postgres',
    ),
    failures: counter(
      'stockade_sync_sale_failures_total',
      'Times that sync could not process a sale because of its data in the backend',
    ),
    crashes: counter('stockade_sync_crashes_total', 'Failures of the sync loop'),
  };
}

/** The lag of sync: while transactions succeed, the age of the orders in the last one; otherwise how long orders have waited. */
class Lag {
  readonly #orders: Gauge;
  readonly #seconds: Gauge;
  /** Since when (Unix milliseconds) there is a backlog and nothing was applied. */
  #waitingSince: number | undefined;

  constructor(orders: Gauge, seconds: Gauge) {
    this.#orders = orders;
    this.#seconds = seconds;
  }

  applied(oldestMs: number): void {
    this.#seconds.set(Math.max(0, oldestMs) / 1_000);
    this.#waitingSince = undefined;
  }

  backlog(orders: number): void {
    this.#orders.set(orders);
    if (orders === 0) {
      this.#waitingSince = undefined;
      this.#seconds.set(0);
    } else if (this.#waitingSince === undefined) {
      // The first sweep with a backlog since something was applied: `applied` has set the lag, which is still right.
      this.#waitingSince = Date.now();
    } else this.#seconds.set((Date.now() - this.#waitingSince) / 1_000);
  }
}

/** Writes what sync reports to the log and the metrics. */
export function watchSync(log: Log, registry: Registry): SyncEvents {
  const metrics = metricsOf(registry);
  const lag = new Lag(metrics.lagOrders, metrics.lagSeconds);
  const mayTell = seldom();
  // Prometheus sees no increase if a series begins with its first event.
  for (const reason of ['stock', 'limit', 'duplicate']) metrics.rejected.inc({ reason }, 0);
  for (const why of ['uneven', 'unfinished']) metrics.transfers.inc({ why }, 0);
  return {
    applied(info) {
      metrics.orders.inc(info.orders);
      metrics.batch.observe(info.orders);
      metrics.seconds.observe(info.tookMs / 1_000);
      lag.applied(info.oldestMs);
    },
    rejected({ saleId, orderId, reason }) {
      metrics.rejected.inc({ reason });
      log.error({ saleId, orderId, reason }, 'Postgres rejected an order; sync undoes it in the backend');
    },
    logBroken(info) {
      metrics.broken.inc();
      log.error(info, 'an order log has lost writes; sync rebuilds the sale from Postgres');
    },
    ordersLost(info) {
      metrics.lost.inc(info.orders);
      log.error(info, 'at least this many orders are lost for good: they were not in Postgres yet');
    },
    rebuilt(info) {
      metrics.rebuilds.inc();
      if (info.again) log.warn(info, 'a sale was rebuilt from Postgres');
      else log.info(info, 'a sale was loaded from Postgres');
    },
    transferred({ saleId, why, moves, units }) {
      metrics.transfers.inc({ why }, moves);
      metrics.transferredUnits.inc(units);
      if (why === 'unfinished')
        log.warn({ saleId, moves, units }, 'finished a transfer that another process had left halfway');
      else log.debug({ saleId, moves, units }, 'evened out the segments of a sale');
    },
    backlog: ({ orders }) => lag.backlog(orders),
    saleFailed({ saleId, error }) {
      metrics.failures.inc();
      log.error({ err: error, saleId }, 'sync can’t process a sale and will try again');
    },
    untold({ error }) {
      if (mayTell()) log.warn({ err: error }, 'buyers can’t be told that their orders are committed');
    },
    foreign({ error }) {
      log.warn({ err: error }, 'ignored a message in Redis that this version does not send');
    },
    crashed({ error, retryMs }) {
      metrics.crashes.inc();
      log.error({ err: error, retryMs }, 'sync failed and will start again');
    },
  };
}
