/**
 * A backend that calls the test before each call (to throw, wait or count), or before the reply of one. Everything else goes to
 * the real backend. Calls are named `log.advance`, `sales.publish`, `takes.take` and so on.
 */
import type { Backend } from '../../../src/engine/contract.ts';
import { gate } from '../gate.ts';

/** Called before each call. If it throws, the call fails with that error; what it returns is awaited. */
export type Before = (call: string, args: readonly unknown[]) => unknown;

/** Called after each call. The result waits for what it returns. */
export type After = (call: string, args: readonly unknown[]) => unknown;

export function intercept(backend: Backend, before: Before, after?: After): Backend {
  return {
    durable: backend.durable,
    takes: backend.takes,
    sales: part(backend.sales, 'sales', before),
    log: part(backend.log, 'log', before, after),
    transfers: part(backend.transfers, 'transfers', before),
    audits: part(backend.audits, 'audits', before),
    ...(backend.syncs && { syncs: part(backend.syncs, 'syncs', before) }),
    ...(backend.events && { events: part(backend.events, 'events', before) }),
    subscribe: (events) => backend.subscribe(events),
    // The real one belongs to the test.
    close: async () => {},
  };
}

/** Throws `error` at each call with one of these names, until `repair` is called. */
export function breaker(...names: string[]) {
  const broken = new Set(names);
  const hits: string[] = [];
  return {
    hits,
    before: (call: string) => {
      if (!broken.has(call)) return;
      hits.push(call);
      throw new Error(`${call} fails, as the test wants it`);
    },
    repair: () => broken.clear(),
  };
}

/** Works until such a call comes, and then never answers again, as if the process using the backend had died. */
export function deathAt(fatal: (call: string, args: readonly unknown[]) => boolean) {
  let dead = false;
  const { open: died, opened: death } = gate();
  const before: Before = (call, args) => {
    if (fatal(call, args)) dead = true;
    if (!dead) return undefined;
    died();
    return new Promise<never>(() => {});
  };
  return { death, before };
}

/** Stalls at each call with this name, until `goOn` is called. `stalled` resolves at the first of them. */
export function stallAt(name: string) {
  const { open: arrive, opened: stalled } = gate();
  const { open: goOn, opened: pause } = gate();
  const before: Before = (call) => {
    if (call !== name) return undefined;
    arrive();
    return pause;
  };
  return { stalled, goOn, before };
}

/** An object of which each method is intercepted. */
export function part<T extends object>(store: T, name: string, before: Before, after: After = () => {}): T {
  return new Proxy(store, {
    get(target, property) {
      const value = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        await before(`${name}.${String(property)}`, args);
        const result = await value.apply(target, args);
        await after(`${name}.${String(property)}`, args);
        return result;
      };
    },
  });
}
