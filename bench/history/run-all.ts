/** The run: two shops, the same operations in both in turns, then the routes of the one with the history. */
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { rounded } from '../support/figures.ts';
import { type Cost, cpuOf } from '../support/meter.ts';
import { startStoreServers } from '../support/stores.ts';
import { type Exported, measureExports } from './exports.ts';
import { type Filled, fill } from './fill.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import type { HistoryParameters } from './options.ts';
import { type TimedRoutes, timeRoutes } from './routes.ts';
import { type BenchShop, openShop, startSelling } from './shop.ts';

export interface Compared {
  readonly name: Operation['name'];
  /** Milliseconds of processor time, of all processes, and of the clock. */
  readonly history: Figures;
  readonly empty: Figures;
  /** Processor time of the one over the other. */
  readonly growth: number;
}

interface Figures {
  readonly cpu: number;
  readonly wall: number;
}

export interface Measured {
  readonly filled: Filled;
  readonly operations: readonly Compared[];
  readonly timed: TimedRoutes;
  readonly exported: readonly Exported[];
}

/** @throws BenchFailure if an operation fails, or verify finds a difference */
export async function runAll(parameters: HistoryParameters): Promise<Measured> {
  const teardown = new Teardown((error) => note(`an orderly end failed: ${error}`));
  try {
    note('Starting Redis and Postgres');
    const stores = await startStoreServers(teardown);
    const old = await openShop('history', stores, teardown);
    const filled = await fill(old.db, parameters);
    const history = await startSelling(old, parameters);
    const empty = await startSelling(await openShop('empty', stores, teardown), parameters);
    const operations: Compared[] = [];
    for (const operation of OPERATIONS) {
      operations.push(await compare(operation, history, empty, parameters.rounds));
    }
    const timed = await timeRoutes(stores, history, parameters.rounds);
    const exported = await measureExports(stores, history, parameters.exported);
    return { filled, operations, timed, exported };
  } finally {
    await teardown.release();
  }
}

/**
 * The cheapest round of each. What else runs on a machine only ever adds to a round, so that the least of several is the
 * steadiest estimate of what the work itself costs. The first round warms up and does not count.
 */
async function compare(
  operation: Operation,
  history: BenchShop,
  empty: BenchShop,
  rounds: number,
): Promise<Compared> {
  const costs = new Map<BenchShop, Cost[]>([
    [history, []],
    [empty, []],
  ]);
  for (let round = 0; round <= rounds; round++) {
    for (const shop of round % 2 === 0 ? [history, empty] : [empty, history]) {
      await operation.prepare?.(shop, round);
      const end = await shop.meter.begin();
      await operation.run(shop, round);
      costs.get(shop)!.push(await end());
    }
  }
  const [a, b] = [cheapest(costs.get(history)!), cheapest(costs.get(empty)!)];
  const growth = a.cpu / b.cpu;
  note(`${operation.name}: ${a.cpu} ms with the history, ${b.cpu} ms without: ${growth.toFixed(2)}`);
  return { name: operation.name, history: a, empty: b, growth };
}

function cheapest([, ...costs]: readonly Cost[]): Figures {
  const cost = costs.reduce((least, one) => (cpuOf(one) < cpuOf(least) ? one : least));
  return { cpu: rounded(cpuOf(cost) / 1_000, 2), wall: rounded(cost.wall / 1_000, 2) };
}
