/** The run: two shops, the same operations in both in turns, then the routes of the one with the history. */
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { rounded } from '../support/figures.ts';
import { median } from '../support/median.ts';
import { cpuOf } from '../support/meter.ts';
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
  /** Processor time of the one over the other, in the median round. */
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
 * The median round of each shop, and the median of the rounds' ratios. A machine that others share changes its speed within seconds, and a
 * round's turns stand beside each other. The first round warms up and does not count.
 */
async function compare(
  operation: Operation,
  history: BenchShop,
  empty: BenchShop,
  rounds: number,
): Promise<Compared> {
  const measured: { readonly history: Figures; readonly empty: Figures }[] = [];
  for (let round = 0; round <= rounds; round++) {
    measured.push(await measureRound(operation, history, empty, round));
  }
  measured.shift();
  const growth = median(measured.map((one) => one.history.cpu / one.empty.cpu));
  const [a, b] = [medians(measured.map((one) => one.history)), medians(measured.map((one) => one.empty))];
  note(`${operation.name}: ${a.cpu} ms with the history, ${b.cpu} ms without: ${growth.toFixed(2)}`);
  return { name: operation.name, history: a, empty: b, growth };
}

/** What the turns of a round cost each shop, in milliseconds. */
async function measureRound(
  operation: Operation,
  history: BenchShop,
  empty: BenchShop,
  round: number,
): Promise<{ readonly history: Figures; readonly empty: Figures }> {
  const costs = { history: { cpu: 0, wall: 0 }, empty: { cpu: 0, wall: 0 } };
  const { turns = 1 } = operation;
  for (let turn = round * turns; turn < (round + 1) * turns; turn++) {
    for (const shop of turn % 2 === 0 ? [history, empty] : [empty, history]) {
      await operation.prepare?.(shop, turn);
      const end = await shop.meter.begin();
      await operation.run(shop, turn);
      const cost = await end();
      costs[shop.name].cpu += cpuOf(cost) / 1_000;
      costs[shop.name].wall += cost.wall / 1_000;
    }
  }
  return costs;
}

function medians(rounds: readonly Figures[]): Figures {
  const of = (figure: keyof Figures) => rounded(median(rounds.map((round) => round[figure])), 2);
  return { cpu: of('cpu'), wall: of('wall') };
}
