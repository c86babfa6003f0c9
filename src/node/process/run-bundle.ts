/**
 * Runs a program from its bundle (scripts/bundle.mjs). To compile the bundles would take a third of a start. So each has a code cache
 * beside it: what V8 makes of it, written when Stockade is built (docs/decisions/0020-bundled-programs.md).
 *
 * V8 takes a cache only if the cache has its own version and flags; otherwise it compiles the bundle. It does not compare the
 * text, so that is done here.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { importModule } from './import-module.ts';

interface BundleModule {
  exports: unknown;
  /** In a script with a code cache, `import()` fails. */
  readonly importModule: typeof importModule;
}

type Run = (
  exports: unknown,
  require: (id: string) => unknown,
  module: BundleModule,
  file: string,
  folder: string,
) => void;

const DIGEST_BYTES = 32;
const BUILT_FOR = `${process.version} ${process.arch}`;

const modules = new Map<string, BundleModule>();

function cacheOf(file: string): string {
  return `${file}.cache`;
}

/** The digest of a bundle, with which its cache begins. */
function digest(text: Buffer): Buffer {
  return createHash('sha256').update(BUILT_FOR).update(text).digest();
}

/** Runs a CommonJS module, and the bundles that it requires, each once in a thread. */
export function runBundle(url: URL): void {
  const file = fileURLToPath(url);
  // Only Node's own loader reads source maps. Without caches, as in a package from a registry, it also knows NODE_COMPILE_CACHE.
  if (process.sourceMapsEnabled || !existsSync(cacheOf(file))) createRequire(file)(file);
  else exportsOf(file);
}

function exportsOf(file: string): unknown {
  const known = modules.get(file);
  if (known) return known.exports;
  const module = { exports: {}, importModule };
  modules.set(file, module);
  const text = readFileSync(file);
  const script = compiled(file, text, storedCache(file, text));
  const run: Run = script.runInThisContext();
  const folder = dirname(file);
  const require = createRequire(file);
  const requireHere = (id: string) => (id.startsWith('.') ? exportsOf(join(folder, id)) : require(id));
  run(module.exports, Object.assign(requireHere, require), module, file, folder);
  return module.exports;
}

function compiled(file: string, text: Buffer, cachedData?: Buffer): Script {
  const source = Module.wrap(text.toString('latin1'));
  return new Script(source, { filename: file, ...(cachedData && { cachedData }) });
}

/** `undefined` if the bundle was changed later. */
function storedCache(file: string, text: Buffer): Buffer | undefined {
  const stored = readFileSync(cacheOf(file));
  return digest(text).equals(stored.subarray(0, DIGEST_BYTES)) ? stored.subarray(DIGEST_BYTES) : undefined;
}

/** For the build. @param files bundles, in ASCII: Latin-1 is read in a fifth of the time */
export function writeCaches(files: readonly string[]): void {
  // By default V8 compiles a function when it is called first: the cache would lack most of them.
  setFlagsFromString('--no-lazy');
  const scripts = files.map((file) => {
    const text = readFileSync(file);
    return { file, text, script: compiled(file, text) };
  });
  // A cache has the flags that are set when it is made.
  setFlagsFromString('--lazy');
  for (const { file, text, script } of scripts)
    writeFileSync(cacheOf(file), Buffer.concat([digest(text), script.createCachedData()]));
}
