/** Changes the keys of one installation directly, past Stockade. */
import { Redis } from 'ioredis';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { asRedisAdmin } from '../postgres/least-rights.ts';

type Dump = ReadonlyMap<string, Buffer>;

export class RedisKeys implements AsyncDisposable {
  readonly redis: Redis;
  readonly #keys: Keys;

  constructor({ redisUrl, keyPrefix }: { redisUrl: string; keyPrefix: string }) {
    this.redis = new Redis(asRedisAdmin(redisUrl));
    // A command that fails says why.
    this.redis.on('error', () => {});
    this.#keys = new Keys(keyPrefix);
  }

  of(saleId: string, segment: number) {
    return this.#keys.segment({ saleId, segment });
  }

  sale(saleId: string): string {
    return this.#keys.sale(saleId);
  }

  /** The stock forgets what this buyer has bought. */
  async forgetBuyer(saleId: string, segments: number, buyerId: string): Promise<void> {
    const { buyers } = this.of(saleId, homeSegment(buyerId, segments));
    if ((await this.redis.hdel(buyers, buyerId)) !== 1)
      throw new Error(`${buyerId} has no record in ${buyers}`);
  }

  async left(saleId: string, segments: number): Promise<number> {
    let units = 0;
    for (let segment = 0; segment < segments; segment++) {
      units += Number(await this.redis.hget(this.of(saleId, segment).segment, 'left'));
    }
    return units;
  }

  /** The segments whose logs hold entries, with the ids of these entries. */
  async entries(saleId: string, segments: number): Promise<{ segment: number; ids: string[] }[]> {
    const found = [];
    for (let segment = 0; segment < segments; segment++) {
      const entries = await this.redis.xrange(this.of(saleId, segment).log, '-', '+');
      if (entries.length > 0) found.push({ segment, ids: entries.map(([id]) => id) });
    }
    return found;
  }

  async dump(keys: readonly string[]): Promise<Dump> {
    const dump = new Map<string, Buffer>();
    for (const key of keys) {
      const value = await this.redis.dumpBuffer(key);
      if (value) dump.set(key, value);
    }
    return dump;
  }

  /** Restores a dump as a server from a backup would: other keys are removed. */
  async restore(keys: readonly string[], dump: Dump): Promise<void> {
    const pipeline = this.redis.multi();
    for (const key of keys) {
      const value = dump.get(key);
      if (value) pipeline.restore(key, 0, value, 'REPLACE');
      else pipeline.del(key);
    }
    await pipeline.exec();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.redis.disconnect();
  }
}
