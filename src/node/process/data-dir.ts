import type { Config } from '../../config/config.ts';
import { closeFolder } from '../../config/private-folder.ts';
import type { Log } from './log.ts';

/** Closes DATA_DIR to other users of the machine before anything is written there. @throws OpenFolder */
export function openDataDir({ dataDir, databaseUrl, opsToken }: Config, log: Log): void {
  if (databaseUrl && opsToken) return;
  const mode = closeFolder(dataDir);
  if (mode === undefined) return;
  log.warn(
    { dataDir, mode: mode.toString(8) },
    'other users of this machine could enter DATA_DIR until now, and read the keys in it: it is closed to them. If you ' +
      'do not trust them, begin with a new folder',
  );
}
