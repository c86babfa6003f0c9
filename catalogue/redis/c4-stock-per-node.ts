/**
 * C4: each node gets its share of the stock beforehand, and sells it from its own memory, with a counter and a flag for "sold out"
 * that answers without any work.
 *
 * Shows: never oversold, and no strategy refuses faster, because the flag is a variable of the process. But shares do not move. A
 * node that dies takes the rest of its share with it. A share that is larger than its node's crowd stays unsold, while the other
 * nodes refuse buyers.
 * From: the "local stock" of ticket sellers, mostly with an additional buffer against dead nodes.
 */
import { failed, type SellingRow, SOLD, SOLD_OUT } from '../parts/contract.ts';
import { RedisShop } from '../parts/redis-shop.ts';
import { script } from '../parts/script.ts';
import { PLAIN_SETTING } from '../parts/setting.ts';

/** Gives the next node its share: the stock split over the nodes; the first nodes get what does not divide. */
const CLAIM = `
local shares, stock, nodes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local node = redis.call('INCR', shares)
if node > nodes then return 0 end
return math.floor(stock / nodes) + (node <= stock % nodes and 1 or 0)
`;

export const c4: SellingRow = {
  kind: 'selling',
  id: 'C4',
  title: 'stock split over the nodes, a counter and a flag in each',
  stores: ['redis'],
  stock: 'safe',
  limit: 'not-checked',
  undersells: 'by the share of a node that dies, or that gets no more buyers',
  async open(stores, sale, { steps } = PLAIN_SETTING) {
    const shop = await RedisShop.open(stores, sale);
    let left = await script<number>(shop.redis, 1, CLAIM)(shop.key('shares'), sale.stock, sale.nodes);
    let soldOut = left === 0;
    const strategy = shop.strategy(async (buyerId, orderId) => {
      if (soldOut) return SOLD_OUT;
      left -= 1;
      soldOut = left === 0;
      await steps.at('taken');
      if (await shop.record(orderId, buyerId)) return SOLD;
      left += 1;
      soldOut = false;
      return failed('the order was refused by its store, and the unit given back');
    });
    /** The units of this node: it knows of no others. */
    return { ...strategy, left: async () => left };
  },
};
