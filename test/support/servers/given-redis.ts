/** A Redis that the tests did not start: the one of `TEST_REDIS_URL`. It must be empty, and is empty again afterwards. */
import { Redis } from 'ioredis';
import { redisAddress } from '../../../src/redis/redis-address.ts';

export class GivenRedis implements AsyncDisposable {
  readonly productUrl: string;
  readonly #client: Redis;

  private constructor(url: string, client: Redis) {
    this.productUrl = url;
    this.#client = client;
  }

  /** @throws if it can't be reached, or holds anything */
  static async claim(url: string): Promise<GivenRedis> {
    const { url: address, tls } = redisAddress(url);
    const client = new Redis(address, { ...(tls && { tls }), lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => {});
    try {
      await client.connect();
      const keys = await client.dbsize();
      if (keys > 0) throw new Error(`it holds ${keys} keys: tests only use an empty one`);
    } catch (error) {
      client.disconnect();
      throw new Error(`TEST_REDIS_URL is refused: ${(error as Error).message}`, { cause: error });
    }
    return new GivenRedis(url, client);
  }

  /** Removes what the tests have left: their keys only, in case that another program began to use it. */
  async [Symbol.asyncDispose](): Promise<void> {
    for await (const keys of this.#client.scanStream({ match: 'stockade:t*', count: 1_000 })) {
      if (keys.length > 0) await this.#client.unlink(...(keys as string[]));
    }
    this.#client.disconnect();
  }
}
