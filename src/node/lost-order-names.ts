import { setTimeout as delay } from 'node:timers/promises';
import type { TakenOrder } from '../engine/purchase/uncommitted-orders.ts';
import { chunksOf } from '../lib/chunks-of.ts';
import type { Database } from '../postgres/database.ts';
import { nameLostOrders } from '../rebuild/lost-orders.ts';
import type { Log } from './process/log.ts';

/** Orders in one statement. */
const PAGE_ORDERS = 1_000;
const ATTEMPTS = 5;
const RETRY_MS = 2_000;
/** At most this many lost orders are logged for each call. Postgres has them all. */
const MAX_LOGGED = 100;

/**
 * Finds out which of a sale's uncommitted orders are lost. It stores their names in Postgres, where `stockade recover` reads
 * them, and logs them. If Postgres fails, it tries again for some seconds; then the lost orders are counted but not named.
 */
export function lostOrderNames(db: Database, log: Log) {
  return (saleId: string, orders: readonly TakenOrder[]): void => {
    void nameAll(db, saleId, orders).then(
      (lost) => {
        for (const order of lost.slice(0, MAX_LOGGED))
          log.error({ saleId, ...order }, 'an accepted order is lost');
      },
      (error) => log.error({ err: error, saleId, orders: orders.length }, 'lost orders could not be named'),
    );
  };
}

async function nameAll(db: Database, saleId: string, orders: readonly TakenOrder[]): Promise<TakenOrder[]> {
  const lost: TakenOrder[] = [];
  for (const page of chunksOf(orders, PAGE_ORDERS))
    lost.push(...(await retryUntilNamed(() => nameLostOrders(db, saleId, page))));
  return lost;
}

async function retryUntilNamed<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      await delay(RETRY_MS);
    }
  }
}
