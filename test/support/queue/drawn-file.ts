/** Draws with made-up buyers, and their files. */

import { drawLines, type PublishedDraw } from '../../../src/queue/draw/draw-file.ts';
import { draw } from '../../../src/queue/draw/drawn-order.ts';
import { type Digest, EntriesHash } from '../../../src/queue/draw/entries-hash.ts';
import { entryDigest, entrySalt } from '../../../src/queue/draw/entry-digest.ts';
import { commitmentOf, SEED_BYTES } from '../../../src/queue/draw/seed.ts';
import { random } from '../random.ts';

export interface MadeDraw extends PublishedDraw {
  /** The digest of number 1 at index 0, and so on. */
  readonly digests: readonly Digest[];
}

/** @param vacant numbers that nobody has */
export function madeDraw(seed: number, entries: number, vacant: readonly number[] = []): MadeDraw {
  const { whole } = random(seed);
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => whole(0, 255));
  const [drawSeed, saltKey] = [bytes(SEED_BYTES), bytes(32)];
  const saleId = `sale-${seed}`;
  const digests = Array.from({ length: entries }, (_, i) => {
    const entry = { saleId, number: i + 1, buyerId: `buyer-${whole(0, 1e9)}` };
    return vacant.includes(entry.number) ? null : entryDigest(entrySalt(saltKey, entry), entry);
  });
  const hash = new EntriesHash(saleId);
  for (const digest of digests) hash.add(digest);
  const entriesHash = hash.value();
  const numbers = draw({ seed: drawSeed, entriesHash, entries });
  return { saleId, commitment: commitmentOf(drawSeed), seed: drawSeed, entriesHash, numbers, digests };
}

/** The lines of the draw's file. */
export async function linesOf(made: MadeDraw): Promise<string[]> {
  const digestsOf = async (numbers: readonly number[]) => numbers.map((number) => made.digests[number - 1]!);
  const lines: string[] = [];
  for await (const line of drawLines(made, digestsOf)) lines.push(line);
  return lines;
}
