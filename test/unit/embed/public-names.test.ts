/** A program that embeds a shop can name everything that the shop's methods take, return and throw. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (file: string) => readFileSync(new URL(`../../../src/${file}`, import.meta.url), 'utf8');
const exported = new Set(read('index.ts').match(/\w+/g));
/** `PurchaseOutcome`, which is exported, is made from it. */
const INTERNAL = ['Outcome'];

test.each(['embed/shop.ts', 'embed/shop-places.ts'])(
  'src/index.ts exports the types and errors of %s',
  (file) => {
    const text = read(file);
    const imported = [...text.matchAll(/^import type \{ ([^}]+) \}/gm)].flatMap(([, names]) =>
      names!.split(', '),
    );
    const own = [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name!);
    // Up to the end of the line, of the comment or of the sentence.
    const errors = [...text.matchAll(/@throws ([^;.*\n]+)/g)].flatMap(
      ([, names]) => names!.match(/\b[A-Z][a-z]\w+/g) ?? [],
    );
    expect(imported.length + errors.length).toBeGreaterThan(1);
    const names = [...imported, ...own, ...errors].filter((name) => !INTERNAL.includes(name));
    expect(names.filter((name) => !exported.has(name))).toEqual([]);
  },
);
