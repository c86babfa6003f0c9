import type { Redis } from 'ioredis';
import type { BackendEvents, Watermark } from '../contract.ts';
import { decodeHint } from './codec.ts';
import type { Keys } from './keys.ts';

const HEARTBEAT_MS = 2_000;

/** Has the events told what comes in on this connection, which must be open. @returns what ends that, and the connection */
export async function listen(client: Redis, keys: Keys, events: BackendEvents): Promise<() => Promise<void>> {
  const { watermarks, hints, sales } = keys;
  client.on('message', (channel: string, message: string) => {
    if (channel === watermarks) events.watermarks?.(JSON.parse(message) as Watermark[]);
    else if (channel === sales) events.saleChanged?.(message);
    else if (channel === hints) events.hint?.(decodeHint(message));
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
