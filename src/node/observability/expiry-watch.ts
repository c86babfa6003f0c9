import { Counter, Gauge, type Registry } from 'prom-client';
import type { ExpiryEvents } from '../../orders/expiry.ts';
import type { Log } from '../process/log.ts';

/** Writes what the expiry of unpaid orders reports to the log and the metrics. */
export function watchExpiry(log: Log, registry: Registry): ExpiryEvents {
  const registers = [registry];
  const expired = new Counter({
    name: 'stockade_expired_orders_total',
    help: 'Orders that were not paid in time and whose units went back for sale',
    registers,
  });
  const overdue = new Gauge({
    name: 'stockade_expiry_lag_seconds',
    help: 'Delay between the end of the payment time and the expiry, for the first order of the last page',
    registers,
  });
  const failures = new Counter({
    name: 'stockade_expiry_failures_total',
    help: 'Failed attempts to expire unpaid orders or to return their units',
    registers,
  });
  return {
    expired({ orders, overdueMs }) {
      expired.inc(orders);
      overdue.set(overdueMs / 1_000);
    },
    failed({ error }) {
      failures.inc();
      log.error({ err: error }, 'unpaid orders could not be expired; this will be tried again');
    },
  };
}
