/** What everybody may know of the draw of a sale: before it, what the shop is bound to; after it, what is needed to repeat it. */
import { LRUCache } from 'lru-cache';
import type { Database } from '../../postgres/database.ts';
import { commitmentOf } from '../draw/seed.ts';
import { readQueue } from '../queue-state.ts';

export interface DrawFacts {
  /** SHA-256 of the seed, as 64 hexadecimal characters. Public from the beginning. */
  readonly commitment: string;
  /** The rest is public when the draw has been. */
  readonly drawn?:
    | {
        /** The seed's 32 bytes, as 64 hexadecimal characters. */
        readonly seed: string;
        /** How many places took part. */
        readonly entries: number;
        readonly entriesHash: string;
      }
    | undefined;
}

/** Many ask for the same sale, so what was read is kept for a moment. */
const KEPT_MS = 1_000;
const MAX_KEPT = 1_000;

export class DrawReads {
  readonly #kept: LRUCache<string, DrawFacts>;

  constructor(db: Database) {
    this.#kept = new LRUCache<string, DrawFacts>({
      max: MAX_KEPT,
      ttl: KEPT_MS,
      ignoreFetchAbort: true,
      fetchMethod: (saleId) => readDraw(db, saleId),
    });
  }

  /** @returns `undefined` for a sale that never had a queue. @throws the database's error */
  read(saleId: string): Promise<DrawFacts | undefined> {
    return this.#kept.fetch(saleId);
  }
}

async function readDraw(db: Database, saleId: string): Promise<DrawFacts | undefined> {
  const state = await readQueue(db, saleId);
  if (!state) return undefined;
  const { seed, drawn } = state.draw;
  return {
    commitment: commitmentOf(seed),
    drawn: drawn && {
      seed: Buffer.from(seed).toString('hex'),
      entries: drawn.entries,
      entriesHash: drawn.entriesHash,
    },
  };
}
