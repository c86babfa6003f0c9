import type { Redis } from 'ioredis';
import { monotonicMs } from '../../lib/monotonic.ts';
import type { BackendEvents } from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';
import type { Keys } from './keys.ts';
import { decodeHint, decodeSaleId, decodeWatermarks } from './messages.ts';

const HEARTBEAT_MS = 2_000;
/** Foreign messages are reported once in this time: nobody's flood of them shall be one of the log. */
const REPORT_EVERY_MS = 10_000;

/** Has the events told what comes in on this connection, which must be open. @returns what ends that, and the connection */
export async function listen(client: Redis, keys: Keys, events: BackendEvents): Promise<() => Promise<void>> {
  const { watermarks, hints, sales } = keys;
  let reportedMs = Number.NEGATIVE_INFINITY;
  const report = (error: BackendCorrupt) => {
    if (monotonicMs() < reportedMs + REPORT_EVERY_MS) return;
    reportedMs = monotonicMs();
    events.foreign?.(error);
  };
  client.on('message', (channel: string, message: string) => {
    try {
      if (channel === watermarks) events.watermarks?.(decodeWatermarks(message, report));
      else if (channel === sales) events.saleChanged?.(decodeSaleId(message));
      else if (channel === hints) events.hint?.(decodeHint(message));
    } catch (error) {
      // What is thrown here ends the process.
      if (!(error instanceof BackendCorrupt)) throw error;
      report(error);
    }
  });
  const wanted = [events.watermarks && watermarks, events.hint && hints, events.saleChanged && sales];
  await client.subscribe(...wanted.filter((channel) => channel !== undefined));
  // A subscriber sends nothing by itself, and would never notice that its connection is dead.
  const heartbeat = setInterval(() => client.ping().catch(() => {}), HEARTBEAT_MS);
  heartbeat.unref();
  return async () => {
    clearInterval(heartbeat);
    client.removeAllListeners('message');
    client.disconnect();
  };
}
