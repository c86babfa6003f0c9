import { readFileSync } from 'node:fs';

/**
 * The text of a script, with the parts named by its "--include" lines inserted.
 * @param name its path below lua/, without the ending: `purchase/take`
 */
export function luaSource(name: string): string {
  const text = readFileSync(new URL(`../lua/${name}.lua`, import.meta.url), 'utf8');
  return text.replace(/--include ([\w/-]+)/g, (_, part: string) => luaSource(part));
}
