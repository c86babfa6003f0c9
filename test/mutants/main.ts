/**
 * Mutation testing: do the tests notice bugs? Each mutant is a small bug, in TypeScript, Lua or SQL; the tests that reach it must
 * fail.
 *
 *   npm run mutants -- --sample 200 --json          a random sample of all three kinds
 *   npm run mutants -- --files src/sync,src/verify  mutants of two folders
 *   npm run mutants -- --only 1f0c5a7be2            one mutant again
 *
 *   mutators/   finds all mutants (find-mutants.ts): StrykerJS's for TypeScript (typescript.ts), our own for Lua and SQL
 *               (lua-mutator.ts, sql-mutator.ts), without those that are not bugs (equivalent.ts); sample.ts draws some, by a seed
 *   copies/     has the copies of the repository in which mutants are planted (trees.ts), and runs tests there (suites.ts)
 *   verdicts/   finds out by a dry run which test reaches which mutant (coverage.ts), and runs the tests that reach a mutant, the
 *               cheap ones first (judge.ts, test-plan.ts), until one fails; verdicts.ts keeps each result, so that a run that was
 *               stopped can be continued
 *   hunt.ts     calls them in turn
 *
 * StrykerJS's own runner is not used, because it does not reach code in processes that tests start, in threads, in Redis and in
 * Postgres.
 */
import { fileURLToPath } from 'node:url';
import { withoutEquivalent } from './equivalent.ts';
import { hunt } from './hunt.ts';
import type { Mutant } from './mutant.ts';
import { findMutants } from './mutators/find-mutants.ts';
import { Sample } from './mutators/sample.ts';
import { HELP, type Options, optionsFrom } from './options.ts';
import { listed, summaryOf, textOf } from './report.ts';
import { Verdicts } from './verdicts/verdicts.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Share of the planted mutants that must be killed. */
const GOOD_SCORE = 0.95;

const say = (line: string) => process.stderr.write(`${line}\n`);

async function main(options: Options): Promise<boolean> {
  const population = await findMutants(ROOT);
  const mutants = withoutEquivalent(population.mutants);
  const chosen = mutants.filter(
    ({ kind, file }) =>
      (options.kind ?? kind) === kind && options.files.some((path) => file.startsWith(path)),
  );
  if (options.list) {
    console.log(listed(chosen, options.json));
    return true;
  }
  const { only, sample, seed } = options;
  if (chosen.length === 0) throw new Error('no mutant is in these files');
  say(`${chosen.length} mutants to draw from, seed ${seed}`);
  const verdicts = only.length > 0 ? undefined : new Verdicts(ROOT);
  if (verdicts) say(`${verdicts.size} mutants of exactly this repository are judged already`);
  const drawn = only.length > 0 ? named(mutants, only) : new Sample(chosen, sample, seed);
  const summary = summaryOf(seed, await hunt(ROOT, population, drawn, say, verdicts));
  console.log(options.json ? JSON.stringify(summary) : textOf(summary));
  return only.length > 0 ? summary.survivors.length === 0 : summary.score >= GOOD_SCORE;
}

function named(mutants: readonly Mutant[], ids: readonly string[]): Mutant[] {
  return ids.map((id) => {
    const mutant = mutants.find((one) => one.id === id);
    if (!mutant) throw new Error(`no mutant has the id ${id}: the text that it replaced has changed`);
    return mutant;
  });
}

function refuse(why: string): never {
  console.error(`error: ${why}\n\n${HELP}`);
  process.exit(2);
}

function asked(): Options {
  try {
    const options = optionsFrom(process.argv.slice(2));
    if (options) return options;
  } catch (error) {
    refuse((error as Error).message);
  }
  console.log(HELP);
  process.exit(0);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
try {
  process.exit((await main(asked())) ? 0 : 1);
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exit(2);
}
