import { Counter, Gauge, type Registry } from 'prom-client';
import type { ExpiryEvents } from '../../orders/expiry.ts';
import type { Log } from '../process/log.ts';

/** What the expiry of unpaid orders says of itself, to the log and to the metrics. */
export function watchExpiry(log: Log, registry: Registry): ExpiryEvents {
  const registers = [registry];
  const expired = new Counter({
    name: 'stockade_expired_orders_total',
    help: 'Orders that were not paid in time and whose units went back for sale',
    registers,
  });
  const overdue = new Gauge({
    name: 'stockade_expiry_lag_seconds',
    help: 'How long the first order of the last page had been due when it expired',
    registers,
  });
  const failures = new Counter({
    name: 'stockade_expiry_failures_total',
    help: 'Times that unpaid orders could not be expired, or their units not be given back at once',
    registers,
  });
  return {
    expired({ orders, overdueMs }) {
      expired.inc(orders);
      overdue.set(overdueMs / 1_000);
    },
    failed({ error }) {
      failures.inc();
      log.error({ err: error }, 'unpaid orders could not be expired, which is tried again');
    },
  };
}
