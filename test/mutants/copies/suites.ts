/** Runs tests in a copy of the repository: test files by vitest, or seeds of the simulation. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { SeedReport } from '../../sim/run.ts';
import type { Task } from '../../sim/seed-processes.ts';
import type { StoreUrls } from './stores.ts';

export const SIMULATION = 'test/sim/main.ts';
const SESSION = 'test/sim/session.ts';
/** Drawn seeds find most planted bugs of test/sim/planted/mutations.ts by the thirtieth. A seed takes half a second. */
const SEEDS = 30;
const RESULT = '.result.json';
const OUTPUT_CHARACTERS = 4_000;

/**
 * Tests that are never run for a mutant: those that measure, those of other parts of the repository, and slow ones that check
 * nothing more than the others. Two more read which files are loaded and which SQL is in the source: the switches disturb them.
 */
const NOT_FOR_MUTANTS =
  /\/(alone|fuzz|resize-node|overload|simulation|statements|import-directions|support-servers|mutations|mutant-\w+)\.test\.ts$/;

export interface Outcome {
  readonly passed: boolean;
  readonly timedOut: boolean;
  /** What failed, in one line; `''` if nothing did, or if it is not known. */
  readonly failure: string;
  /** The end of what it printed. */
  readonly output: string;
  readonly ms: number;
}

/** Paths from the root: unit tests first, the simulation last. */
export function testFiles(root: string): string[] {
  const files = ['unit', 'contract', 'property', 'integration']
    .map((folder) => `test/${folder}`)
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name}`,
      ),
    )
    .filter((file) => file.endsWith('.test.ts') && !NOT_FOR_MUTANTS.test(file));
  return existsSync(join(root, SIMULATION)) ? [...files, SIMULATION] : files;
}

export const needsStores = (file: string) => !file.startsWith('test/unit/') && file !== SIMULATION;

/** @param files several that need no stores, or one that may need them; `stores`: for one that does */
export function runTests(
  root: string,
  files: readonly string[],
  limitMs: number,
  stores: StoreUrls | undefined,
): Promise<Outcome> {
  if (files[0] === SIMULATION) return simulate(root, limitMs);
  return runVitest(root, files, limitMs, stores);
}

async function runVitest(
  root: string,
  files: readonly string[],
  limitMs: number,
  stores: StoreUrls | undefined,
): Promise<Outcome> {
  const result = join(root, RESULT);
  rmSync(result, { force: true });
  const program = join(root, 'node_modules/vitest/vitest.mjs');
  const args = ['run', '--config', 'test/mutants/copies/vitest.config.ts', '--outputFile', result, ...files];
  const env = { ...process.env, ...(stores && { MUTANTS_STORES: JSON.stringify(stores) }) };
  // In its own process group, so that a test that hangs is ended with everything it has started.
  const child = spawn(process.execPath, [program, ...args], {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { code, timedOut, output, ms } = await ended(child, limitMs);
  const failure = existsSync(result) ? firstFailure(readFileSync(result, 'utf8')) : '';
  return { passed: code === 0 && !timedOut, timedOut, failure, output, ms };
}

async function ended(child: ChildProcess, limitMs: number) {
  const began = performance.now();
  let output = '';
  let timedOut = false;
  const hear = (data: Buffer) => {
    output = `${output}${data}`.slice(-OUTPUT_CHARACTERS);
  };
  child.stdout?.on('data', hear);
  child.stderr?.on('data', hear);
  const killTimer = setTimeout(() => {
    timedOut = true;
    endGroup(child);
  }, limitMs);
  const end = () => endGroup(child);
  // Must happen before the folder is removed.
  process.prependOnceListener('exit', end);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  clearTimeout(killTimer);
  process.off('exit', end);
  // Ends processes of the group that the tests have left running.
  endGroup(child);
  return { code, timedOut, output, ms: performance.now() - began };
}

function endGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

interface VitestResult {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

function firstFailure(json: string): string {
  const { testResults } = JSON.parse(json) as VitestResult;
  for (const { name, status, message, assertionResults } of testResults) {
    const failed = assertionResults.find((one) => one.status === 'failed');
    const file = name.slice(name.lastIndexOf('/test/') + 1);
    if (failed) return `${file}: ${failed.fullName}: ${failed.failureMessages[0]?.split('\n')[0] ?? ''}`;
    if (status === 'failed') return `${file}: ${message.split('\n')[0]}`;
  }
  return '';
}

/** Ends at the first seed that breaks a promise. */
async function simulate(root: string, limitMs: number): Promise<Outcome> {
  const child = fork(join(root, SIMULATION), ['--child'], {
    cwd: root,
    execArgv: ['--import', 'tsx'],
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let failure = '';
  let seed = 0;
  const next = () => {
    if (++seed > SEEDS) child.disconnect();
    else child.send({ session: join(root, SESSION), seed } satisfies Task);
  };
  child.on('message', ({ violation }: SeedReport) => {
    if (violation === undefined) return next();
    failure = `the simulation, seed ${seed}: ${violation.split('\n')[0]}`;
    child.disconnect();
  });
  next();
  const { timedOut, output, ms } = await ended(child, limitMs);
  const passed = !timedOut && failure === '' && seed > SEEDS;
  return { passed, timedOut, failure: failure || (passed ? '' : 'the simulation ended'), output, ms };
}
