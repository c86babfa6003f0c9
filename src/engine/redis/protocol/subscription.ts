import type { Redis } from 'ioredis';
import { seldom } from '../../../lib/seldom.ts';
import type { BackendEvents } from '../../contract.ts';
import { BackendCorrupt } from '../../errors.ts';
import type { Keys } from './keys.ts';
import { decodeHints, decodeSaleId, decodeSyncNews, decodeWatermarks } from './messages.ts';

const HEARTBEAT_MS = 2_000;

/**
 * Calls the matching handler of `events` for each message on this connection, which must be open. @returns a function
 * that ends the subscription and closes the connection
 */
export async function listen(client: Redis, keys: Keys, events: BackendEvents): Promise<() => Promise<void>> {
  const { watermarks, hints, sales, syncs } = keys;
  const mayReport = seldom();
  const report = (error: BackendCorrupt) => {
    if (mayReport()) events.foreign?.(error);
  };
  client.on('message', (channel: string, message: string) => {
    try {
      if (channel === watermarks) events.watermarks?.(decodeWatermarks(message, report));
      else if (channel === sales) events.saleChanged?.(decodeSaleId(message));
      else if (channel === hints) for (const hint of decodeHints(message, report)) events.hint?.(hint);
      else events.syncNews?.(decodeSyncNews(message));
    } catch (error) {
      // An error thrown here would end the process.
      if (!(error instanceof BackendCorrupt)) throw error;
      report(error);
    }
  });
  const wanted = [
    events.watermarks && watermarks,
    events.hint && hints,
    events.saleChanged && sales,
    events.syncNews && syncs,
  ];
  await client.subscribe(...wanted.filter((channel) => channel !== undefined));
  // A subscriber sends no commands, so without a heartbeat it would not notice a dead connection.
  const heartbeat = setInterval(() => client.ping().catch(() => {}), HEARTBEAT_MS);
  heartbeat.unref();
  return async () => {
    clearInterval(heartbeat);
    client.removeAllListeners('message');
    client.disconnect();
  };
}
