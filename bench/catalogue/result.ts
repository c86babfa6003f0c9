/** The result of a run, over all its rounds: the object that `--json` prints and the page shows. */
import { rounded } from '../support/figures.ts';
import type { Machine } from '../support/machine.ts';
import { median } from '../support/median.ts';
import type { Crowd, NamingFigures, Round, RowFigures, Selling } from './figures.ts';
import type { CatalogueParameters } from './options.ts';

export interface CatalogueResult extends Round {
  /**
   * Orders/s of rows whose lock is in another store than the stock, relative to B7, whose lock is in the same Redis.
   */
  readonly locksOverB7: Readonly<Record<string, number>>;
  readonly measuredAt: string;
  readonly parameters: CatalogueParameters;
  readonly machine: Machine;
}

/** Locks in a Redis of their own, in a quorum, in a consensus store, in the database. */
const LOCKS = ['B9', 'B10', 'B11', 'B12'];

export function resultOf(
  rounds: readonly Round[],
  parameters: CatalogueParameters,
  machine: Machine,
): CatalogueResult {
  const [first] = rounds;
  const rows = first!.rows.map((_, i) => overRounds(rounds.map((round) => round.rows[i]!)));
  const naming = first!.naming.map((_, i) => namingOverRounds(rounds.map((round) => round.naming[i]!)));
  const ordersPerSecond = (id: string) => rows.find((row) => row.id === id)!.selling.ordersPerSecond;
  const overB7 = (id: string) => rounded(ordersPerSecond(id) / ordersPerSecond('B7'), 3);
  return {
    clientsAlone: middle(rounds, (round) => round.clientsAlone, 0),
    rows,
    naming,
    locksOverB7: Object.fromEntries(LOCKS.map((id) => [id, overB7(id)])),
    measuredAt: new Date().toISOString(),
    parameters,
    machine,
  };
}

function overRounds(rows: readonly RowFigures[]): RowFigures {
  return {
    ...rows[0]!,
    selling: sellingOverRounds(rows.map((row) => row.selling)),
    crowd: crowdOverRounds(rows.map((row) => row.crowd)),
  };
}

function sellingOverRounds(rounds: readonly Selling[]): Selling {
  return {
    ordersPerSecond: middle(rounds, (round) => round.ordersPerSecond, 1),
    p50Ms: middle(rounds, (round) => round.p50Ms, 4),
    p99Ms: middle(rounds, (round) => round.p99Ms, 4),
    failedPercent: middle(rounds, (round) => round.failedPercent, 2),
    redisCommandsPerOrder: middle(rounds, (round) => round.redisCommandsPerOrder, 2),
    postgresStatementsPerOrder: middle(rounds, (round) => round.postgresStatementsPerOrder, 2),
  };
}

/** Medians of what was measured. For units sold, the worst round. */
function crowdOverRounds(rounds: readonly Crowd[]): Crowd {
  const badness = ({ oversold, undersold, buyersAboveLimit }: Crowd) =>
    oversold + (undersold ?? 0) + buyersAboveLimit;
  const worst = rounds.reduce((a, b) => (badness(b) > badness(a) ? b : a));
  return {
    ...worst,
    requestsPerSecond: middle(rounds, (round) => round.requestsPerSecond, 1),
    p50Ms: middle(rounds, (round) => round.p50Ms, 4),
    p99Ms: middle(rounds, (round) => round.p99Ms, 4),
    failedPercent: middle(rounds, (round) => round.failedPercent, 2),
  };
}

function namingOverRounds(rounds: readonly NamingFigures[]): NamingFigures {
  return {
    ...rounds[0]!,
    idsPerSecond: middle(rounds, (round) => round.idsPerSecond, 0),
    p50Ms: middle(rounds, (round) => round.p50Ms, 4),
    p99Ms: middle(rounds, (round) => round.p99Ms, 4),
    redisCommandsPerId: middle(rounds, (round) => round.redisCommandsPerId, 2),
  };
}

function middle<T>(rounds: readonly T[], figure: (round: T) => number, digits: number): number {
  return rounded(median(rounds.map(figure)), digits);
}
