/**
 * Redis as the strategies use it: keys of the sale, and a list of its orders. The keys share a hash tag, so that a script
 * may touch several of them in a cluster too.
 *
 * The connection sends no command twice (src/redis/clients.ts): a decrement that was repeated behind the
 * strategy's back would spoil every figure here.
 */
import type { Redis } from 'ioredis';
import { connect, takeClient } from '../../src/redis/clients.ts';
import { needed, type SaleSpec, type Sell, type SoldOrder, type Stores, type Strategy } from './contract.ts';

export class RedisShop {
  readonly redis: Redis;
  /** The key of strategies that count the stock in one plain key. */
  readonly stockKey: string;
  /** Entries are `orderId buyerId`. */
  readonly ordersKey: string;
  readonly #keyPrefix: string;

  private constructor(redis: Redis, keyPrefix: string) {
    this.redis = redis;
    this.#keyPrefix = keyPrefix;
    this.stockKey = this.key('stock');
    this.ordersKey = this.key('orders');
  }

  static async open({ keyPrefix, ...stores }: Stores, { id, stock }: SaleSpec): Promise<RedisShop> {
    const redis = await connected(takeClient(needed({ keyPrefix, ...stores }, 'redis')));
    const shop = new RedisShop(redis, `${keyPrefix}{${id}}`);
    await redis.set(shop.stockKey, stock, 'NX');
    return shop;
  }

  key(name: string): string {
    return `${this.#keyPrefix}:${name}`;
  }

  async stock(): Promise<number> {
    return Number(await this.redis.get(this.stockKey));
  }

  /**
   * @returns false if Redis has refused, so that the order is surely not there
   * @throws the connection's error: then the order may be there
   */
  async record(orderId: string, buyerId: string): Promise<boolean> {
    try {
      await this.redis.rpush(this.ordersKey, encodeOrder(orderId, buyerId));
      return true;
    } catch (error) {
      if ((error as Error).name === 'ReplyError') return false;
      throw error;
    }
  }

  async sold(): Promise<SoldOrder[]> {
    return (await this.redis.lrange(this.ordersKey, 0, -1)).map(decodeOrder);
  }

  /** A strategy whose stock and orders are here. It closes `locks` when it is closed. */
  strategy(sell: Sell, locks?: { disconnect(): void }): Strategy {
    return {
      sell,
      sold: () => this.sold(),
      left: () => this.stock(),
      close: async () => {
        this.redis.disconnect();
        locks?.disconnect();
      },
    };
  }
}

/** @throws NotExecuted if the server can't be reached; nobody goes on trying then */
export async function connected(client: Redis): Promise<Redis> {
  try {
    return await connect(client);
  } catch (error) {
    client.disconnect();
    throw error;
  }
}

export function encodeOrder(orderId: string, buyerId: string): string {
  return `${orderId} ${buyerId}`;
}

export function decodeOrder(entry: string): SoldOrder {
  const [orderId, buyerId] = entry.split(' ');
  return { orderId: orderId!, buyerId: buyerId! };
}
