/**
 * The file that proves a draw: one line of JSON for the draw, then one for each entry in the drawn order.
 *
 *   {"version":1,"sale":"tickets","commitment":"…","seed":"…","entries":2,"entriesHash":"…"}
 *   {"rank":1,"number":2,"digest":"…"}
 *   {"rank":2,"number":1,"digest":null}      nobody has number 1
 *
 * Commitment, seed, hash and digests are 64 lower-case hexadecimal characters.
 */
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { MAX_ENTRIES, type NumbersByRank } from './drawn-order.ts';
import type { Digest } from './entries-hash.ts';

export const VERSION = 1;
/** Entries whose digests are read together. */
const ENTRIES_PER_READ = 1_000;
const HEX = /^[0-9a-f]{64}$/;

export interface DrawHeader {
  readonly version: number;
  readonly sale: string;
  readonly commitment: string;
  readonly seed: string;
  readonly entries: number;
  readonly entriesHash: string;
}

export interface DrawnEntry {
  readonly rank: number;
  readonly number: number;
  readonly digest: Digest;
}

/** A draw whose seed may be published. */
export interface PublishedDraw {
  readonly saleId: string;
  /** As it was published when the sale was made. */
  readonly commitment: string;
  readonly seed: Uint8Array;
  readonly entriesHash: string;
  readonly numbers: NumbersByRank;
}

/**
 * The lines of the file, without line feeds.
 * @param digestsOf the digests of up to 1,000 numbers, in the same order
 * @throws what `digestsOf` throws
 */
export async function* drawLines(
  { saleId, commitment, seed, entriesHash, numbers }: PublishedDraw,
  digestsOf: (numbers: readonly number[]) => Promise<readonly Digest[]>,
): AsyncGenerator<string> {
  const entries = numbers.array.length;
  const header: DrawHeader = {
    version: VERSION,
    sale: saleId,
    commitment,
    seed: Buffer.from(seed).toString('hex'),
    entries,
    entriesHash,
  };
  yield JSON.stringify(header);
  for (let from = 0; from < entries; from += ENTRIES_PER_READ) {
    const wanted = [...numbers.array.subarray(from, from + ENTRIES_PER_READ)];
    const digests = await digestsOf(wanted);
    for (const [i, number] of wanted.entries()) {
      const digest = digests[i];
      if (digest === undefined) throw new Error(`sale ${saleId}: no digest was read for number ${number}`);
      const entry: DrawnEntry = { rank: from + i + 1, number, digest };
      yield JSON.stringify(entry);
    }
  }
}

export function isHex(value: unknown): value is string {
  return typeof value === 'string' && HEX.test(value);
}

/** What is wrong with the header, except for its version; empty if nothing is. */
export function headerProblems({ sale, commitment, seed, entries, entriesHash }: Fields): string[] {
  const hexadecimal = Object.entries({ commitment, seed, entriesHash });
  return [
    ...(typeof sale === 'string' && SALE_ID_PATTERN.test(sale) ? [] : ["sale must be a sale's id"]),
    ...hexadecimal.filter(([, value]) => !isHex(value)).map(([name]) => `${name} must be ${HEX_FORM}`),
    ...(isWithin(entries, 0, MAX_ENTRIES) ? [] : [`entries must be a whole number from 0 to ${MAX_ENTRIES}`]),
  ];
}

/** What is wrong with the line of an entry; empty if nothing is. */
export function entryProblems({ rank, number, digest }: Fields, entries: number): string[] {
  return [
    ...(isWithin(rank, 1, entries) ? [] : [`rank must be a whole number from 1 to ${entries}`]),
    ...(isWithin(number, 1, entries) ? [] : [`number must be a whole number from 1 to ${entries}`]),
    ...(digest === null || isHex(digest) ? [] : [`digest must be null or ${HEX_FORM}`]),
  ];
}

export type Fields = Readonly<Record<string, unknown>>;

const HEX_FORM = '64 lower-case hexadecimal characters';

function isWithin(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}
