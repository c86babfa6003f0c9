/**
 * Checks that backend and database belong together, so that no process sells the stock of one shop by the data of
 * another. Each names the other: the backend has a mark with the identity of its owner (`OwnerMark`); the row of
 * `shop` has that identity, created once, and the KEY_PREFIX of its stock.
 *
 * A process claims its stores before it works on them, again each second (node/shop-watch.ts) and before each
 * rebuild, because other stores may answer at the same addresses by then. A command that works on the stores only
 * compares.
 *
 * | mark in Redis | `key_prefix` in Postgres | claim |
 * |---|---|---|
 * | this database | none, or this one | stores the prefix; continues |
 * | another database | any | refused |
 * | none, and Redis was not used (new, or emptied) | none, or this one | sets the mark unless another process was faster; then as above |
 * | none, used, and holds a sale of this database (from a version without marks) | none, or this one | sets the mark |
 * | none, used, and holds no sale of this database | any | refused. A running process sets the mark: the Redis was its own |
 * | any | another one | refused |
 * | no Redis: the stock is in this process | none | continues |
 * | no Redis | one | refused |
 *
 * A Redis without a mark may also be the wrong one, while this shop sells from another. So a process that starts and
 * finds no mark of its database first waits for the listed processes (process-list.ts). If one of them has found the
 * mark in its Redis, in a check that began after this process's own, and there is still no mark in this one, then
 * there are two. If the Redis was emptied for all, the others set the mark meanwhile, and this process joins them. A
 * stock inside a process belongs to that process alone and is handled in the same way.
 *
 * "Used" is the change counter, which is in the same slot as the mark: a cluster that loses a server loses both.
 *
 * Crash points. Between mark and prefix: the mark is this database's, and the next claim stores the prefix. Two
 * databases that find the same Redis without a mark: one sets the mark, the other reads it and is refused. Two
 * prefixes of one database: one is stored; the other process is refused, and leaves a mark of this database at an
 * unused prefix.
 *
 * adopt: an operator states that the two belong together from now on. First the backend's sales that have this
 * database's ids but belong to another one are removed, then the mark is set, then the prefix. If the process dies in
 * between, no process starts that could not before; adopt again. Sales with other ids stay, because keys can't be
 * listed; each is removed when this database creates a sale with its id.
 *
 * Not detected: a copy of a database (dump and restore, a template) has its identity, and is the same shop for Redis.
 * Two processes that start at the same time with two empty Redises, when none runs yet. A running process whose
 * REDIS_URL suddenly leads to an empty Redis: that looks like its own, emptied.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Backend, Owner, OwnerMark, Sale, SaleRecord } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { readSale, readSales, type SaleRow } from '../sales/sale-rows.ts';
import { readLooks } from './process-list.ts';

/** How many sales are searched for in a Redis without a mark, the newest ones. One match is enough. */
const MAX_SOUGHT = 1_000;
/** By then a running process has reported two more checks. */
const TOLD_MS = 6_000;
const LISTEN_EVERY_MS = 250;
/** The first reported check may have begun before ours. */
const LOOKS_SINCE = 2;
/** Digits of an identity shown in messages. */
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

interface Shop {
  readonly identity: string;
  readonly keyPrefix: string | null;
}

export interface Adoption {
  /** The owner before; `undefined`: none, or no Redis. */
  readonly before: string | undefined;
  /** The KEY_PREFIX stored before. */
  readonly keyPrefixBefore: string | undefined;
  /** Sales that were removed from Redis because they belonged to another database. */
  readonly discarded: readonly string[];
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

export class Ownership {
  readonly #db: Database;
  readonly #mark: OwnerMark | undefined;
  readonly #sales: Backend['sales'];
  readonly #names: StoreNames;
  /** The identity found by the first check. */
  #identity: string | undefined;

  constructor(db: Database, backend: Backend, names: StoreNames) {
    this.#db = db;
    this.#mark = backend.owner;
    this.#sales = backend.sales;
    this.#names = names;
  }

