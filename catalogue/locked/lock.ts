/** What B3 to B11 share: what a lock is to them, how to wait for one by asking again, and what is sold under it. */

import { failed, type Outcome, type Sell, type Setting } from '../parts/contract.ts';
import type { RedisShop } from '../parts/redis-shop.ts';
import { getCheckSet } from './b1-get-check-set.ts';

/** Of locks that are not renewed: the ten seconds of the incident (C1), and of most examples. */
export const LOCK_TTL_MS = 10_000;
/** Who has not got a lock by then gives up. */
export const LOCK_WAIT_MS = 5_000;
const SPIN_MS = 10;

export interface Hold {
  release(): Promise<void>;
}

/** @returns undefined if another holds the lock, or if its wait has ended */
export type Acquire = (holder: string) => Promise<Hold | undefined>;

/** Asks again and again, until it gets the lock or has waited LOCK_WAIT_MS. */
export function spinning({ steps, clock }: Setting, tryOnce: Acquire): Acquire {
  return async (holder) => {
    const giveUpAt = clock.now() + LOCK_WAIT_MS;
    for (;;) {
      const hold = await tryOnce(holder);
      if (hold || clock.now() >= giveUpAt) return hold;
      await steps.at('waiting');
      // Spread, so that those who were refused together don't ask again together.
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
  if (!hold) return failed(`the lock was not to be had within ${LOCK_WAIT_MS} ms`);
  try {
    return await work();
  } finally {
    // What is sold is sold, also if the store of the lock is gone by now.
    await hold.release().catch(() => {});
  }
}
