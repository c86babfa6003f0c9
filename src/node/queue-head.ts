import type { Teardown } from '../lib/teardown.ts';
import type { Buy } from '../orders/late-payment.ts';
import { QueueHead } from '../queue/head/head.ts';
import type { HeadEvents } from '../queue/head/head-events.ts';
import type { Stores } from './stores/stores.ts';

/** Starts the head of the queues, which runs until the teardown. @param buy makes purchases by an engine of this process */
export function startQueueHead(
  { db, backend, locks }: Stores,
  buy: Buy,
  events: HeadEvents,
  teardown: Teardown,
): void {
  const head = new QueueHead({ db, backend, locks, buy, events });
  head.start();
  teardown.add(() => head.stop());
}
