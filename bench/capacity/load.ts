/** The batches and the use of cores, with a given number of workers and Redis primaries. */
import {
  LONGEST_SECONDS,
  MOST_IN_A_TAKE,
  MOST_IN_A_TRANSACTION,
  meanBatch,
  occupied,
  steadyCycle,
} from './batches.ts';
import { type Costs, type Measured, orderMicros, type Program } from './costs.ts';
import type { Demand } from './options.ts';

export const MICROS = 1e6;
/** Of a sync, and from how many orders on: a smaller transaction is under way alone (docs/decisions/0005-sync-batches.md). */
const TRANSACTIONS_UNDER_WAY = 2;
const LARGE_TRANSACTION = 200;

/** Orders in a batch, on average. */
export interface BatchSizes {
  readonly take: number;
  readonly transaction: number;
  /** Logs that a transaction reads. */
  readonly logs: number;
  /** From the start of a take to the start of the next one of the same lane. */
  readonly takeMs: number;
}

export interface Load {
  readonly batches: BatchSizes;
  /** Cores in use. */
  readonly cores: Readonly<Record<Program, number>>;
}

/** The batches and cores with so many workers and primaries; `undefined`: they do not keep up. */
export function loadOf(
  demand: Demand,
  costs: Costs,
  measured: Measured,
  workers: number,
  primaries: number,
): Load | undefined {
  const take = takeBatches(demand, costs, workers, primaries);
  if (!take) return undefined;
  const share = shareOfSync(demand, workers);
  const batches = { ...take, ...commitBatches(share, demand, costs, measured) };
  return { batches, cores: coresOf(demand, costs, batches, share) };
}

function takeBatches(
  { requests, orders, later, sales, segments, roundTripMicros }: Demand,
  { node, redis }: Costs,
  workers: number,
  primaries: number,
): Pick<BatchSizes, 'take' | 'takeMs'> | undefined {
  const lanes = sales * segments;
  const perWorker = (orders + later) / workers;
  const refusing = ((requests - orders - later) / workers) * (node.refusal / MICROS);
  const batchAfter = (seconds: number) => meanBatch(perWorker * seconds, lanes, MOST_IN_A_TAKE);
  const cycle = steadyCycle((seconds) => {
    const arrived = perWorker * seconds;
    const batch = batchAfter(seconds);
    const calls = Math.min(occupied(arrived, lanes), arrived);
    const script = (redis.takeCall + batch * redis.takeOrder) / MICROS;
    const redisUse = (((orders + later) / batch) * script) / primaries;
    if (refusing >= 1 || redisUse >= 1) return LONGEST_SECONDS * 2;
    const turn = (arrived * node.takeOrder + calls * node.takeCall) / MICROS / (1 - refusing);
    return roundTripMicros / MICROS + turn + (Math.max(1, calls / primaries) * script) / (1 - redisUse);
  });
  return cycle === undefined ? undefined : { take: batchAfter(cycle), takeMs: cycle * 1_000 };
}

/** A process that syncs: its orders in a second, and the logs that they come from. */
export interface SyncShare {
  readonly orders: number;
  readonly logs: number;
}

/** The nodes divide the sales among themselves; a transaction has orders of all sales of its node. */
export function shareOfSync(
  { orders, sales, segments, workers: perNode }: Demand,
  workers: number,
): SyncShare {
  const syncs = Math.min(sales, Math.ceil(workers / perNode));
  return { orders: orders / syncs, logs: (sales * segments) / syncs };
}

function commitBatches(
  share: SyncShare,
  demand: Demand,
  costs: Costs,
  measured: Measured,
): Pick<BatchSizes, 'transaction' | 'logs'> {
  const cycle = steadyCycle((seconds) =>
    commitSeconds(share.orders * seconds, share, demand, costs, measured),
  );
  // Without a steady cycle sync falls behind, and its batches are full.
  const rows = cycle === undefined ? MOST_IN_A_TRANSACTION : share.orders * cycle;
  const transaction = Math.min(MOST_IN_A_TRANSACTION, Math.max(1, rows));
  return { transaction, logs: occupied(transaction, share.logs) };
}

/** From the end of a transaction to the end of the next one of the same sync. It has at least one order. */
export function commitSeconds(
  orders: number,
  share: SyncShare,
  { roundTripMicros }: Demand,
  { node, postgres }: Costs,
  { figures }: Measured,
): number {
  const rows = Math.max(1, orders);
  const logs = occupied(rows, share.logs);
  const thread = node.commitTransaction + logs * node.commitLog + rows * figures.syncOrder.value;
  const written = postgres.commitTransaction + logs * postgres.commitLog + rows * postgres.commitOrder;
  const waiting = figures.transactionLatency.value + 2 * roundTripMicros;
  const underWay = rows < LARGE_TRANSACTION ? 1 : TRANSACTIONS_UNDER_WAY;
  return Math.max(thread, (thread + written + waiting) / underWay) / MICROS;
}

function coresOf(
  { requests, orders, later }: Demand,
  costs: Costs,
  { take, transaction }: BatchSizes,
  { logs }: SyncShare,
): Record<Program, number> {
  const cores = (program: Program) => {
    const cost = costs[program];
    const committed = orderMicros(cost, { take, transaction, segments: logs, committed: 1 });
    const accepted = orderMicros(cost, { take, transaction, segments: logs, committed: 0 });
    return ((requests - orders - later) * cost.refusal + orders * committed + later * accepted) / MICROS;
  };
  return { node: cores('node'), redis: cores('redis'), postgres: cores('postgres') };
}
