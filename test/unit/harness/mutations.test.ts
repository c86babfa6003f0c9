/** The bugs that the simulation plants (test/sim/planted/mutations.ts): each edit must find its place in the source of today. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { MUTATIONS } from '../../sim/planted/mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test.each(MUTATIONS.map((mutation) => [mutation.name, mutation] as const))('%s', (_name, { edits }) => {
  const counts = edits.map(({ file, find }) => readFileSync(`${ROOT}${file}`, 'utf8').split(find).length - 1);
  expect(counts).toEqual(edits.map(() => 1));
});
