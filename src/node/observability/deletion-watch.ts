import type { FinisherEvents } from '../../deletion/deletion-finisher.ts';
import type { Log } from '../process/log.ts';

/** Writes what the finisher of deletions reports to the log. */
export function watchDeletions(log: Log): FinisherEvents {
  return {
    deleted(info) {
      log.info(info, 'finished the deletion of a sale');
    },
    failed({ saleId, error }) {
      log.error({ saleId, err: error }, 'a sale could not be deleted; this will be tried again');
    },
  };
}
