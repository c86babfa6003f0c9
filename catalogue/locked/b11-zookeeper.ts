/**
 * B11: a lock in a consensus store. Every request makes an ephemeral node with a rising number. The lowest number holds the lock;
 * each other one watches its predecessor.
 *
 * Shows: survives failover, as B9 doesn't, because a majority of the servers knows of a lock before its holder does. It is freed
 * when the holder's session ends. A holder that is frozen beyond its session has the problem that B8 solves; the number of its
 * node could be the fencing token. The price is the rate: each lock is two writes that a majority must log.
 * From: the ZooKeeper recipes ("Locks"), and Curator's InterProcessMutex, whose protected names are the order ids here.
 */
import { needed, type SellingRow, type Setting } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';
import { type Acquire, LOCK_WAIT_MS, sellingUnder } from './lock.ts';
import { ConnectionLost, ZooKeeperClient } from './zookeeper-client.ts';

/** Failovers that one request survives. */
const ATTEMPTS = 5;
const NUMBER_DIGITS = 10;

export const b11: SellingRow = {
  kind: 'selling',
  id: 'B11',
  title: 'ZooKeeper: an ephemeral sequential node',
  stores: ['redis', 'zookeeper'],
  stock: 'while-held',
  limit: 'not-checked',
  undersells: '',
  async open(stores, sale, setting = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    const zookeeper = await ZooKeeperClient.open(needed(stores, 'zookeeper'), setting.clock);
    const folder = `/${stores.keyPrefix}${sale.id}`;
    await zookeeper.ensure(folder);
    const acquire = lowestNumber(zookeeper, folder, setting);
    return shop.strategy(sellingUnder(acquire, shop, setting), zookeeper);
  },
};

function lowestNumber(zookeeper: ZooKeeperClient, folder: string, { steps, clock }: Setting): Acquire {
  return async (holder) => {
    const giveUpAt = clock.now() + LOCK_WAIT_MS;
    const mine = await numbered(zookeeper, folder, holder);
    const release = () => persistently(zookeeper, () => zookeeper.remove(`${folder}/${mine}`));
    try {
      while (clock.now() < giveUpAt) {
        const before = await predecessor(zookeeper, folder, mine);
        if (before === undefined) return { release };
        const changed = new AbortController();
        const path = `${folder}/${before}`;
        if (await persistently(zookeeper, () => zookeeper.exists(path, () => changed.abort()))) {
          await steps.at('waiting');
          await clock.sleep(giveUpAt - clock.now(), changed.signal);
        }
      }
    } catch (error) {
      // A node that was left behind would block all others for as long as this session lives.
      await release().catch(() => {});
      throw error;
    }
    await release();
    return undefined;
  };
}

/** Finds the node of this holder. If the reply to its creation was lost, it is found by the holder's name. */
function numbered(zookeeper: ZooKeeperClient, folder: string, holder: string): Promise<string> {
  return persistently(zookeeper, async (again) => {
    const names = again ? await zookeeper.children(folder) : [];
    const made = names.find((name) => name.slice(0, -NUMBER_DIGITS) === `${holder}-`);
    if (made) return made;
    const path = await zookeeper.createEphemeralSequential(`${folder}/${holder}-`);
    return path.slice(folder.length + 1);
  });
}

async function predecessor(
  zookeeper: ZooKeeperClient,
  folder: string,
  mine: string,
): Promise<string | undefined> {
  const number = (name: string) => name.slice(-NUMBER_DIGITS);
  const names = await persistently(zookeeper, () => zookeeper.children(folder));
  if (!names.includes(mine)) throw new Error(`${folder}/${mine} is gone: the session has ended`);
  return names
    .filter((name) => number(name) < number(mine))
    .sort((a, b) => (number(a) < number(b) ? 1 : -1))[0];
}

/** Repeats the operation on the next server if the connection breaks. */
async function persistently<T>(zookeeper: ZooKeeperClient, work: (again: boolean) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt > 1);
    } catch (error) {
      if (!(error instanceof ConnectionLost) || attempt === ATTEMPTS) throw error;
      await zookeeper.connected();
    }
  }
}
