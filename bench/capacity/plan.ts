/** What a demand needs: the smallest number of workers and Redis primaries that keeps each core below the allowed use. */
import { settings } from '../../src/config/settings.ts';
import { MAX_WORKER_NUMBERS } from '../../src/engine/order-id.ts';
import { MOST_IN_A_TRANSACTION } from './batches.ts';
import type { Costs, FigureName, Measured, Program } from './costs.ts';
import { commitSeconds, type Load, loadOf, MICROS, shareOfSync } from './load.ts';
import type { Demand } from './options.ts';

/** Beyond this, no plan is looked for. */
const MOST_PLANNED = 65_536;
const CONNECTIONS_PER_NODE = Number(settings.maxConnections.fallback);
/** So that the segments spread evenly (docs/operations/sizing.md). */
const SEGMENTS_PER_PRIMARY = 4;
const OUTAGE_SECONDS = 60;

export interface Plan extends Load {
  readonly workers: number;
  readonly nodes: number;
  readonly primaries: number;
  /** Microseconds for each order. */
  readonly micros: Readonly<Record<Program, number>>;
  readonly bytes: Bytes;
  readonly limits: readonly Limit[];
}

export interface Bytes {
  /** In a second. */
  readonly fromBuyers: number;
  readonly toBuyers: number;
  readonly redis: number;
  readonly wal: number;
  /** Memory and disk. */
  readonly redisMemory: number;
  readonly redisOutage: number;
  readonly nodeMemory: number;
  readonly disk: number;
}

/** Something that more machines of the same kind do not raise. */
export interface Limit {
  readonly what: string;
  readonly remedy: string;
  /** How many times the demand it carries. Below 1 the plan does not work. */
  readonly times: number;
}

/** @returns undefined if no number of workers and primaries is enough */
export function planFor(demand: Demand, costs: Costs, measured: Measured): Plan | undefined {
  let { workers, primaries } = fewest(demand, costs);
  while (workers <= MOST_PLANNED && primaries <= MOST_PLANNED) {
    const load = loadOf(demand, costs, measured, workers, primaries);
    const needed = load
      ? { workers: coresAtUse(load.cores.node, demand), primaries: coresAtUse(load.cores.redis, demand) }
      : { workers: workers + 1, primaries: primaries + 1 };
    if (needed.workers <= workers && needed.primaries <= primaries) {
      return finished(demand, costs, measured, { workers, primaries, ...load! });
    }
    // More workers make smaller batches, which cost more: each step may raise what the next one needs.
    workers = Math.max(workers, needed.workers);
    primaries = Math.max(primaries, needed.primaries);
  }
  return undefined;
}

/** What would be enough if a script call cost nothing. Each node has all its workers, and room for its connections. */
function fewest(demand: Demand, { node, redis }: Costs): Pick<Plan, 'workers' | 'primaries'> {
  const { requests, orders, later, connections } = demand;
  const taken = orders + later;
  const answering = ((requests - taken) * node.refusal + taken * node.takeOrder) / MICROS;
  const forConnections = Math.ceil(connections / CONNECTIONS_PER_NODE) * demand.workers;
  return {
    workers: Math.max(forConnections, coresAtUse(answering, demand)),
    primaries: coresAtUse((taken * redis.takeOrder) / MICROS, demand),
  };
}

function coresAtUse(cores: number, { usePercent }: Demand): number {
  return Math.max(1, Math.ceil(cores / (usePercent / 100)));
}

function finished(
  demand: Demand,
  costs: Costs,
  measured: Measured,
  load: Pick<Plan, 'workers' | 'primaries' | 'batches' | 'cores'>,
): Plan {
  const taken = demand.orders + demand.later;
  const refusals = ((demand.requests - taken) * costs.node.refusal) / MICROS;
  const perOrder = (cores: number) => (cores / Math.max(1, taken)) * MICROS;
  const { node, redis, postgres } = load.cores;
  return {
    ...load,
    nodes: Math.ceil(load.workers / demand.workers),
    micros: { node: perOrder(node - refusals), redis: perOrder(redis), postgres: perOrder(postgres) },
    bytes: bytesOf(demand, measured, load),
    limits: limitsOf(demand, costs, measured, load),
  };
}

function bytesOf(
  { requests, orders, later, buyers, sales, segments, connections }: Demand,
  { figures }: Measured,
  { workers, batches }: Pick<Plan, 'workers' | 'batches'>,
): Bytes {
  const bytes = (name: FigureName) => figures[name].value;
  const taken = orders + later;
  const calls = taken / batches.take + (orders / batches.transaction) * (1 + batches.logs);
  return {
    fromBuyers: requests * bytes('requestBytes'),
    toBuyers: (requests - taken) * bytes('refusalBytes') + taken * bytes('answerBytes'),
    redis: taken * bytes('redisOrderBytes') + calls * bytes('redisCallBytes'),
    wal: orders * bytes('walBytes'),
    redisMemory: buyers * bytes('buyerBytes'),
    redisOutage: taken * OUTAGE_SECONDS * bytes('logBytes'),
    nodeMemory:
      workers * (bytes('workerBytes') + (sales * segments * bytes('saleBytes')) / 8) +
      connections * bytes('connectionBytes'),
    disk: buyers * bytes('rowBytes'),
  };
}

function limitsOf(
  demand: Demand,
  costs: Costs,
  measured: Measured,
  { workers, primaries }: Pick<Plan, 'workers' | 'primaries'>,
): Limit[] {
  const { sales, segments } = demand;
  const share = shareOfSync(demand, workers);
  const full = MOST_IN_A_TRANSACTION;
  const mostOfASync = full / commitSeconds(full, share, demand, costs, measured);
  const limits = [
    {
      what: 'sync',
      times: mostOfASync / share.orders,
      remedy: 'One thread syncs a sale, with two transactions under way: use several sales, or --later',
    },
    {
      what: 'worker numbers',
      times: MAX_WORKER_NUMBERS / workers,
      remedy: `An order id has room for ${MAX_WORKER_NUMBERS} workers of one shop`,
    },
    {
      what: 'segments for the primaries',
      times: (sales * segments) / (SEGMENTS_PER_PRIMARY * primaries),
      remedy: `A sale needs ${SEGMENTS_PER_PRIMARY} segments for each primary (stockade sale resize)`,
    },
  ];
  return limits.filter(({ times }) => Number.isFinite(times)).sort((a, b) => a.times - b.times);
}
