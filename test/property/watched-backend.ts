import type { Backend } from '../../src/engine/contract.ts';
import { turn } from '../support/engine/frozen-time.ts';

/** After this many turns of the event loop without a call under way, no further call is expected. */
const QUIET_TURNS = 4;

/** A backend that counts its calls under way, so that a test can wait until there are none. */
export interface WatchedBackend extends Backend {
  quiet(): Promise<void>;
}

export function watched(backend: Backend): WatchedBackend {
  let underWay = 0;

  const watch = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, property) {
        const value = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const result: unknown = value.apply(target, args);
          if (!(result instanceof Promise)) return result;
          underWay++;
          return result.finally(() => {
            underWay--;
          });
        };
      },
    });

  const parts = watch(backend);
  return {
    durable: backend.durable,
    takes: watch(backend.takes),
    sales: watch(backend.sales),
    log: watch(backend.log),
    transfers: watch(backend.transfers),
    audits: watch(backend.audits),
    subscribe: (events) => parts.subscribe(events),
    close: () => parts.close(),
    async quiet() {
      for (let quiet = 0; quiet < QUIET_TURNS; quiet = underWay > 0 ? 0 : quiet + 1) await turn();
    },
  };
}
