/**
 * A module for the instrumented copy of src/: all its files ask here which mutant is on. The answer is in `mutant-state.json` in
 * the root of the copy, and not in the environment, which tests don't pass on to the programs that they start.
 *
 * In a dry run no mutant is on. Instead, each process records the mutants it has reached, the files it has loaded, the scripts it
 * has sent to Redis and the functions it has called in Postgres. It writes this file at intervals, because tests kill processes.
 */
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';

/** The mutants that one process has reached. */
export interface Sighting {
  /** Names of the switches. */
  readonly switches: readonly string[];
  /** Files that were loaded. */
  readonly files: readonly string[];
  /** SHA-1 of the scripts. */
  readonly scripts: readonly string[];
  /** Names of functions in Postgres. */
  readonly functions: readonly string[];
}

export interface SwitchState {
  /** The switch of the mutant that is on. */
  readonly on?: string | undefined;
  /** The folder for the records of a dry run. */
  readonly record?: string | undefined;
}

interface StrykersNamespace {
  activeMutant?: string | undefined;
  mutantCoverage?: { static: Record<string, number> };
  /** In a dry run: records what was reached so far (record-reach.ts). */
  write?: () => void;
  /** In a dry run: records a script that a test runs without a Redis (test/support/engine/run-script.ts). */
  ran?: (script: string) => void;
}

const WRITE_EVERY_MS = 200;
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');
const files = new Set<string>();

export function loaded(file: string): void {
  files.add(file);
}

function readState(): SwitchState {
  try {
    return JSON.parse(readFileSync(new URL('../mutant-state.json', import.meta.url), 'utf8'));
  } catch {
    return {};
  }
}

const { on, record } = readState();
export const records = record !== undefined;
const place = globalThis as { __stryker__?: StrykersNamespace };
const stryker: StrykersNamespace = place.__stryker__ ?? {};
place.__stryker__ = stryker;
stryker.activeMutant = on;
if (record !== undefined) recordInto(record);

function recordInto(folder: string): void {
  const scripts = new Set<string>();
  const functions = new Set<string>();
  watchRedis(scripts);
  watchPostgres(functions);
  const path = join(folder, randomUUID());
  let written = 0;
  const write = () => {
    const switches = Object.keys(stryker.mutantCoverage?.static ?? {});
    const size = switches.length + files.size + scripts.size + functions.size;
    if (size === written) return;
    written = size;
    const seen: Sighting = { switches, files: [...files], scripts: [...scripts], functions: [...functions] };
    writeFileSync(`${path}.part`, JSON.stringify(seen));
    renameSync(`${path}.part`, `${path}.json`);
  };
  stryker.write = write;
  stryker.ran = (script) => scripts.add(sha1(script));
  process.on('exit', write);
  process.on('disconnect', write);
  setInterval(write, WRITE_EVERY_MS).unref();
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Calls `look` before each call of the method. */
function spy(prototype: object, name: string, look: (args: unknown[]) => void): void {
  const methods = prototype as Record<string, Method>;
  const real = methods[name]!;
  methods[name] = function (...args) {
    look(args);
    return real.apply(this, args);
  };
}

function watchRedis(scripts: Set<string>): void {
  spy(Redis.prototype, 'sendCommand', ([command]) => {
    const { name, args } = command as { name: string; args: unknown[] };
    if (name === 'evalsha') scripts.add(String(args[0]));
    if (name === 'eval') scripts.add(sha1(String(args[0])));
  });
}

function watchPostgres(functions: Set<string>): void {
  spy(pg.Client.prototype, 'query', ([query]) => {
    const text = typeof query === 'string' ? query : (query as { text?: string } | undefined)?.text;
    // Migrations and grants name functions that they don't call, and every test with a database runs them.
    if (text === undefined || /\bFUNCTION\b/i.test(text)) return;
    for (const [name] of text.matchAll(/\bstockade_\w+(?=\()/g)) functions.add(name);
  });
}
