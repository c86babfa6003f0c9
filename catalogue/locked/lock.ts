/** What B3 to B11 share: the interface of a lock, waiting for it by repeated attempts, and selling under it. */

import { failed, type Outcome, type Sell, type Setting } from '../parts/contract.ts';
import type { RedisShop } from '../parts/redis-shop.ts';
import { getCheckSet } from './b1-get-check-set.ts';

/** The expiry of locks that are not renewed: ten seconds, as in the incident (C1) and most examples. */
export const LOCK_TTL_MS = 10_000;
/** After this time a waiter gives up. */
export const LOCK_WAIT_MS = 5_000;
const SPIN_MS = 10;

export interface Hold {
  release(): Promise<void>;
}

/** @returns undefined if another holds the lock, or if its wait has ended */
export type Acquire = (holder: string) => Promise<Hold | undefined>;

/** Tries repeatedly, until it gets the lock or has waited LOCK_WAIT_MS. */
export function spinning({ steps, clock }: Setting, tryOnce: Acquire): Acquire {
  return async (holder) => {
    const giveUpAt = clock.now() + LOCK_WAIT_MS;
    for (;;) {
      const hold = await tryOnce(holder);
      if (hold || clock.now() >= giveUpAt) return hold;
      await steps.at('waiting');
      // At random, so that waiters that were refused together don't try again together.
      await clock.sleep(SPIN_MS * (1 + Math.random()));
    }
  };
}

/** Checks the buyer and sells as B1 does, all while holding the lock. */
export function sellingUnder(acquire: Acquire, shop: RedisShop, setting: Setting): Sell {
  return (buyerId, orderId) =>
    under(acquire, orderId, async () => {
      await setting.checkBuyer(buyerId);
      const outcome = await getCheckSet(shop, setting, buyerId, orderId);
      await setting.steps.at('written');
      return outcome;
    });
}

/** Does the work while holding the lock. */
export async function under(
  acquire: Acquire,
  holder: string,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const hold = await acquire(holder);
  if (!hold) return failed(`the lock was not free within ${LOCK_WAIT_MS} ms`);
  try {
    return await work();
  } finally {
    // A unit that is sold stays sold, even if the store of the lock is gone by now.
    await hold.release().catch(() => {});
  }
}
