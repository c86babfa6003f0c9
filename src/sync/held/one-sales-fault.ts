import { BackendCorrupt, StaleGeneration } from '../../engine/errors.ts';

/**
 * Whether the error concerns one sale's keys (`ReplyError`), and not a connection or the database, which fails for
 * all.
 */
export function isOneSalesFault(error: unknown): boolean {
  if (error instanceof BackendCorrupt || error instanceof StaleGeneration) return true;
  return error instanceof Error && error.name === 'ReplyError';
}
