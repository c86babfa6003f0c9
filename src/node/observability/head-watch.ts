import { Counter, type Registry } from 'prom-client';
import type { HeadEvents } from '../../queue/head/head-events.ts';
import type { Log } from '../process/log.ts';

/** Writes what the head of the queues reports to the log and the metrics. */
export function watchHead(log: Log, registry: Registry): HeadEvents {
  const registers = [registry];
  const offers = new Counter({
    name: 'stockade_queue_offers_total',
    help: 'Offers that were made to places of queues',
    registers,
  });
  const units = new Counter({
    name: 'stockade_queue_offered_units_total',
    help: 'Units of the offers that were made to places of queues',
    registers,
  });
  const passed = new Counter({
    name: 'stockade_queue_passed_places_total',
    help: 'Places that left when their turn came, because their buyers were absent or may not hold more units',
    labelNames: ['why'],
    registers,
  });
  const delayed = new Counter({
    name: 'stockade_queue_delayed_offers_total',
    help: 'Offers that could not be made in their round, and were left to a later one',
    registers,
  });
  const failures = new Counter({
    name: 'stockade_queue_failures_total',
    help: 'Times that the head of the queues could make no offers, in one sale or in all',
    registers,
  });
  return {
    offered(info) {
      offers.inc(info.offers);
      units.inc(info.units);
      log.debug(info, 'offers were made');
    },
    passedOver(info) {
      passed.inc({ why: 'absent' }, info.absent);
      passed.inc({ why: 'limit' }, info.limited);
      log.info(info, 'places of a queue were passed over');
    },
    delayed(info) {
      delayed.inc(info.places);
      log.warn(info, 'places of a queue get their offers in a later round');
    },
    drawn: (info) => log.info(info, 'the places of a queue were drawn'),
    saleFailed({ saleId, error }) {
      failures.inc();
      log.error({ saleId, err: error }, 'no offers could be made in a sale; this will be tried again');
    },
    crashed({ error, retryMs }) {
      failures.inc();
      log.error({ err: error, retryMs }, 'the head of the queues failed and will start again');
    },
  };
}
