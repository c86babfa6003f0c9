/** Plants mutants one after another, not side by side: tests have deadlines, and would slow each other down. */

import { Stores } from './copies/stores.ts';
import type { Outcome } from './copies/suites.ts';
import { Tree } from './copies/trees.ts';
import type { Mutant } from './mutant.ts';
import type { Population } from './mutators/find-mutants.ts';
import { lineOf } from './report.ts';
import { reachOfTests } from './verdicts/coverage.ts';
import { judge, type Setup, type Verdict } from './verdicts/judge.ts';
import { TestPlan } from './verdicts/test-plan.ts';
import type { Verdicts } from './verdicts/verdicts.ts';

export type Draw = Iterable<Mutant, void, 'again' | undefined>;

/**
 * @param root of the repository, ending in a slash
 * @param say is called with each step
 * @param verdicts of earlier runs, whose mutants are not planted again; new ones are added
 */
export async function hunt(
  root: string,
  { instrumented: files, mutants }: Population,
  draw: Draw,
  say: (line: string) => void,
  verdicts?: Verdicts,
): Promise<Verdict[]> {
  const trees: Tree[] = [];
  const fellAll = () => {
    for (const tree of trees) tree.fell();
  };
  process.once('exit', fellAll);
  await using stores = new Stores();
  try {
    const instrumented = await Tree.instrumented(root, files);
    trees.push(instrumented);
    const plain = await Tree.plain(root);
    trees.push(plain);
    const reaches = await reachOfTests(root, instrumented, stores, (file, number, count, outcome) =>
      say(`dry run ${number} of ${count}: ${file} ${told(outcome)}`),
    );
    const setup = { instrumented, plain, stores, testPlan: await TestPlan.build(root, mutants, reaches) };
    return await judgeAll(setup, draw, say, verdicts);
  } finally {
    fellAll();
    process.off('exit', fellAll);
  }
}

function told({ passed, ms, failure, output }: Outcome): string {
  const time = `(${(ms / 1e3).toFixed(1)} s)`;
  return passed ? `passes ${time}` : `FAILS and is left out ${time}\n${failure || output}`;
}

async function judgeAll(
  setup: Setup,
  draw: Draw,
  say: (line: string) => void,
  known: Verdicts | undefined,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  const mutants = draw[Symbol.iterator]();
  for (let next = mutants.next(); !next.done; ) {
    const earlier = known?.of(next.value);
    const verdict = earlier ?? (await judge(setup, next.value));
    // A test that was left out may kill it.
    if (!earlier && (setup.testPlan.isWhole || verdict.end !== 'survived')) known?.keep(verdict);
    verdicts.push(verdict);
    say(lineOf(verdict, verdicts.length));
    next = mutants.next(verdict.end === 'invalid' ? 'again' : undefined);
  }
  return verdicts;
}
