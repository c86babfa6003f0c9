/** The first part: measures the capacity, then offers a multiple of it. */
import { readFileSync } from 'node:fs';
import { note } from '../../src/cli/terminal/output.ts';
import { MAX_BATCH_ORDERS } from '../../src/engine/limits.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { runCrowd } from '../support/crowd/crowd.ts';
import type { StreamPlan, StreamResult } from '../support/crowd/stream.ts';
import { type Span, Summary, WINDOW_MS } from '../support/crowd/tally.ts';
import { BenchFailure } from '../support/failure.ts';
import { count } from '../support/figures.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import type { StoreServers } from '../support/stores.ts';
import type { OverloadParameters } from './options.ts';
import { SlowLink } from './slow-link.ts';

/** With one lane, the capacity is one batch per answer of Redis. */
const ONE_LANE = { workers: 1, segments: 1 };
const STOCK = 100_000_000;
/** Share of the capacity that is offered before, during and after the overload, and that the node can serve. */
const STEADY_SHARE = 0.5;
const STEADY_LINES = 3_000;
/** Purchases per second in a sold-out sale, and in one that has not started. */
const BESIDE_PER_SECOND = 200;
const BESIDE_LINES = 100;
/** Left out at the start of a span, until connections are warm and batches have grown. */
const SETTLE_MS = 1_000;
/** The rate has recovered when it is at this share of the former rate, for this long. */
const RECOVERED_SHARE = 0.9;
const RECOVERED_FOR_MS = 500;
const MEMORY_EVERY_MS = 250;
const PAGE_BYTES = 4_096;

export const SPANS = ['before', 'during', 'after'] as const;
export type SpanName = (typeof SPANS)[number];

export interface SpanFigures {
  readonly offeredPerSecond: number;
  /** Requests that were due and not sent, because all connections waited for answers. */
  readonly unsent: number;
  readonly acceptedPerSecond: number;
  readonly busyPerSecond: number;
  /** Batches whose reply was too late for the deadline of their orders, on a machine with other work. */
  readonly unknownPerSecond: number;
  readonly accepted: Percentiles;
  readonly busy: Percentiles;
  readonly soldOut: Percentiles;
  /** The share of the requests to the sold-out sale that were answered `sold_out`. */
  readonly soldOutShare: number;
  readonly notStarted: Percentiles;
  readonly peakResidentMb: number;
}

