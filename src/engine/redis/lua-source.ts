import { readFileSync } from 'node:fs';

/** A script, with the parts that it names in lines of "--include". */
export function luaSource(name: string): string {
  const text = readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
  return text.replace(/--include ([\w-]+)/g, (_, part: string) => luaSource(part));
}
