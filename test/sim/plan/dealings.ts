/**
 * Dealings are what happens to a sale and its orders after the purchase: buyers pay, and several operators act at once. Each
 * dealing comes with the weather in which its bugs show. Some seeds have one; the other seeds are not affected.
 */
import type { Random } from '../../support/random.ts';
import { otherSale } from './other-sales.ts';
import type { Scenario } from './scenario.ts';

export interface Dealings {
  /**
   * Buyers pay, in time or late; the shop redeems and refunds. Often two of these happen at once, at different nodes.
   */
  readonly payments: boolean;
  /** How often two operators change the sale at the same moment, at different nodes. */
  readonly pairs: number;
  /** How often an operator adds units soon after the last one was sold. */
  readonly refills: number;
  /** When the sale is closed; 0: never. */
  readonly closesAtMs: number;
  /** Whether the sale is closed once Redis has lost writes and Postgres is back. */
  readonly closesAfterLoss: boolean;
  /**
   * How often a withdrawal begins on a node that then can't reach Postgres until other processes undo the withdrawal.
   */
  readonly slowWithdrawals: number;
  /** The same, and the others are slow: the withdrawal ends while they undo it. */
  readonly undoneWithdrawals: number;
  /** How often a resize begins while a Redis server is unreachable. */
  readonly slowResizes: number;
  /** Whether the clock of Postgres is set back during each of these resizes. */
  readonly setsClockBack: boolean;
  /** How often an operator erases a buyer. */
  readonly erasures: number;
  /** Whether the sale is deleted at the end, and Redis comes back with an older copy of it. */
  readonly deletes: boolean;
}

export const NO_DEALINGS: Dealings = {
  payments: false,
  pairs: 0,
  refills: 0,
  closesAtMs: 0,
  closesAfterLoss: false,
  slowWithdrawals: 0,
  undoneWithdrawals: 0,
  slowResizes: 0,
  setsClockBack: false,
  erasures: 0,
  deletes: false,
};

type Dealing = (scenario: Scenario, random: Random) => Scenario;

const CALM = {
  ...{ cut: 0, slow: 0, nodeDeaths: 0, redisDeaths: 0, isLossy: false, isEmptied: false, postgresDeaths: 0 },
  ...{ hangs: 0, jumps: 0, changes: 0 },
};

/** Orders expire while they are paid. Units of some are sold again before the late payment comes. */
const payDay: Dealing = ({ weather, node, ...scenario }, { whole, chance, pick }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000 },
  stock: pick([2, 4, 8, 24]),
  limit: pick([1, 2]),
  payWithinSeconds: 1,
  buyers: 20,
  requests: 40,
  changesOrder: 0,
  awaitsCommit: 0.8,
  lastsMs: pick([2_000, 4_000]),
  weather: {
    ...weather,
    ...CALM,
    cut: pick([0, 0.003, 0.01]),
    slow: pick([0, 0.05, 0.2]),
    slowMs: pick([20, 150]),
    nodeDeaths: whole(0, 2),
    postgresDeaths: whole(0, 1),
    jumps: whole(0, 2),
    topUps: whole(0, 2),
  },
  dealings: { ...NO_DEALINGS, payments: true, closesAtMs: chance(0.2) ? whole(1_000, 2_000) : 0 },
});

/** Two operators at a time, at two nodes, while buyers come. At the end an operator may close the sale. */
const manyHands: Dealing = ({ weather, node, ...scenario }, { whole, chance, pick }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000 },
  stock: pick([4, 16]),
  payWithinSeconds: undefined,
  requests: 40,
  changesOrder: 0.3,
  awaitsCommit: 0.4,
  lastsMs: pick([500, 1_500]),
  weather: {
    ...weather,
    ...CALM,
    cut: pick([0, 0.003, 0.01]),
    slow: pick([0, 0.1, 0.3]),
    slowMs: pick([10, 60]),
    nodeDeaths: whole(0, 2),
    cutPostgres: pick([0, 0.02]),
  },
  dealings: { ...NO_DEALINGS, pairs: whole(3, 10), closesAtMs: chance(0.5) ? whole(200, 500) : 0 },
});

