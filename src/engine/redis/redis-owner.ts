import type { RedisClient } from '../../redis/clients.ts';
import type { Owner, OwnerMark, SaleStore } from '../contract.ts';
import { corrupt, decodeCount } from './protocol/codec.ts';
import type { Keys } from './protocol/keys.ts';

/** Above every generation of a sale. */
const AFTER_ALL_GENERATIONS = 2 ** 31;

/** The mark of the owner, in the key `owner` as `identity label`. Each command may be sent twice. */
export class RedisOwner implements OwnerMark {
  readonly #redis: RedisClient;
  readonly #keys: Keys;
  readonly #sales: SaleStore;

  constructor(redis: RedisClient, keys: Keys, sales: SaleStore) {
    this.#redis = redis;
    this.#keys = keys;
    this.#sales = sales;
  }

  async read(): Promise<Owner | undefined> {
    const value = await this.#redis.get(this.#keys.owner);
    return value === null ? undefined : decode(value);
  }

  async claim(owner: Owner): Promise<Owner> {
    await this.#redis.set(this.#keys.owner, encode(owner), 'NX');
    return (await this.read()) ?? owner;
  }

  async replace(owner: Owner): Promise<void> {
    await this.#redis.set(this.#keys.owner, encode(owner));
  }

  async isUsed(): Promise<boolean> {
    return (await this.#redis.get(this.#keys.changes)) !== null;
  }

  async newestGeneration(saleId: string): Promise<number> {
    const generation = await this.#redis.hget(this.#keys.sale(saleId), 'generation');
    if (generation === null) return 0;
    const segments = await this.#sales.olderSegments({ saleId, generation: AFTER_ALL_GENERATIONS }, 0);
    return Math.max(decodeCount(generation), ...segments.map((segment) => segment.generation));
  }

  async discard(saleId: string): Promise<void> {
    await this.#sales.removeSegments({ saleId, generation: AFTER_ALL_GENERATIONS }, 0);
    await this.#redis.del(this.#keys.sale(saleId));
  }
}

const encode = ({ identity, label }: Owner) => `${identity} ${label}`;

function decode(value: string): Owner {
  const [, identity, label] = /^(\S+) (.*)/s.exec(value) ?? corrupt('the owner of this Redis is', value);
  return { identity: identity!, label: label! };
}
