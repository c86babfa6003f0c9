import type { Config } from '../../config/config.ts';
import { makeFolderPrivate } from '../../config/private-folder.ts';
import type { Log } from './log.ts';

/** Denies other users of the machine access to DATA_DIR before anything is written there. @throws FolderNotPrivate */
export function secureDataDir({ dataDir, databaseUrl, opsToken }: Config, log: Log): void {
  if (databaseUrl && opsToken) return;
  const mode = makeFolderPrivate(dataDir);
  if (mode === undefined) return;
  log.warn(
    { dataDir, mode: mode.toString(8) },
    'until now other users of this machine could enter DATA_DIR and read the keys in it; now they can’t. If you do not ' +
      'trust them, begin with a new folder',
  );
}
