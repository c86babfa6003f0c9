/**
 * The draw of a sale's queue, by the head, when the window opens. docs/internals/draw.md says what it proves.
 *
 *   window opens ──the entries are fixed: all numbers so far──> hashed ──the hash is stored, the seed is public──> drawn
 *
 * | the head dies | a reader sees | the next head |
 * |---|---|---|
 * | before the entries are fixed | no draw; later places are entries too | fixes them |
 * | before the hash is stored | which numbers are entries | hashes the same entries |
 * | after that | the draw | calculates the same order |
 *
 * If the window is moved to a later time before the hash is stored, the entries are not fixed any more.
 */
import { setImmediate as nextTurnOfLoop } from 'node:timers/promises';
import { type Database, rows } from '../postgres/database.ts';
import { drawInSteps, type NumbersByRank } from './draw/drawn-order.ts';
import { type Digest, EntriesHash } from './draw/entries-hash.ts';
import { entryDigest, entrySalt } from './draw/entry-digest.ts';
import type { DrawState, QueueState } from './queue-state.ts';

/** Entries that are read together. */
const PAGE_ENTRIES = 5_000;

/** The drawn order. It takes 0.5 to 0.8 s for a million places, in short steps. */
export async function orderOf(
  seed: Uint8Array,
  { entries, entriesHash }: Pick<NonNullable<DrawState['drawn']>, 'entries' | 'entriesHash'>,
): Promise<NumbersByRank> {
  const steps = drawInSteps({ seed, entriesHash, entries });
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await nextTurnOfLoop();
  }
}

/** A change of the order or of the window locks the sale's row. So each step of the draw locks it, too. */
const MAY_DRAW = "SELECT 1 FROM sales WHERE id = ? AND queue = 'draw' AND starts_at <= now() FOR SHARE";

/**
 * Draws the places of a sale whose window has opened, unless another head does it, or the sale was given another order or a later window
 * meanwhile. The draw changes the ranks, so the stored position of the head begins at 0 again.
 * @returns `undefined` if nothing was drawn
 */
export async function makeDraw(
  db: Database,
  { saleId, draw }: QueueState,
): Promise<{ readonly entries: number; readonly entriesHash: string } | undefined> {
  const [fixed] = await rows<{ entries: string }>(
    db,
    `WITH of_draw AS (${MAY_DRAW})
     UPDATE queues SET entries = coalesce(entries, last_number)
     WHERE sale_id = ? AND seed = ? AND EXISTS (SELECT 1 FROM of_draw) RETURNING entries::text`,
    [saleId, saleId, Buffer.from(draw.seed)],
  );
  if (!fixed) return undefined;
  const entries = Number(fixed.entries);
  const entriesHash = await hashEntries(db, saleId, draw.saltKey, entries);
  const drawn = await rows(
    db,
    `WITH of_draw AS (${MAY_DRAW})
     UPDATE queues SET entries_hash = ?, drawn_at = now(), head = 0, reach = 0, hopeless_from = NULL
     WHERE sale_id = ? AND seed = ? AND entries = ? AND drawn_at IS NULL AND EXISTS (SELECT 1 FROM of_draw) RETURNING 1`,
    [saleId, entriesHash, saleId, Buffer.from(draw.seed), entries],
  );
  return drawn.length > 0 ? { entries, entriesHash } : undefined;
}

async function hashEntries(
  db: Database,
  saleId: string,
  saltKey: Uint8Array,
  entries: number,
): Promise<string> {
  const hash = new EntriesHash(saleId);
  for (let after = 0; after < entries; after += PAGE_ENTRIES) {
    const last = Math.min(entries, after + PAGE_ENTRIES);
    for (const digest of await readDigests(db, saleId, saltKey, after, last)) hash.add(digest);
  }
  return hash.value();
}

/** The digests of the entries from `after` + 1 to `last`. */
export async function readDigests(
  db: Database,
  saleId: string,
  saltKey: Uint8Array,
  after: number,
  last: number,
): Promise<Digest[]> {
  const found = await rows<{ number: string; buyer_id: string; digest: string | null }>(
    db,
    'SELECT number::text, buyer_id, digest FROM places WHERE sale_id = ? AND number > ? AND number <= ?',
    [saleId, after, last],
  );
  const digests: Digest[] = new Array(last - after).fill(null);
  for (const { number, buyer_id: buyerId, digest } of found)
    digests[Number(number) - after - 1] =
      digest ?? digestOf(saltKey, { saleId, number: Number(number), buyerId });
  return digests;
}

export function digestOf(
  saltKey: Uint8Array,
  entry: { readonly saleId: string; readonly number: number; readonly buyerId: string },
): string {
  return entryDigest(entrySalt(saltKey, entry), entry);
}