export interface Percentiles {
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

export interface Overload {
  readonly capacityPerSecond: number;
  readonly spans: Readonly<Record<SpanName, SpanFigures>>;
  /** From the end of the overload until the rate has recovered; `undefined`: it never did. */
  readonly recoveryMs: number | undefined;
  readonly busyWithoutRetryAfter: number;
  readonly generatorCores: number;
}

/** @throws BenchFailure if an answer is not allowed, or verify finds a fault */
export async function measureOverload(
  stores: StoreServers,
  parameters: OverloadParameters,
  teardown: Teardown,
): Promise<Overload> {
  const link = await SlowLink.start(stores.redis.port, parameters.delayMs);
  teardown.add(() => link[Symbol.asyncDispose]());
  const node = await StockadeNode.start(stores, {
    workers: ONE_LANE.workers,
    eventsStreamMax: 0,
    eventsYieldMs: 0,
    redisUrl: link.url,
    flags: { 'lane-capacity': String(parameters.laneCapacity) },
  });
  teardown.add(() => node[Symbol.asyncDispose]());
  try {
    return await measure(node, parameters);
  } catch (error) {
    note(`The node: ${await node.lastWords()}`);
    throw error;
  }
}

async function measure(node: StockadeNode, parameters: OverloadParameters): Promise<Overload> {
  const { segments } = ONE_LANE;
  for (const id of ['capacity', 'rush']) await node.createSale({ id, stock: STOCK, segments });
  await node.createSale({ id: 'gone', stock: 1, segments });
  await node.sellOut('gone');
  const startsAt = new Date(Date.now() + 24 * 3_600_000).toISOString();
  await node.createSale({ id: 'later', stock: 1, segments, startsAt });

  const capacityPerSecond = await capacityOf(node, parameters);
  note(
    `capacity: ${count(capacityPerSecond)} accepted orders/s; now ${parameters.times} times as many are asked for`,
  );
  const memory = new Map<number, number>();
  let beginMs = 0;
  const watch = setInterval(() => memory.set(Date.now() - beginMs, residentMb(node.pid)), MEMORY_EVERY_MS);
  const spans = spansOf(parameters);
  try {
    const { results, cpuSeconds } = await runCrowd(
      node.publicUrl,
      plansOf(capacityPerSecond, parameters, spans),
      (at) => {
        beginMs = at;
      },
    );
    checkAnswers(results);
    const settled = await node.settled();
    if (settled.underWay > 0) throw new BenchFailure('purchases are under way after the end');
    for (const saleId of ['capacity', 'rush', 'gone']) {
      const report = await node.verify(saleId);
      if (!report.ok)
        throw new BenchFailure(`verify of ${saleId} found a difference: ${JSON.stringify(report)}`);
    }
    return {
      capacityPerSecond,
      spans: Object.fromEntries(
        SPANS.map((name) => [name, figuresOf(results, spans[name], memory)]),
      ) as Overload['spans'],
      recoveryMs: recoveryOf(results, spans),
      busyWithoutRetryAfter: Object.values(results).reduce((sum, r) => sum + r.withoutRetryAfter, 0),
      generatorCores: cpuSeconds / (spans.after.toMs / 1_000),
    };
  } finally {
    clearInterval(watch);
  }
}

/** As many buyers as fill one batch under way and the next one: the lane is never empty, and never full. */
async function capacityOf(
  node: StockadeNode,
  { calmSeconds, laneCapacity }: OverloadParameters,
): Promise<number> {
  const lines = 2 * Math.min(MAX_BATCH_ORDERS, laneCapacity);
  const toMs = SETTLE_MS + calmSeconds * 1_000;
  const plan = { name: 'capacity', saleId: 'capacity', lines, perSecond: undefined };
  const { results } = await runCrowd(node.publicUrl, [[{ ...plan, fromMs: 0, toMs }]]);
  return new Summary(results.capacity!.tally, { fromMs: SETTLE_MS, toMs }).perSecond('accepted');
}

function spansOf({ calmSeconds, seconds }: OverloadParameters): Record<SpanName, Span> {
  const before = { fromMs: SETTLE_MS, toMs: SETTLE_MS + calmSeconds * 1_000 };
  const during = { fromMs: before.toMs, toMs: before.toMs + seconds * 1_000 };
  return { before, during, after: { fromMs: during.toMs, toMs: during.toMs + calmSeconds * 1_000 } };
}

/** Buyers above the capacity run in a process of their own, so that its delays are not in the figures of the others. */
function plansOf(
  capacity: number,
  { times, lines }: OverloadParameters,
  { during, after }: Record<SpanName, Span>,
): StreamPlan[][] {
  const whole = { fromMs: 0, toMs: after.toMs };
  const steady = capacity * STEADY_SHARE;
  const beside = { lines: BESIDE_LINES, perSecond: BESIDE_PER_SECOND, ...whole };
  return [
    [{ name: 'flood', saleId: 'rush', lines, perSecond: capacity * times - steady, ...during }],
    [
      { name: 'steady', saleId: 'rush', lines: STEADY_LINES, perSecond: steady, ...whole },
      { name: 'soldOut', saleId: 'gone', ...beside },
      { name: 'notStarted', saleId: 'later', ...beside },
    ],
  ];
}

const RIGHT: Readonly<Record<string, readonly string[]>> = {
  flood: ['accepted', 'busy', 'unknown'],
  steady: ['accepted', 'busy', 'unknown'],
  // If the board could not confirm "sold out" for 250 ms, buyers go to the lane.
  soldOut: ['sold_out', 'busy'],
  notStarted: ['not_started'],
};

function checkAnswers(results: Readonly<Record<string, StreamResult>>): void {
  for (const [name, { tally }] of Object.entries(results)) {
    const all = new Summary(tally, { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER });
    const wrong = all.codes.filter((code) => !RIGHT[name]!.includes(code));
    if (wrong.length === 0) continue;
    const said = wrong.map((code) => `${code} ${all.answers(code)} times`).join(', ');
    throw new BenchFailure(`${name} was answered ${said}`);
  }
}

function figuresOf(
  results: Readonly<Record<string, StreamResult>>,
  span: Span,
  memory: ReadonlyMap<number, number>,
): SpanFigures {
  const of = (name: string) => new Summary(results[name]!.tally, span);
  const [flood, steady] = [of('flood'), of('steady')];
  const both = (figure: (summary: Summary) => number) => figure(flood) + figure(steady);
  const percentiles = (name: string, code: string) => ({
    p50Ms: of(name).percentileMs(code, 0.5),
    p99Ms: of(name).percentileMs(code, 0.99),
  });
  return {
    offeredPerSecond: both((s) => s.askedPerSecond),
    unsent: both((s) => s.unsent),
    acceptedPerSecond: both((s) => s.perSecond('accepted')),
    busyPerSecond: both((s) => s.perSecond('busy')),
    unknownPerSecond: both((s) => s.perSecond('unknown')),
    accepted: percentiles('steady', 'accepted'),
    busy: percentiles('steady', 'busy'),
    soldOut: percentiles('soldOut', 'sold_out'),
    soldOutShare: of('soldOut').perSecond('sold_out') / of('soldOut').askedPerSecond,
    notStarted: percentiles('notStarted', 'not_started'),
    peakResidentMb: peakIn(memory, span),
  };
}

/** The first moment from which on the steady buyers are served as before. */
function recoveryOf(
  results: Readonly<Record<string, StreamResult>>,
  { before, after }: Record<SpanName, Span>,
): number | undefined {
  const { tally } = results.steady!;
  const wanted = new Summary(tally, before).perSecond('accepted') * RECOVERED_SHARE;
  for (let fromMs = after.fromMs; fromMs + RECOVERED_FOR_MS <= after.toMs; fromMs += WINDOW_MS) {
    const rate = new Summary(tally, { fromMs, toMs: fromMs + RECOVERED_FOR_MS }).perSecond('accepted');
    if (rate >= wanted) return fromMs - after.fromMs;
  }
  return undefined;
}

function peakIn(memory: ReadonlyMap<number, number>, { fromMs, toMs }: Span): number {
  const within = [...memory].filter(([at]) => at >= fromMs && at < toMs);
  return Math.max(...within.map(([, mb]) => mb));
}

/** Reads /proc, which needs no process for each reading. */
function residentMb(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return (pages * PAGE_BYTES) / 1024 ** 2;
}
