import type { HeadEvents } from '../../queue/head-events.ts';
import type { Log } from '../process/log.ts';

/** Writes what the head of the queues reports to the log. */
export function watchHead(log: Log): HeadEvents {
  return {
    offered: (info) => log.debug(info, 'offers were made'),
    passedOver: (info) => log.info(info, 'places of a queue were passed over'),
    delayed: (info) => log.warn(info, 'places of a queue get their offers in a later round'),
    drawn: (info) => log.info(info, 'the places of a queue were drawn'),
    saleFailed: ({ saleId, error }) =>
      log.error({ saleId, err: error }, 'no offers could be made in a sale; this will be tried again'),
    crashed: ({ error, retryMs }) =>
      log.error({ err: error, retryMs }, 'the head of the queues failed and restarts'),
  };
}
