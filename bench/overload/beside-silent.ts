/**
 * The second part: normal buyers, with and without thousands of silent and slow connections and pipelines beside
 * them.
 */
import { fork, spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { nextMessage } from '../support/crowd/crowd.ts';
import { count, rounded } from '../support/figures.ts';
import { median } from '../support/median.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import type { StoreServers } from '../support/stores.ts';
import { runWrk } from '../support/wrk/wrk.ts';
import type { OverloadParameters } from './options.ts';
import type { SilentOrder } from './silent-program.ts';

const PROGRAM = fileURLToPath(new URL('./silent-program.ts', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../support/wrk/order-request.lua', import.meta.url));
const SALE = 'open';
const SEGMENTS = 8;
const STOCK = 2_000_000_000;
/** Files that the node needs in addition to its connections. */
const SPARE_FILES = 256;
const POLL_MS = 100;

export interface Crowd {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface BesideSilent {
  /** The connections that the machine allowed. */
  readonly idle: number;
  readonly slow: number;
  /** The least number that the node had open at the same time. */
  readonly held: number;
  readonly without: Crowd;
  readonly with: Crowd;
  /** Medians of the ratios within each round: with the connections relative to without. */
  readonly rateRatio: number;
  readonly p99Ratio: number;
  readonly residentMb: { readonly without: number; readonly with: number };
}

export async function measureBesideSilent(
  stores: StoreServers,
  parameters: OverloadParameters,
  teardown: Teardown,
): Promise<BesideSilent> {
  const { idle, slow } = allowed(parameters);
  const others = idle + slow + parameters.pipelining;
  const flags = { 'max-connections': String(parameters.connections + others + SPARE_FILES) };
  const settings = { workers: 1, eventsStreamMax: 0, eventsYieldMs: 0, flags };
  const node = await StockadeNode.start(stores, settings);
  teardown.add(() => node[Symbol.asyncDispose]());
  await node.createSale({ id: SALE, stock: STOCK, segments: SEGMENTS });
  await crowd(node, parameters, 'warm-up');
  const rounds: Round[] = [];
  for (let number = 1; number <= parameters.rounds; number++)
    rounds.push(await measureRound(node, { ...parameters, idle, slow }, number));
  const report = await node.verify(SALE);
  if (!report.ok) throw new Error(`verify found a difference: ${JSON.stringify(report)}`);
  const middle = (of: (round: Round) => number) => median(rounds.map(of));
  const crowdOf = (of: (round: Round) => Crowd): Crowd => ({
    perSecond: rounded(
      middle((r) => of(r).perSecond),
      0,
    ),
    p50Ms: rounded(
      middle((r) => of(r).p50Ms),
      2,
    ),
    p99Ms: rounded(
      middle((r) => of(r).p99Ms),
      2,
    ),
  });
  const mb = (bytes: number) => rounded(bytes / 1024 ** 2, 0);
  return {
    idle,
    slow,
    held: Math.min(...rounds.map(({ held }) => held)),
    without: crowdOf((r) => r.without),
    with: crowdOf((r) => r.beside),
    rateRatio: rounded(
      middle((r) => r.beside.perSecond / r.without.perSecond),
      3,
    ),
    p99Ratio: rounded(
      middle((r) => r.beside.p99Ms / r.without.p99Ms),
      3,
    ),
    residentMb: { without: mb(middle((r) => r.residentWithout)), with: mb(middle((r) => r.residentWith)) },
  };
}

interface Round {
  readonly without: Crowd;
  readonly beside: Crowd;
  readonly held: number;
  readonly residentWithout: number;
  readonly residentWith: number;
}

async function measureRound(
  node: StockadeNode,
  parameters: OverloadParameters,
  number: number,
): Promise<Round> {
  const { idle, slow, pipelining } = parameters;
  const without = await crowd(node, parameters, `without-${number}`);
  const residentWithout = await figure(node, 'process_resident_memory_bytes');
  const end = await holdSilent({ url: node.publicUrl, saleId: SALE, idle, slow, pipelining });
  try {
    const before = await figure(node, 'stockade_connections');
    const beside = await crowd(node, parameters, `with-${number}`);
    const held = Math.min(before, await figure(node, 'stockade_connections'));
    const residentWith = await figure(node, 'process_resident_memory_bytes');
    note(
      `round ${number}: ${count(without.perSecond)}/s without, ${count(beside.perSecond)}/s beside ${count(held)}`,
    );
    return { without, beside, held, residentWithout, residentWith };
  } finally {
    await end();
    await until(async () => (await figure(node, 'stockade_connections')) <= 2);
  }
}

/** The limit of open files of a process decides how many connections are possible. */
function allowed({ idle, slow, pipelining, connections }: OverloadParameters): {
  idle: number;
  slow: number;
} {
  // Node has raised its own soft limit to the hard one, which child processes inherit.
  const limit = spawnSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout.trim();
  const room =
    (limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)) -
    SPARE_FILES -
    connections -
    pipelining;
  if (idle + slow <= room) return { idle, slow };
  const less = Math.max(0, room - slow);
  note(
    `This machine allows ${limit} open files in a process: ${count(less)} idle connections instead of ${count(idle)}.`,
  );
  return { idle: less, slow: Math.min(slow, room) };
}

/** @returns a function that closes them */
async function holdSilent(order: SilentOrder): Promise<() => Promise<void>> {
  const child = fork(PROGRAM);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const ready = nextMessage(child);
  child.send(order);
  await ready;
  return async () => {
    child.disconnect();
    await ended;
  };
}

async function crowd(node: StockadeNode, parameters: OverloadParameters, name: string): Promise<Crowd> {
  const { connections, crowdSeconds: seconds } = parameters;
  const url = node.ordersUrl(SALE);
  const report = await runWrk({ url, connections, seconds, script: SCRIPT, scriptArgs: [`${name}-`, ''] });
  if (report.errorStatuses > report.requests / 1_000)
    throw new Error(`${report.errorStatuses} of ${report.requests} purchases were refused`);
  // Waits for the normal purchases only: some of the slow requests are answered all the time.
  await node.drained();
  return { perSecond: report.requestsPerSecond, p50Ms: report.p50Ms, p99Ms: report.p99Ms };
}

async function figure(node: StockadeNode, metric: string): Promise<number> {
  return Number(new RegExp(`^${metric} (\\S+)$`, 'm').exec(await node.metrics())?.[1]);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(POLL_MS);
}
