/** The error that backend and database do not belong together, and what it tells the operator in each case. */
import type { Owner } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';

/** Digits of an identity that messages show. */
const SHOWN_DIGITS = 8;

/** The stores' addresses, without passwords. */
export interface StoreNames {
  /** `undefined`: the stock is in this process. */
  readonly redis: string | undefined;
  readonly keyPrefix: string;
  readonly database: string;
  /** Whether other processes can work with the same database. */
  readonly isShared: boolean;
}

/** The stores do not belong together. Nothing was changed. */
export class ForeignStores extends StockadeError {
  constructor(what: string, todo: string) {
    super(
      'foreign_stores',
      `${what}. ${todo}. If the two are to belong together from now on: stop all processes that use either, and run \`stockade recover --adopt\` with these settings`,
    );
  }
}

/** @param shop the owner that this database is @param mark the owner that the backend names */
export function otherOwner(names: StoreNames, shop: Owner, mark: Owner): ForeignStores {
  return new ForeignStores(
    `${redisOf(names)} belongs to the database ${shown(mark)}, and this is ${shown(shop)}`,
    'Correct DATABASE_URL, REDIS_URL or KEY_PREFIX',
  );
}

/** @param stored the KEY_PREFIX that the database names */
export function otherPrefix({ redis, keyPrefix, database }: StoreNames, stored: string): ForeignStores {
  const found = `the stock of the database ${database} is in a Redis, under KEY_PREFIX ${stored}`;
  return redis === undefined
    ? new ForeignStores(`${found}, and REDIS_URL is not set`, 'Set REDIS_URL, or correct DATABASE_URL')
    : new ForeignStores(
        `${found}, and KEY_PREFIX is ${keyPrefix}`,
        `Set KEY_PREFIX to ${stored}, or correct DATABASE_URL`,
      );
}

export function foreignSales(names: StoreNames): ForeignStores {
  return new ForeignStores(
    `${redisOf(names)} has no owner yet and holds sales, and none of them is of the database ${names.database}`,
    'Correct DATABASE_URL, REDIS_URL or KEY_PREFIX',
  );
}

/** @param process the one that has found the mark of this database in its Redis */
export function stockElsewhere(names: StoreNames, process: string): ForeignStores {
  const { redis, database } = names;
  const own = redis === undefined ? 'REDIS_URL is not set' : `${redisOf(names)} holds nothing of it`;
  return new ForeignStores(
    `the process ${process} sells the stock of the database ${database} from another store, and ${own}`,
    redis === undefined
      ? 'Set REDIS_URL for both, or stop the other one'
      : 'Correct REDIS_URL or DATABASE_URL',
  );
}

/** @param before the identity of the database when this process began */
export function otherDatabase(names: StoreNames, before: string, now: string): ForeignStores {
  return new ForeignStores(
    `the database ${names.database} was shop ${digits(before)} when this process began, and is ${digits(now)} now`,
    'Another database answers at DATABASE_URL: correct that',
  );
}

export const shown = ({ identity, label }: Owner) => `${label} (shop ${digits(identity)})`;
const digits = (identity: string) => identity.slice(0, SHOWN_DIGITS);

function redisOf({ redis, keyPrefix }: StoreNames): string {
  return `the Redis ${redis} with KEY_PREFIX ${keyPrefix}`;
}