  /**
   * Checks that the stores belong together, or that the backend has no owner yet. Changes nothing. @throws
   * ForeignStores
   */
  async check(): Promise<void> {
    const { shop } = await this.#examine();
    this.#identity = shop.identity;
  }

  /** Checks that the stores belong together, and marks both. @throws ForeignStores */
  async claim(): Promise<void> {
    const { shop, isMarked, isKnown } = await this.#examine();
    if (!isMarked && !isKnown && this.#names.isShared) await this.#assertNotElsewhere();
    if (this.#mark && !isMarked) this.#assertOwn(await this.#mark.claim(this.#owner(shop)), shop);
    if (this.#mark && shop.keyPrefix === null) await this.#notePrefix();
    this.#identity = shop.identity;
  }

  /**
   * Call before a sale is created: removes a sale of the same id that another database has left in this backend. Runs
   * under the sale's lock, which a sync needs to build it, so that a sale created by another process meanwhile is not
   * touched.
   */
  async clear(saleId: string, locks: SaleLocks): Promise<void> {
    if (!this.#mark || !(await this.#sales.read(saleId)) || !(await locks.tryLock(saleId))) return;
    try {
      if (!(await readSale(this.#db, saleId))) await this.#mark.discard(saleId);
    } finally {
      await locks.unlock(saleId);
    }
  }

  async adopt(): Promise<Adoption> {
    const shop = await this.#readShop();
    const before = await this.#mark?.read();
    const isOwn = before?.identity === shop.identity;
    const discarded = this.#mark && !isOwn ? await this.#discardForeign(this.#mark, before) : [];
    await this.#mark?.replace(this.#owner(shop));
    const prefix = this.#mark ? this.#names.keyPrefix : null;
    await this.#db.raw('UPDATE shop SET key_prefix = ?', [prefix]);
    return {
      before: before && (isOwn ? this.#names.database : shown(before)),
      keyPrefixBefore: shop.keyPrefix ?? undefined,
      discarded,
    };
  }

  async #examine(): Promise<{ shop: Shop; isMarked: boolean; isKnown: boolean }> {
    const [shop, mark] = await Promise.all([this.#readShop(), this.#mark?.read()]);
    const isKnown = this.#identity === shop.identity;
    if (this.#identity !== undefined && !isKnown) throw this.#otherDatabase(shop);
    if (mark) this.#assertOwn(mark, shop);
    this.#assertPrefix(shop);
    if (this.#mark && !mark && !isKnown) await this.#assertFree(this.#mark);
    return { shop, isMarked: mark !== undefined, isKnown };
  }

  async #readShop(): Promise<Shop> {
    const [shop] = await rows<Shop>(this.#db, 'SELECT identity, key_prefix AS "keyPrefix" FROM shop');
    if (shop) return shop;
    throw new StockadeError(
      'no_identity',
      `the table shop of ${this.#names.database} has no row: restore it from a backup`,
    );
  }

  async #notePrefix(): Promise<void> {
    await this.#db.raw('UPDATE shop SET key_prefix = ? WHERE key_prefix IS NULL', [this.#names.keyPrefix]);
    this.#assertPrefix(await this.#readShop());
  }

  #owner({ identity }: Shop): Owner {
    return { identity, label: this.#names.database };
  }

  #assertOwn(mark: Owner, shop: Shop): void {
    if (mark.identity === shop.identity) return;
    throw new ForeignStores(
      `${this.#here} belongs to the database ${shown(mark)}, and this is ${shown(this.#owner(shop))}`,
      'Correct DATABASE_URL, REDIS_URL or KEY_PREFIX',
    );
  }

  #assertPrefix({ keyPrefix }: Shop): void {
    const { redis, database } = this.#names;
    if (keyPrefix === null || (redis !== undefined && keyPrefix === this.#names.keyPrefix)) return;
    const noted = `the stock of the database ${database} is in a Redis, under KEY_PREFIX ${keyPrefix}`;
    if (redis === undefined) {
      throw new ForeignStores(`${noted}, and REDIS_URL is not set`, 'Set REDIS_URL, or correct DATABASE_URL');
    }
    const todo = `Set KEY_PREFIX to ${keyPrefix}, or correct DATABASE_URL`;
    throw new ForeignStores(`${noted}, and KEY_PREFIX is ${this.#names.keyPrefix}`, todo);
  }

  /** Without an owner, or this database's from a version without marks. */
  async #assertFree(mark: OwnerMark): Promise<void> {
    if (!(await mark.isUsed()) || (await this.#holdsOwnSale())) return;
    throw new ForeignStores(
      `${this.#here} has no owner yet and holds sales, and none of them is of the database ${this.#names.database}`,
      'Correct DATABASE_URL, REDIS_URL or KEY_PREFIX',
    );
  }

  /** Waits until the listed processes have checked again, or have died. */
  async #assertNotElsewhere(): Promise<void> {
    const began = monotonicMs();
    const before = await readLooks(this.#db);
    while (before.size > 0 && monotonicMs() - began < TOLD_MS) {
      await delay(LISTEN_EVERY_MS);
      const now = await readLooks(this.#db);
      const isListed = [...before.keys()].some((process) => now.has(process));
      const other = [...now].find(
        ([process, looks]) => looks >= (before.get(process) ?? Infinity) + LOOKS_SINCE,
      );
      // Read after the others' checks, so that a mark of theirs is seen.
      if (!isListed || (await this.#mark?.read())) return;
      if (other) throw this.#elsewhere(other[0]);
    }
  }

  #elsewhere(process: string): ForeignStores {
    const { redis, database } = this.#names;
    const own = redis === undefined ? 'REDIS_URL is not set' : `${this.#here} holds nothing of it`;
    return new ForeignStores(
      `the process ${process} sells the stock of the database ${database} from another store, and ${own}`,
      redis === undefined
        ? 'Set REDIS_URL for both, or stop the other one'
        : 'Correct REDIS_URL or DATABASE_URL',
    );
  }

  async #holdsOwnSale(): Promise<boolean> {
    for (const row of await readSales(this.#db, { built: true, limit: MAX_SOUGHT })) {
      const record = await this.#sales.read(row.sale.id);
      if (record && isOwnRecord(record, row)) return true;
    }
    return false;
  }

  /** Orders in the logs of another database's sales must not be salvaged into this one. */
  async #discardForeign(mark: OwnerMark, before: Owner | undefined): Promise<string[]> {
    const discarded: string[] = [];
    for (const row of await readSales(this.#db)) {
      const record = await this.#sales.read(row.sale.id);
      // If the backend had no owner, segments without a record may be this database's.
      if (record ? isOwnRecord(record, row) : before === undefined) continue;
      await mark.discard(row.sale.id);
      if (record) discarded.push(row.sale.id);
    }
    return discarded;
  }

  #otherDatabase(shop: Shop): ForeignStores {
    return new ForeignStores(
      `the database ${this.#names.database} was shop ${digits(this.#identity!)} when this process began, and is ${digits(shop.identity)} now`,
      'Another database answers at DATABASE_URL: correct that',
    );
  }

  get #here(): string {
    return `the Redis ${this.#names.redis} with KEY_PREFIX ${this.#names.keyPrefix}`;
  }
}

const digits = (identity: string) => identity.slice(0, SHOWN_DIGITS);
const shown = ({ identity, label }: Owner) => `${label} (shop ${digits(identity)})`;

/**
 * Two databases may have sales with the same id. The record is this database's if its definition matches and its
 * generation is not ahead.
 */
function isOwnRecord(record: SaleRecord, { sale, generation }: SaleRow): boolean {
  return record.generation <= generation && isDeepStrictEqual(fixed(record.sale), fixed(sale));
}

/** The part of a sale that no pending change affects, except for the start, which tells sales apart. */
function fixed(sale: Sale): Record<string, unknown> {
  const { segments, endsAt, requireToken, ...rest } = sale;
  return JSON.parse(JSON.stringify(rest));
}
