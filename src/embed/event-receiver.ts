import type { Receiver } from '../events/order-event.ts';
import type { OrderEventHandler } from './options.ts';

/** How long a handler may go on when the shop is closed. The connections to the stores are closed after it. */
const GRACE_MS = 1_000;

/** Delivers order events to the program's handler. If that goes on after the grace, nobody hears how it ends: the events come again. */
export function receiverOf(handle: OrderEventHandler): Receiver {
  return {
    async deliver(events, signal) {
      let timer: NodeJS.Timeout | undefined;
      let onAbort = () => {};
      const late = new Promise<never>((_, reject) => {
        onAbort = () => {
          timer = setTimeout(() => reject(signal.reason), GRACE_MS);
        };
      });
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        await Promise.race([(async () => handle(events, signal))(), late]);
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
      }
    },
  };
}
