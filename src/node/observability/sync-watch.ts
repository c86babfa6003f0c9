import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { SyncEvents } from '../../sync/sync-events.ts';
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
      'Age of the oldest order of the last transaction; while none succeeds, how long orders have waited',
    ),
    rejected: new Counter({
      name: 'stockade_guard_rejections_total',
      help: 'Orders that Postgres refused; never normal',
      labelNames: ['reason'],
      registers,
    }),
    broken: counter(
      'stockade_log_breaks_total',
      'Logs that did not follow on from what was applied: the backend has lost writes',
    ),
    lost: counter(
      'stockade_sync_lost_orders_total',
      'Orders that the backend has lost before they were in Postgres, at least',
    ),
    transfers: new Counter({
      name: 'stockade_transfers_total',
      help: 'Moves of units between segments by sync: of uneven sales, and of moves that somebody has left unfinished',
      labelNames: ['why'],
      registers,
    }),
    transferredUnits: counter('stockade_transferred_units_total', 'Units in those moves'),
    rebuilds: counter('stockade_rebuilds_total', 'Sales whose state was built from Postgres'),
    failures: counter(
      'stockade_sync_sale_failures_total',
      'Times that one sale could not be worked on because of what the backend held of it',
    ),
    crashes: counter('stockade_sync_crashes_total', 'Failures of the sync loop'),
  };
}

/** What sync says of itself, to the log and to the metrics. */
export function watchSync(log: Log, registry: Registry): SyncEvents {
  const metrics = metricsOf(registry);
  const { lagOrders, lagSeconds } = metrics;
  /** Since when there is a backlog of which nothing was applied. */
  let waitingSince: number | undefined;

  return {
    applied(info) {
      metrics.orders.inc(info.orders);
      metrics.batch.observe(info.orders);
      metrics.seconds.observe(info.tookMs / 1_000);
      lagSeconds.set(Math.max(0, info.oldestMs) / 1_000);
      waitingSince = undefined;
    },
    rejected({ saleId, orderId, reason }) {
      metrics.rejected.inc({ reason });
      log.error({ saleId, orderId, reason }, 'Postgres refused an order; it was taken back');
    },
    logBroken(info) {
      metrics.broken.inc();
      log.error(info, 'an order log has lost writes; the sale is rebuilt from Postgres');
    },
    ordersLost(info) {
      metrics.lost.inc(info.orders);
      log.error(info, 'orders are lost for good, at least so many: they were not in Postgres yet');
    },
    rebuilt(info) {
      metrics.rebuilds.inc();
      if (info.again) log.warn(info, 'a sale was built again from Postgres');
      else log.info(info, 'a sale was built from Postgres');
    },
    transferred({ saleId, why, moves, units }) {
      metrics.transfers.inc({ why }, moves);
      metrics.transferredUnits.inc(units);
      if (why === 'unfinished')
        log.warn({ saleId, moves, units }, 'finished a transfer that was left halfway');
      else log.debug({ saleId, moves, units }, 'evened out the segments of a sale');
    },
    backlog(info) {
      lagOrders.set(info.orders);
      if (info.orders === 0) {
        waitingSince = undefined;
        lagSeconds.set(0);
      } else if (waitingSince === undefined) {
        // Something was applied since the last sweep: its age says more than this moment.
        waitingSince = Date.now();
      } else lagSeconds.set((Date.now() - waitingSince) / 1_000);
    },
    saleFailed({ saleId, error }) {
      metrics.failures.inc();
      log.error({ err: error, saleId }, 'sync can’t work on a sale and tries again');
    },
    foreign({ error }) {
      log.warn({ err: error }, 'a message in Redis is none of ours, and was passed over');
    },
    crashed({ error, retryMs }) {
      metrics.crashes.inc();
      log.error({ err: error, retryMs }, 'sync failed and starts again');
    },
  };
}
