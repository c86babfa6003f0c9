/** How many files of code a folder holds flat, so that a reader finds the right one at a glance. */
import { readdirSync } from 'node:fs';
import { posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MAX_FLAT_FILES = 16;

/** Folders with more files, and why they are better left whole. */
const WHOLE: Readonly<Record<string, string>> = {
  'src/http/ops/console':
    'a browser asks for each file under one path, whose last segment is the name of the file',
  'catalogue/locked': 'a file for each way of selling, under its number in the catalogue',
  'test/integration/http': 'a file for each promise of the two ports; its name says which',
  'test/integration/node': 'a file for each thing that a node does or suffers; its name says which',
};

function flatFiles(top: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of readdirSync(posix.join(ROOT, top), { recursive: true, encoding: 'utf8' })) {
    if (!/\.(ts|mjs|js)$/.test(name)) continue;
    const folder = posix.dirname(posix.join(top, name.split(sep).join('/')));
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return counts;
}

describe.each(['src', 'test', 'bench', 'catalogue'])('a folder of %s', (top) => {
  const tooFull = [...flatFiles(top)].filter(([, count]) => count > MAX_FLAT_FILES).map(([folder]) => folder);
  const whole = Object.keys(WHOLE).filter((folder) => folder.startsWith(`${top}/`));

  test('holds at most 16 files flat, unless a reason is given', () => {
    expect(tooFull.filter((folder) => !whole.includes(folder))).toEqual([]);
  });

  test('has a reason only if it needs one', () => {
    expect(whole.filter((folder) => !tooFull.includes(folder))).toEqual([]);
  });
});
