/**
 * Which backend and which database belong together, so that no process sells from the stock of one shop by the books of
 * another. Each names the other: the backend has a mark with the identity of its owner (`OwnerMark`), and the row of `shop`
 * has that identity, made once, and the KEY_PREFIX under which its stock is.
 *
 * A process claims its stores before it works on them, and again each second (node/ownership-watch.ts) and before each rebuild,
 * as both may be others behind the same names by then. A command that works on the stores only compares.
 *
 * | mark in Redis | `key_prefix` in Postgres | claim |
 * |---|---|---|
 * | this database | none, or this one | notes the prefix; goes on |
 * | another database | any | refused |
 * | none, and Redis was not used (new, or emptied) | none, or this one | marks it, if nobody was faster; then as above |
 * | none, used, and holds a sale of this database (from a version without marks) | none, or this one | marks it |
 * | none, used, and holds no sale of this database | any | refused. A process that runs marks it: it was its own |
 * | any | another one | refused |
 * | no Redis: the stock is in this process | none | goes on |
 * | no Redis | one | refused |
 *
 * A Redis that is free to be marked may also be the wrong one, while this shop sells from another. So a process that starts and
 * finds none of its database's marks first waits for the processes that are listed (process-list.ts): if one of them has found
 * the mark in its Redis since, in a look that began after this process' own, and there is still none in this one, they are two. If
 * they were emptied together, the others mark it meanwhile, and this process joins them. A stock inside the process is
 * another process' alone in the same way.
 *
 * "Used" is the count of changes, which lies in the same slot as the mark: a cluster that loses a server loses both.
 *
 * Crash points. Between mark and note: the mark is this database's, and the next claim notes the prefix. Two databases that
 * find the same Redis unmarked: one of them sets the mark, the other reads it and is refused. Two prefixes of one database: one is
 * noted; the other process is refused, and leaves a mark of this database at a prefix where nothing is.
 *
 * adopt: an operator says that the two belong together from now on. Sales of this database that the backend has from another one
 * go, then the mark is set, then the prefix. If it dies in between, nothing starts that did not before; adopt again. Those of
 * other names stay, as keys can't be listed; each goes when this database creates a sale of its name.
 *
 * Not found: a copy of a database (dump and restore, a template) has its identity, and is the same shop to its Redis. Two
 * processes that start at once on two Redises that are both empty, when none runs yet. A process that runs and whose REDIS_URL
 * leads to an empty Redis all of a sudden: it can't tell that from its own, emptied.
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

/** Sales that are looked for in a Redis without a mark: the newest ones that were built. One that is found is enough. */
const MAX_SOUGHT = 1_000;
/** A process that runs has told of two more looks by then. */
const TOLD_MS = 6_000;
const LISTEN_EVERY_MS = 250;
/** The first look that is told of may have begun before ours. */
const LOOKS_SINCE = 2;
/** Of an identity, in messages. */
const SHOWN_DIGITS = 8;

/** The stores in words, without passwords. */
export interface StoreNames {
  /** `undefined`: in this process. */
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
  /** Whose the Redis was; `undefined`: nobody's, or there is none. */
  readonly before: string | undefined;
  /** KEY_PREFIX that this database has noted before. */
  readonly keyPrefixBefore: string | undefined;
  /** Sales that were removed from Redis, as they were another database's. */
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
  /** Of the database that was found first. */
  #identity: string | undefined;

  constructor(db: Database, backend: Backend, names: StoreNames) {
    this.#db = db;
    this.#mark = backend.owner;
    this.#sales = backend.sales;
    this.#names = names;
  }

  /** Whether they belong together, or nobody has claimed the backend yet. Changes nothing. @throws ForeignStores */
  async check(): Promise<void> {
    const { shop } = await this.#examine();
    this.#identity = shop.identity;
  }

  /** Sees that they belong together, and says so in both. @throws ForeignStores */
  async claim(): Promise<void> {
    const { shop, isMarked, isKnown } = await this.#examine();
    if (!isMarked && !isKnown && this.#names.isShared) await this.#assertNotElsewhere();
    if (this.#mark && !isMarked) this.#assertOwn(await this.#mark.claim(this.#owner(shop)), shop);
    if (this.#mark && shop.keyPrefix === null) await this.#notePrefix();
    this.#identity = shop.identity;
  }

  /**
   * Before a sale is created: what the backend has under its name is another database's that had this backend before. Under the
   * sale's lock, which a sync needs to build it: a sale that somebody else creates meanwhile is not touched.
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

  /** Nobody's, or this database's from before there were marks. */
  async #assertFree(mark: OwnerMark): Promise<void> {
    if (!(await mark.isUsed()) || (await this.#holdsOwnSale())) return;
    throw new ForeignStores(
      `${this.#here} has no owner yet and holds sales, and none of them is of the database ${this.#names.database}`,
      'Correct DATABASE_URL, REDIS_URL or KEY_PREFIX',
    );
  }

  /** Waits until the processes that are listed have looked again, or have died. */
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
      // Behind the look of the others: what they have marked by then is seen.
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
    const built = (await readSales(this.#db)).filter(({ generation }) => generation > 0);
    for (const row of built.slice(0, MAX_SOUGHT)) {
      const record = await this.#sales.read(row.sale.id);
      if (record && isOwnRecord(record, row)) return true;
    }
    return false;
  }

  /** What is in the logs of another database's sales must not be saved into this one. */
  async #discardForeign(mark: OwnerMark, before: Owner | undefined): Promise<string[]> {
    const discarded: string[] = [];
    for (const row of await readSales(this.#db)) {
      const record = await this.#sales.read(row.sale.id);
      // Nobody's segments without a record may be this database's.
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

/** Two databases may have sales of one name: it is this one's if it was defined as that is, and is not ahead of it. */
function isOwnRecord(record: SaleRecord, { sale, generation }: SaleRow): boolean {
  return record.generation <= generation && isDeepStrictEqual(fixed(record.sale), fixed(sale));
}

/** What no change of a sale touches that may be on its way to the backend, but for the start: it tells sales apart. */
function fixed(sale: Sale): Record<string, unknown> {
  const { segments, endsAt, requireToken, ...rest } = sale;
  return JSON.parse(JSON.stringify(rest));
}
