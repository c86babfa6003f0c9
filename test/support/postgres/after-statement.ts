import type { Database } from '../../../src/postgres/database.ts';

/** A database that calls `act` directly after each matching statement, also within transactions. */
export function afterStatement(db: Database, statement: RegExp, act: () => Promise<void>): Database {
  const watched = <T extends object>(knex: T): T =>
    new Proxy(knex, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        if (name === 'raw') {
          return async (sql: string, ...rest: unknown[]) => {
            const result = await value.call(target, sql, ...rest);
            if (statement.test(sql)) await act();
            return result;
          };
        }
        if (name !== 'transaction') return value.bind(target);
        return (work: (trx: object) => unknown, ...rest: unknown[]) =>
          value.call(target, (trx: object) => work(watched(trx)), ...rest);
      },
    });
  return watched(db);
}
