import type { ArchiverEvents } from '../../rebuild/archiver.ts';
import type { Log } from '../process/log.ts';

/** Writes what the archiver reports to the log. */
export function watchArchiver(log: Log): ArchiverEvents {
  return {
    archived(info) {
      log.info(info, 'archived a sale that is over');
    },
    failed({ saleId, error }) {
      log.error(
        { saleId, err: error },
        'sales that are over could not be archived; this will be tried again',
      );
    },
  };
}
