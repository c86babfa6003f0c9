/**
 * The simulation: a whole installation in one process, on a virtual clock, with seeded randomness and faults.
 *
 *   npm run sim -- --seeds 1000              many seeds, in two processes; exit code 1 if a promise is broken
 *   npm run sim -- --seed 42 --trace         one seed, step by step
 *   npm run sim -- --conditions payDay       each seed under these conditions (plan/conditions.ts)
 *   npm run sim -- --mutations               plants bugs in copies of the source, and looks for each
 *
 * Real: the product's engine, lanes, board, directory, sync, expiry, services, SQL and Lua, and the clients of both stores
 * (ioredis, pg, knex), which means everything above the sockets. Simulated: the clocks and timers, the network (both in
 * machines/), the servers behind it, and crashes. The simulated Redis is a few commands on plain values; a Lua interpreter runs
 * the product's scripts (redis/). The simulated Postgres is PGlite behind simulated sessions; it executes transactions one after
 * another (postgres/).
 *
 *   seed -> scenario (plan/) -> nodes (machines/), buyers and operators (people/, queue/), faults (faults/)
 *        -> after each event the auditor checks both stores (audit/) -> calm -> the finale (ending/)
 *
 * planted/ has the bugs that the simulation must find.
 *
 * A seed always gives the same events in the same order, so nothing here may depend on the real clock or on chance.
 * docs/internals/simulation.md says what the simulation can't find.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { ALL_CONDITIONS, type Conditions, isConditions } from './plan/conditions.ts';
import { readKnownSeeds, writeKnownSeeds } from './planted/known-seeds.ts';
import { MUTATIONS, type Mutation } from './planted/mutations.ts';
import { type Found, plantAll } from './planted/planting.ts';
import type { SeedReport } from './run.ts';
import { type RanSeed, type Runner, SESSION, type Task, withRunners } from './seed-processes.ts';
import { SeedRunner } from './seeds.ts';

const HELP = `Usage: npm run sim -- [options]

Runs a whole installation in one process, on a virtual clock, with faults. After
every event all promises must hold. A seed always gives the same run.

Options:
  --seeds <n>      how many seeds to run (default: 100)
  --first <n>      the first of them (default: 1)
  --processes <n>  how many processes run seeds (default: 2)
  --seed <n>       this seed alone
  --trace          with --seed: print each step, packet by packet
  --conditions <c> run each seed under these conditions, instead of those that
                   it draws (test/sim/plan/conditions.ts)
  --mutations      plant bugs in copies of the source, and look for each among
                   the seeds, under the conditions that it names
  --frequency      with --mutations: run all seeds, and tell how many find it
  --remember       with --mutations: keep the seeds that found them for npm test
                   (test/sim/planted/known-seeds.json); with --frequency,
                   the cheapest
  --only <text>    only mutations whose names hold this text
  --json           print one JSON object on stdout: seeds, violations,
                   mutationsPlanted, mutationsFound, failures, hashes
  --help           display help

Exit codes: 0 all promises held and all planted bugs were found, 1 not, 2 the
command is wrong.`;

const { values } = parsed({
  options: {
    seeds: { type: 'string' },
    first: { type: 'string', default: '1' },
    processes: { type: 'string', default: '2' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    mutations: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    conditions: { type: 'string' },
    frequency: { type: 'boolean', default: false },
    remember: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    child: { type: 'boolean', default: false },
    // For a child: see `SeedRunner.open`.
    data: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function parsed<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    refuse((error as Error).message);
  }
}

function refuse(why: string): never {
  console.error(`error: ${why}\n\n${HELP}`);
  process.exit(2);
}

function whole(name: 'seeds' | 'first' | 'processes' | 'seed', text: string | undefined): number {
  if (/^\d{1,9}$/.test(text ?? '')) return Number(text);
  refuse(`--${name} must be a whole number, not ${JSON.stringify(text)}`);
}

const conditions = conditionsOf(values.conditions);

function conditionsOf(name: string | undefined): Conditions | undefined {
  if (name === undefined || isConditions(name)) return name;
  refuse(`--conditions must be one of ${ALL_CONDITIONS.join(', ')}, not ${JSON.stringify(name)}`);
}

/** An iterator that several loops share. A loop that ends does not end it for the others. */
function range(first: number, count: number): Iterable<number> {
  let seed = first;
  const next = () => (seed < first + count ? { value: seed++, done: false } : { value: seed, done: true });
  return { [Symbol.iterator]: () => ({ next }) };
}

/** Runs seeds for the parent process, until the parent ends. */
async function serveSeeds(): Promise<void> {
  const seedRunner = SeedRunner.open(values.data);
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ session, ...plan }: Task) => {
    const seeds = await (await seedRunner).seedsOf(session);
    const before = process.cpuUsage();
    const report = await seeds.run(plan);
    const { user, system } = process.cpuUsage(before);
    process.send!({ ...report, cpuMs: (user + system) / 1e3 } satisfies RanSeed);
  });
}

