/**
 * For each planted bug, a seed that found it. `npm test` tries it first, which saves two thirds of the seeds. After a change of the
 * program or of the simulation, a seed is another run: then the test searches, as if none were known.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** Seeds by the bug's name. */
export type KnownSeeds = Readonly<Record<string, number>>;

const FILE = new URL('./known-seeds.json', import.meta.url);

export function readKnownSeeds(): KnownSeeds {
  return JSON.parse(readFileSync(FILE, 'utf8'));
}

export function writeKnownSeeds(known: KnownSeeds): void {
  const sorted = Object.entries(known).sort(([one], [other]) => (one < other ? -1 : 1));
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`);
}
