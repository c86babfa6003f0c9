/** Decides whether one mutant is killed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Stores } from '../copies/stores.ts';
import { type Outcome, runTests } from '../copies/suites.ts';
import type { Tree } from '../copies/trees.ts';
import type { Mutant } from '../mutant.ts';
import type { TestGroup, TestPlan } from './test-plan.ts';

const LIMIT_FACTOR = 3;
const LIMIT_EXTRA_MS = 15_000;
const CONTROL_MS = 200_000;

/** Errors by which Postgres refuses invalid SQL, and drivers a wrong number of values. */
const NO_SQL =
  /syntax error[ ,]|operator does not exist|must be type boolean|could not determine data type|is not allowed (with|in)|there is no parameter|bind message supplies|Expected \d+ bindings|column .* does not exist|missing FROM-clause/;

/** The first option makes a check five times faster. As in StrykerJS, unused names don't make a mutant invalid. */
const COMPILER_OPTIONS = [
  ...['--incremental', '--tsBuildInfoFile', '.tsbuildinfo'],
  ...['--noUnusedLocals', 'false', '--noUnusedParameters', 'false'],
];

export type End = 'killed' | 'timed out' | 'survived' | 'invalid';

export interface Verdict {
  readonly mutant: Mutant;
  readonly end: End;
  /** The test that killed it, or the tests that it passed. */
  readonly why: string;
  readonly seconds: number;
}

export interface Setup {
  readonly instrumented: Tree;
  readonly plain: Tree;
  readonly stores: Stores;
  readonly testPlan: TestPlan;
}

/**
 * `invalid`: the compiler or Postgres refuses the text, so such a bug could not get into the program. It does not count, whatever
 * the tests say.
 */
export async function judge(setup: Setup, mutant: Mutant): Promise<Verdict> {
  const began = performance.now();
  const verdict = (end: End, why: string): Verdict => ({
    mutant,
    end,
    why,
    seconds: Math.round((performance.now() - began) / 100) / 10,
  });
  if (mutant.kind === 'ts' && !(await compiles(setup.plain, mutant)))
    return verdict('invalid', 'it does not compile');
  const groups = setup.testPlan.groupsFor(mutant);
  if (groups.length === 0) return verdict('survived', 'no test reaches it');
  const tree = mutant.kind === 'ts' ? setup.instrumented : setup.plain;
  for (const group of groups) {
    const outcome = await runGroup(setup, tree, group, mutant);
    if (outcome.passed) continue;
    const failure =
      outcome.failure || `${group.files.join(', ')}: ${outcome.output.trim().split('\n').at(-1)}`;
    if (mutant.kind === 'sql' && NO_SQL.test(failure)) return verdict('invalid', failure);
    if (mayBeNoise(outcome) && !(await isTheCause(setup, tree, group, mutant))) continue;
    return verdict(outcome.timedOut ? 'timed out' : 'killed', failure);
  }
  const files = groups.flatMap((group) => group.files);
  return verdict('survived', `it passes ${files.length === 1 ? files[0] : `${files.length} test files`}`);
}

/** The machine may be slow or the harness may have failed: the tests name no fault, or only a timeout. */
const mayBeNoise = ({ timedOut, failure }: Outcome) =>
  timedOut || failure === '' || /tim(ed|e) ?out|within|deadline|not .*after \d/i.test(failure);

/**
 * Whether the mutant makes the tests fail, and not a slow machine. The tests are run without the mutant, with a long time limit. If
 * they took longer than planned, they are run with the mutant again, with a limit that fits the time they took.
 * @throws if they fail without the mutant
 */
async function isTheCause(setup: Setup, tree: Tree, group: TestGroup, mutant: Mutant): Promise<boolean> {
  const control = await runGroup(setup, tree, { ...group, ms: CONTROL_MS }, undefined);
  if (!control.passed) {
    const what = control.failure || control.output;
    throw new Error(`${group.files.join(', ')} fails without a mutant too: ${what}`);
  }
  if (limitOf(control) <= limitOf(group)) return true;
  return !(await runGroup(setup, tree, { ...group, ms: control.ms }, mutant)).passed;
}

/** As in StrykerJS: a mutant that takes this much longer than the original is in an endless loop. */
const limitOf = ({ ms }: { readonly ms: number }) => ms * LIMIT_FACTOR + LIMIT_EXTRA_MS;

async function runGroup(
  { stores }: Setup,
  tree: Tree,
  group: TestGroup,
  mutant: Mutant | undefined,
): Promise<Outcome> {
  const urls = group.needsStores ? await stores.fresh() : undefined;
  try {
    if (mutant) tree.put(mutant);
    return await runTests(tree.root, group.files, limitOf(group), urls);
  } finally {
    tree.restore();
  }
}

async function compiles(tree: Tree, mutant: Mutant): Promise<boolean> {
  const compiler = join(tree.root, 'node_modules/typescript/bin/tsc');
  try {
    tree.putSource(mutant);
    const args = [compiler, '--noEmit', '-p', 'tsconfig.build.json', ...COMPILER_OPTIONS];
    await promisify(execFile)(process.execPath, args, {
      cwd: tree.root,
    });
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === 1 || (error as { code?: unknown }).code === 2) return false;
    throw error;
  } finally {
    tree.restore();
  }
}