/** The sale is closed in the rush, and syncs die with orders in the logs. */
const closedInTheRush: Dealing = ({ weather, node, ...scenario }, { whole, pick }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000, batchRows: pick([1, 4]) },
  stock: 32,
  segments: whole(1, 3),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 24,
  requests: 60,
  changesOrder: 0.1,
  awaitsCommit: 0.2,
  lastsMs: 200,
  weather: { ...weather, ...CALM, slow: pick([0, 0.1]), slowMs: pick([10, 60]), nodeDeaths: whole(4, 8) },
  dealings: { ...NO_DEALINGS, closesAtMs: whole(10, 60) },
});

/** A slow withdrawal ends just when other processes undo it. */
const slowHands: Dealing = ({ weather, node, ...scenario }, { whole, pick }) => ({
  ...scenario,
  redisServers: 1,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000, rebalanceEveryMs: 0 },
  stock: 24,
  segments: whole(2, 5),
  limit: 2,
  payWithinSeconds: undefined,
  requests: 16,
  changesOrder: 0.3,
  lastsMs: 8_000,
  weather: { ...weather, ...CALM, slow: pick([0.2, 0.5]), slowMs: pick([150, 600]) },
  dealings: { ...NO_DEALINGS, slowWithdrawals: 1 },
});

/** On a cluster, the sale is resized while one server is unreachable and buyers go on at the others. */
const slowDrafts: Dealing = ({ weather, node, ...scenario }, { whole, pick }) => ({
  ...scenario,
  redisServers: 3,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000, rebalanceEveryMs: 0, requestDeadlineMs: 1_500, takeTimeoutMs: 300 },
  stock: 60,
  segments: whole(3, 5),
  limit: 2,
  payWithinSeconds: undefined,
  buyers: 40,
  requests: 80,
  changesOrder: pick([0, 0.3]),
  awaitsCommit: 0.5,
  lastsMs: 5_000,
  weather: { ...weather, ...CALM },
  dealings: { ...NO_DEALINGS, slowResizes: whole(1, 2) },
});

/** Operators erase buyers while these buy, and delete the sale at the end. */
const leavers: Dealing = ({ weather, node, ...scenario }, { whole, chance, pick }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000, batchRows: pick([1, 4, 100]) },
  stock: 32,
  segments: whole(1, 3),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 8,
  requests: 60,
  changesOrder: 0.4,
  awaitsCommit: 0.3,
  lastsMs: 4_000,
  weather: {
    ...weather,
    ...CALM,
    cut: pick([0, 0.003]),
    slow: pick([0, 0.1, 0.3]),
    slowMs: pick([10, 60]),
    nodeDeaths: whole(0, 3),
    rebuilds: whole(0, 2),
  },
  dealings: {
    ...NO_DEALINGS,
    erasures: whole(2, 6),
    deletes: true,
    closesAtMs: chance(0.3) ? whole(1_000, 3_000) : 0,
  },
});

/**
 * Beside a sale that sells, another one is closed, archived, deleted and made again with its id. Buyers ask for both all the
 * time.
 */
const madeAgain: Dealing = ({ weather, node, ...scenario }, random) => {
  const { whole, pick } = random;
  return {
    ...scenario,
    node: { ...node, maxLogOrders: 1_000 },
    stock: pick([4, 32]),
    segments: whole(1, 3),
    payWithinSeconds: undefined,
    others: [{ ...otherSale(random, whole(1, 3)), requests: 60 }],
    buyers: 16,
    requests: 30,
    changesOrder: pick([0, 0.3]),
    awaitsCommit: 0.6,
    lastsMs: pick([1_500, 3_000]),
    weather: {
      ...weather,
      ...CALM,
      cut: pick([0, 0.003]),
      slow: pick([0, 0.1]),
      slowMs: pick([10, 60]),
      nodeDeaths: whole(0, 2),
      lostMessages: pick([0, 0, 0.5]),
    },
  };
};

export const DEALINGS = {
  payDay,
  manyHands,
  slowHands,
  closedInTheRush,
  slowDrafts,
  leavers,
  madeAgain,
} satisfies Record<string, Dealing>;

const IN_TURN: readonly Dealing[] = [
  payDay,
  manyHands,
  slowHands,
  payDay,
  closedInTheRush,
  slowDrafts,
  leavers,
  madeAgain,
];

/** @param nth chooses the dealing; they take turns */
export function dealingOf(nth: number, scenario: Scenario, random: Random): Scenario {
  return IN_TURN[nth % IN_TURN.length]!(scenario, random);
}
