/**
 * Some processes `stockade sync` beside nodes that sell and have none of their own. The nodes answer as soon as Redis has an order, so
 * nothing keeps the crowd from leaving sync behind.
 */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { settings } from '../../src/config/settings.ts';
import { splitEvenly } from '../../src/engine/sale/split-evenly.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { measureCpu } from '../support/cpu-meter.ts';
import { meanBatch, type NodeFigures, together } from '../support/metrics-text.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import { checkpoint } from '../support/stores.ts';
import { rightAnswers } from '../support/wrk/right-answers.ts';
import { runWrk } from '../support/wrk/wrk.ts';
import type { ScaleParameters } from './options.ts';
import type { Place } from './stores.ts';
import {
  committedOrders,
  cpuSecondsOfSyncs,
  drained,
  type SyncProcess,
  salesOfEachSync,
  startSyncs,
} from './syncs.ts';

const SCRIPT = fileURLToPath(new URL('../support/wrk/orders-of-many-sales.lua', import.meta.url));
const SEGMENTS = 8;
const NEVER_SOLD_OUT = 50_000_000;
const EVENTS_YIELD_MS = Number(settings.eventsYieldMs.fallback);
/** Additional time for the end of a node, on busy cores. */
const NODE_END_MS = 60_000;
/** Processor time is in microseconds per order; `undefined` where the system does not report it. */
export interface Beside {
  /** While the crowd buys. */
  readonly acceptedPerSecond: number;
  /** Orders in Postgres when the crowd ends, divided by all that it had. */
  readonly committedShare: number;
  /** From then until all are in Postgres. */
  readonly behindMs: number;
  readonly syncCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
  /** Orders in each transaction of sync. */
  readonly transactionOrders: number | undefined;
  /** The largest share of the sales that one sync had at the beginning, from 0 to 1. */
  readonly largestShare: number;
}

export async function measureBeside(
  syncs: number,
  place: Place,
  parameters: ScaleParameters,
): Promise<Beside> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    return await measureShop(syncs, place, parameters, teardown);
  } finally {
    await teardown.release();
  }
}

async function measureShop(
  syncs: number,
  place: Place,
  parameters: ScaleParameters,
  teardown: Teardown,
): Promise<Beside> {
  const { sales, eventsStreamMax } = parameters;
  const databaseUrl = await place.postgres.createDatabase('bench');
  const keyPrefix = `bench-${randomBytes(6).toString('hex')}:`;
  const nodes = await startNodes(place, databaseUrl, keyPrefix, parameters, teardown);
  const db = openDatabase({ url: databaseUrl, maxConnections: Number(settings.pgPoolMax.fallback) });
  teardown.add(() => db.destroy());
  const flags = { 'redis-url': place.redis.url, 'database-url': databaseUrl, 'key-prefix': keyPrefix };
  const processes = await startSyncs(
    syncs,
    { ...flags, 'events-stream-max': String(eventsStreamMax) },
    teardown,
  );
  const ids = Array.from({ length: sales }, (_, i) => `sale-${i + 1}`);
  for (const id of ids) await nodes[0]!.createSale({ id, stock: NEVER_SOLD_OUT, segments: SEGMENTS });
  const holders = await salesOfEachSync(db, sales, syncs);
  const measured = await sellAndDrain(nodes, processes, db, place, parameters);
  for (const id of ids) await nodes[0]!.assertVerified(id);
  return { ...measured, largestShare: Math.max(...holders) / sales };
}

async function startNodes(
  place: Place,
  databaseUrl: string,
  keyPrefix: string,
  parameters: ScaleParameters,
  teardown: Teardown,
): Promise<StockadeNode[]> {
  const flags = { 'key-prefix': keyPrefix, sync: 'off' };
  const { eventsStreamMax } = parameters;
  const own = { workers: 1, eventsStreamMax, eventsYieldMs: EVENTS_YIELD_MS, databaseUrl, flags };
  const nodes: StockadeNode[] = [];
  for (let i = 0; i < parameters.nodes; i++) {
    const node = await StockadeNode.start(place, own);
    teardown.add(() => node[Symbol.asyncDispose](), NODE_END_MS);
    nodes.push(node);
  }
  return nodes;
}

async function sellAndDrain(
  nodes: readonly StockadeNode[],
  syncs: readonly SyncProcess[],
  db: Database,
  { postgres }: Place,
  { connections, warmupSeconds, seconds, sales }: ScaleParameters,
): Promise<Omit<Beside, 'largestShare'>> {
  const crowd = (series: string, forSeconds: number) => {
    const shares = splitEvenly(connections, nodes.length);
    const runs = nodes.map((node, i) =>
      runWrk({
        url: node.ordersUrl('sale-1'),
        connections: shares[i]!,
        seconds: forSeconds,
        script: SCRIPT,
        scriptArgs: [`buyer-${series}-${i}-`, 'respond-async', String(sales)],
      }),
    );
    return Promise.all(runs);
  };
  const figures = async () => together(await Promise.all([...nodes, ...syncs].map((one) => one.figures())));
  if (warmupSeconds > 0) await crowd('w', warmupSeconds);
  await drained(db, acceptedOf(await figures()), syncs);
  const before = await figures();
  await checkpoint(postgres);

  const used = measureCpu({
    sync: () => cpuSecondsOfSyncs(syncs),
    postgres: () => postgres.cpuSeconds(),
  });
  const began = performance.now();
  await crowd('m', seconds);
  const ended = performance.now();
  const inTime = (await committedOrders(db)) - acceptedOf(before);
  const orders = rightAnswers(before, await figures(), 'accepted');
  await drained(db, acceptedOf(before) + orders, syncs);
  const behindMs = performance.now() - ended;
  const cpu = used();
  const micros = (spent: number | undefined) => spent && (spent / orders) * 1e6;
  return {
    acceptedPerSecond: (orders / (ended - began)) * 1_000,
    committedShare: Math.min(1, inTime / orders),
    behindMs,
    syncCpuMicros: micros(cpu.sync),
    postgresCpuMicros: micros(cpu.postgres),
    transactionOrders: meanBatch(before.transactions, (await figures()).transactions),
  };
}

function acceptedOf({ answers }: NodeFigures): number {
  return answers.get('accepted') ?? 0;
}
