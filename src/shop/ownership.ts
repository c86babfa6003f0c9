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
 * mark in its Redis, in a check that began after this process's own, and this process still finds none, then they use
 * different Redises: this process does not start. If their common Redis was emptied, the others set the mark meanwhile, and
 * this process joins them. A stock inside a process belongs to that process alone and is handled in the same way.
 *
 * Redis was "used" if it has the change counter. Counter and mark are in the same slot: a cluster that loses a server
 * loses both or none.
 *
 * Crash points. Between mark and prefix: the mark is this database's, and the next claim stores the prefix. Two
 * databases that find the same Redis without a mark: one sets the mark, the other reads it and is refused. Two
 * prefixes of one database: one is stored; the other process is refused, and leaves a mark of this database at an
 * unused prefix.
 *
 * adopt: an operator states that the two belong together from now on. First the backend's sales that have this
 * database's ids but belong to another one are removed, then the mark is set, then the prefix. If the process dies in
 * between, the stores may still not belong together, and processes are refused as before: adopt again. Sales with other
 * ids stay, because keys can't be listed; each is removed when this database creates a sale with its id.
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
import { readSale, readSales, type SaleRow } from '../sales/sale-rows.ts';
import {
  foreignSales,
  otherDatabase,
  otherOwner,
  otherPrefix,
  type StoreNames,
  shown,
  stockElsewhere,
} from './foreign-stores.ts';
import { readChecks } from './process-list.ts';

/** How many sales, the newest, are searched for in a Redis without a mark. One match is enough. */
const MAX_SEARCHED_SALES = 1_000;
/** Within this time a running process has reported two more checks. */
const REPORTS_MS = 6_000;
const READ_EVERY_MS = 250;
/** Two, because the first check that is reported may have begun before this process's own. */
const CHECKS_SINCE = 2;

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
   * Checks that the stores belong together, or that the backend has no owner yet. Changes nothing.
   * @throws ForeignStores
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
   * Call before a sale is created: removes a sale of the same id that another database has left in this backend. The caller
   * holds the sale's lock: so no other process creates the sale meanwhile, or builds it. The lock may be lost before the removal
   * arrives. So it concerns earlier generations only, and the new sale begins after them.
   * @returns the generation after which the sale must begin; 0 if there is nothing of such a sale
   */
  async discardLeftover(saleId: string): Promise<number> {
    const newest = (await this.#mark?.newestGeneration(saleId)) ?? 0;
    if (newest === 0 || (await readSale(this.#db, saleId))) return 0;
    if (!(await this.#sales.read(saleId))) return newest;
    await this.#sales.archive({ saleId, generation: newest + 1 });
    return newest + 1;
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
    if (this.#identity !== undefined && !isKnown)
      throw otherDatabase(this.#names, this.#identity, shop.identity);
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
    if (mark.identity !== shop.identity) throw otherOwner(this.#names, this.#owner(shop), mark);
  }

  #assertPrefix({ keyPrefix }: Shop): void {
    const { redis, keyPrefix: own } = this.#names;
    if (keyPrefix !== null && (redis === undefined || keyPrefix !== own))
      throw otherPrefix(this.#names, keyPrefix);
  }

  /** The backend has no owner: it was never used, or holds sales of this database from a version without marks. */
  async #assertFree(mark: OwnerMark): Promise<void> {
    if ((await mark.isUsed()) && !(await this.#holdsOwnSale())) throw foreignSales(this.#names);
  }

  /** Waits until the listed processes have checked again, or have died. */
  async #assertNotElsewhere(): Promise<void> {
    const began = monotonicMs();
    const before = await readChecks(this.#db);
    while (before.size > 0 && monotonicMs() - began < REPORTS_MS) {
      await delay(READ_EVERY_MS);
      const now = await readChecks(this.#db);
      const isListed = [...before.keys()].some((process) => now.has(process));
      const other = [...now].find(
        ([process, checks]) => checks >= (before.get(process) ?? Infinity) + CHECKS_SINCE,
      );
      // Read after the others' checks, so that a mark of theirs is seen.
      if (!isListed || (await this.#mark?.read())) return;
      if (other) throw stockElsewhere(this.#names, other[0]);
    }
  }

  async #holdsOwnSale(): Promise<boolean> {
    for (const row of await readSales(this.#db, { built: true, limit: MAX_SEARCHED_SALES })) {
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
}

/**
 * Two databases may have sales with the same id. The record is this database's if its definition matches and its
 * generation is not ahead.
 */
function isOwnRecord(record: SaleRecord, { sale, generation }: SaleRow): boolean {
  return record.generation <= generation && isDeepStrictEqual(fixed(record.sale), fixed(sale));
}

/**
 * The part of a sale in which record and row are the same, even while a change is not applied yet. The start is compared all the
 * same, because it tells apart sales that are otherwise alike.
 */
function fixed(sale: Sale): Record<string, unknown> {
  const { segments, endsAt, requireToken, ...rest } = sale;
  return JSON.parse(JSON.stringify(rest));
}
