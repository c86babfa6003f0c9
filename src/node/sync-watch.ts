import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { SyncEvents } from '../sync/sync-events.ts';
import type { Log } from './log.ts';

const TRANSACTION_BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const ROW_BOUNDS = [1, 4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096];

/** What sync says of itself, to the log and to the metrics. */
export function watchSync(log: Log, registry: Registry): SyncEvents {
  const registers = [registry];
  const orders = new Counter({
    name: 'stockade_sync_orders_total',
    help: 'Orders committed to Postgres',
    registers,
  });
  const rows = new Histogram({
    name: 'stockade_sync_batch_orders',
    help: 'Orders in one transaction',
    buckets: ROW_BOUNDS,
    registers,
  });
  const seconds = new Histogram({
    name: 'stockade_sync_transaction_seconds',
    help: 'Duration of one transaction',
    buckets: TRANSACTION_BOUNDS_S,
    registers,
  });
  const lagOrders = new Gauge({
    name: 'stockade_sync_lag_orders',
    help: 'Orders in the logs that are not in Postgres yet',
    registers,
  });
  const lagSeconds = new Gauge({
    name: 'stockade_sync_lag_seconds',
    help: 'Age of the oldest order of the last transaction; while none succeeds, how long orders have waited',
    registers,
  });
  const rejected = new Counter({
    name: 'stockade_guard_rejections_total',
    help: 'Orders that Postgres refused; never normal',
    labelNames: ['reason'],
    registers,
  });
  const broken = new Counter({
    name: 'stockade_log_breaks_total',
    help: 'Logs that did not follow on from what was applied: the backend has lost writes',
    registers,
  });
  const rebuilds = new Counter({
    name: 'stockade_rebuilds_total',
    help: 'Sales whose state was built from Postgres',
    registers,
  });
  const failures = new Counter({
    name: 'stockade_sync_sale_failures_total',
    help: 'Times that one sale could not be worked on because of what the backend held of it',
    registers,
  });
  const crashes = new Counter({
    name: 'stockade_sync_crashes_total',
    help: 'Failures of the sync loop',
    registers,
  });

  /** Since when there is a backlog of which nothing was applied. */
  let waitingSince: number | undefined;

  return {
    applied(info) {
      orders.inc(info.orders);
      rows.observe(info.orders);
      seconds.observe(info.tookMs / 1_000);
      lagSeconds.set(Math.max(0, info.oldestMs) / 1_000);
      waitingSince = undefined;
    },
    rejected({ saleId, orderId, reason }) {
      rejected.inc({ reason });
      log.error({ saleId, orderId, reason }, 'Postgres refused an order; it was taken back');
    },
    logBroken(info) {
      broken.inc();
      log.error(info, 'an order log has lost writes; the sale is rebuilt from Postgres');
    },
    rebuilt(info) {
      rebuilds.inc();
      log.info(info, 'a sale was built from Postgres');
    },
    backlog(info) {
      lagOrders.set(info.orders);
      if (info.orders === 0) waitingSince = undefined;
      else waitingSince ??= Date.now();
      lagSeconds.set(waitingSince === undefined ? 0 : (Date.now() - waitingSince) / 1_000);
    },
    saleFailed({ saleId, error }) {
      failures.inc();
      log.error({ err: error, saleId }, 'sync can’t work on a sale and tries again');
    },
    crashed({ error, retryMs }) {
      crashes.inc();
      log.error({ err: error, retryMs }, 'sync failed and starts again');
    },
  };
}