async function runOne(seed: number): Promise<boolean> {
  const seeds = await (await SeedRunner.open()).seedsOf(SESSION);
  const report = await seeds.run(
    { seed, conditions },
    values.trace ? (line) => console.log(line) : undefined,
  );
  if (values.json) console.log(JSON.stringify({ seeds: 1, violations: report.violation ? 1 : 0, ...report }));
  else if (report.violation) console.log(told(report));
  else console.log(`seed ${seed}: all promises held, ${report.events} events, trace ${report.hash}`);
  return report.violation === undefined;
}

function told({ seed, violation }: SeedReport): string {
  return `seed ${seed}: ${violation}\n  ${replay(seed)}`;
}

function replay(seed: number): string {
  return `npm run sim -- --seed ${seed}${conditions ? ` --conditions ${conditions}` : ''} --trace`;
}

async function runMany(first: number, count: number, processes: number): Promise<boolean> {
  const began = performance.now();
  const failures: { seed: number; violation: string; replay: string }[] = [];
  const hashes: Record<number, string> = {};
  let done = 0;
  const note = (report: SeedReport) => {
    const { seed, violation, hash } = report;
    done++;
    hashes[seed] = hash;
    if (violation !== undefined) {
      failures.push({ seed, violation, replay: replay(seed) });
      if (!values.json) console.log(told(report));
    }
    if (process.stderr.isTTY)
      process.stderr.write(`\r${done} of ${count} seeds, ${failures.length} violations `);
  };
  const queue = range(first, count);
  const work = async (runner: Runner) => {
    for (const seed of queue) note(await runner.run({ session: SESSION, seed, conditions }));
  };
  await withRunners(processes, (runners) => Promise.all(runners.map(work)));
  const seconds = (performance.now() - began) / 1e3;
  if (process.stderr.isTTY) process.stderr.write('\n');
  const summary = { seeds: done, violations: failures.length, mutationsPlanted: 0, mutationsFound: 0 };
  if (values.json) console.log(JSON.stringify({ ...summary, seconds, failures, hashes }));
  else console.log(`${done} seeds in ${seconds.toFixed(1)} s: ${failures.length} violations`);
  return failures.length === 0 && done === count;
}

async function runMutations(first: number, count: number, processes: number): Promise<boolean> {
  const chosen = MUTATIONS.filter(({ name }) => name.includes(values.only));
  const known = values.remember ? readKnownSeeds() : {};
  const plan = { mutations: chosen, first, count, conditions, known, everySeed: values.frequency };
  const told = (mutation: Mutation, end: Found | undefined) => {
    if (values.json) return;
    const where = end
      ? `${end.seeds} of ${end.tried} seeds, ${end.seed} in ${end.cpuMs.toFixed(0)} ms: ${end.violation.slice(0, 120)}`
      : 'NOT FOUND';
    console.log(`${mutation.name}: ${where}`);
  };
  const found = await withRunners(processes, (runners) => plantAll(runners, plan, told));
  if (values.remember) {
    const seeds = [...found].map(([name, { seed }]) => [name, seed] as const);
    const planted = new Set(MUTATIONS.map(({ name }) => name));
    const kept = Object.entries(known).filter(([name]) => planted.has(name));
    writeKnownSeeds(Object.fromEntries([...kept, ...seeds]));
  }
  const notFound = chosen.filter(({ name }) => !found.has(name)).map(({ name }) => name);
  const summary = {
    seeds: count,
    violations: 0,
    mutationsPlanted: chosen.length,
    mutationsFound: found.size,
  };
  if (values.json) console.log(JSON.stringify({ ...summary, found: Object.fromEntries(found), notFound }));
  else console.log(`${found.size} of ${chosen.length} planted bugs were found`);
  return notFound.length === 0;
}

async function main(): Promise<boolean> {
  if (values.help) {
    console.log(HELP);
    return true;
  }
  if (values.trace && values.seed === undefined) refuse('--trace prints one seed: name it with --seed');
  if (values.only !== '' && !values.mutations) refuse('--only chooses among mutations: add --mutations');
  if (values.frequency && !values.mutations)
    refuse('--frequency counts what finds mutations: add --mutations');
  if (values.remember && (!values.mutations || conditions))
    refuse('--remember keeps what finds mutations under their own conditions: add --mutations alone');
  if (values.seed !== undefined) return runOne(whole('seed', values.seed));
  const first = whole('first', values.first);
  const processes = Math.max(1, whole('processes', values.processes));
  if (values.mutations) return runMutations(first, whole('seeds', values.seeds ?? '100'), processes);
  return runMany(first, whole('seeds', values.seeds ?? '100'), processes);
}

if (values.child) await serveSeeds();
else process.exit((await main()) ? 0 : 1);
