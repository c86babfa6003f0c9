/**
 * E1: an order id is 31 bits of seconds since 2022, then 32 bits of a counter in Redis, which starts again each day.
 *
 * Shows: unique and rising, at one round trip each.
 * - Daily reset: at midnight the counter falls to 1 while the seconds rise, so ids go on rising. That needs day and second to come
 *   from one reading of the clock, and all nodes to use one time zone for the day.
 * - 32-bit overflow: after 4,294,967,296 orders in a day (49,711 a second) the counter runs into the seconds. In odd seconds ids
 *   fall back, in even ones they name a second in the future. No two are equal, but only because no shop counts four thousand
 *   million orders within a second.
 * - Lost data: a counter that is lost begins at 1 again, and gives the same ids again within the same second.
 * - A buyer who buys twice learns how much was sold in between, and the next id.
 * From: the global id of voucher shops, after Twitter's Snowflake.
 */
import { takeClient } from '../../src/redis/clients.ts';
import { type NamingRow, needed } from '../parts/contract.ts';
import { connected } from '../parts/redis-shop.ts';
import { MACHINE_CLOCK } from '../parts/setting.ts';

export const EPOCH_MS = Date.UTC(2022, 0, 1);
const COUNTER_BITS = 32n;
const DAY_LETTERS = 'yyyy-mm-dd'.length;

export const e1: NamingRow = {
  kind: 'naming',
  id: 'E1',
  title: 'order ids from a counter in Redis',
  stores: ['redis'],
  guessable: true,
  roundTrips: 1,
  async open(stores, _node, clock = MACHINE_CLOCK) {
    const redis = await connected(takeClient(needed(stores, 'redis')));
    return {
      next: async () => {
        const now = clock.now();
        const second = BigInt(Math.floor((now - EPOCH_MS) / 1_000));
        const count = await redis.incr(counterKey(stores.keyPrefix, now));
        return ((second << COUNTER_BITS) | BigInt(count)).toString();
      },
      close: async () => redis.disconnect(),
    };
  },
};

export function counterKey(keyPrefix: string, now: number): string {
  return `${keyPrefix}orders:${new Date(now).toISOString().slice(0, DAY_LETTERS)}`;
}
