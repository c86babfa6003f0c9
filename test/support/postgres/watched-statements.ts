import type { Database } from '../../../src/postgres/database.ts';

type Bindings = readonly unknown[];

interface Watch {
  /** Called before each matching statement, which waits for it. */
  readonly before?: (bindings: Bindings) => Promise<void>;
  /** Called directly after each one. */
  readonly after?: () => Promise<void>;
}

/** A database that calls `act` directly after each matching statement, also within transactions. */
export function afterStatement(db: Database, statement: RegExp, act: () => Promise<void>): Database {
  return watched(db, statement, { after: act });
}

/** A database that calls `act` before each matching statement, also within transactions, and waits for it. */
export function beforeStatement(
  db: Database,
  statement: RegExp,
  act: (bindings: Bindings) => Promise<void>,
): Database {
  return watched(db, statement, { before: act });
}

function watched<T extends object>(knex: T, statement: RegExp, watch: Watch): T {
  return new Proxy(knex, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'raw') {
        return async (...args: [sql: string, bindings?: Bindings]) => {
          const [sql, bindings = []] = args;
          const isWatched = statement.test(sql);
          if (isWatched) await watch.before?.(bindings);
          const result = await value.call(target, ...args);
          if (isWatched) await watch.after?.();
          return result;
        };
      }
      if (name !== 'transaction') return value.bind(target);
      return (work: (trx: object) => unknown, ...rest: unknown[]) =>
        value.call(target, (trx: object) => work(watched(trx, statement, watch)), ...rest);
    },
  });
}
