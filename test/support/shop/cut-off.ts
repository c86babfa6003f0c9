import { expect, onTestFinished } from 'vitest';
import { openDatabase, rows } from '../../../src/postgres/database.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { intercept, stallAt } from '../engine/intercept.ts';
import type { Shop } from './shop.ts';

/**
 * A process that stalls at a call to the backend, in a transaction. Postgres ends its session meanwhile, and so its locks. What it
 * sends after `goOn` arrives late.
 */
export function cutOffAt(shop: Shop, call: string) {
  const { stalled, goOn, before } = stallAt(call);
  const db = openDatabase({ url: shop.databaseUrl, maxConnections: 2 });
  onTestFinished(() => db.destroy());
  return {
    service: new SaleService(db, intercept(shop.backend, before), shop.locks),
    /** @param statement the last one that it has sent, as a pattern of LIKE */
    async losesSession(statement: string): Promise<void> {
      await stalled;
      const ended = await rows(
        shop.db,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND state = 'idle in transaction' AND query LIKE ?`,
        [statement],
      );
      expect(ended).toHaveLength(1);
    },
    goOn,
  };
}
