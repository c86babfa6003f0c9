/**
 * A squall is weather for one kind of bug. Some bugs need three coinciding faults to show, which mixed weather has in one of
 * thousands of seeds.
 */
import type { Random } from '../../support/random.ts';
import { NO_DEALINGS } from './dealings.ts';
import { otherSale } from './other-sales.ts';
import type { Scenario } from './scenario.ts';

type Squall = (scenario: Scenario, random: Random) => Scenario;

export const NO_STORM = {
  cut: 0,
  slow: 0,
  nodeDeaths: 0,
  redisDeaths: 0,
  isLossy: false,
  isEmptied: false,
  postgresDeaths: 0,
  hangs: 0,
  jumps: 0,
  changes: 0,
};

/**
 * Batches of one log are under way at the same time when the connection of the first breaks, and two syncs serve one
 * sale.
 */
const brokenBatches: Squall = ({ node, weather, ...scenario }, { whole, pick }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, workers: 2, batchRows: 1, maxLogOrders: 1_000 },
  stock: 16,
  segments: whole(1, 2),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 24,
  requests: 40,
  lastsMs: 400,
  weather: { ...weather, ...NO_STORM, cutPostgres: pick([0.05, 0.15]), lockBreaks: whole(0, 4) },
});

/** Units come back just as the last buyers are refused, and messages about it are lost or late. */
const lateRefusals: Squall = ({ node, weather, ...scenario }, { whole, pick }) => ({
  ...scenario,
  redisServers: 1,
  nodes: 2,
  node: { ...node, requestDeadlineMs: 1_500, takeTimeoutMs: 300 },
  stock: whole(1, 4),
  segments: whole(1, 2),
  limit: 1,
  payWithinSeconds: undefined,
  buyers: 24,
  requests: 48,
  changesOrder: 0.95,
  awaitsCommit: 1,
  lastsMs: 700,
  weather: {
    ...weather,
    ...NO_STORM,
    slow: pick([0.1, 0.3]),
    slowMs: pick([20, 60]),
    hangs: whole(0, 4),
    lostMessages: pick([0, 0.1, 0.5]),
  },
});

/** The sale is rebuilt while buyers come that do not wait for Postgres. */
const rebuiltInTheRush: Squall = ({ node, weather, ...scenario }, { whole, pick }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, batchRows: 1, maxLogOrders: 1_000 },
  stock: 32,
  segments: whole(1, 3),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 24,
  requests: 48,
  awaitsCommit: 0.3,
  lastsMs: 400,
  weather: {
    ...weather,
    ...NO_STORM,
    slow: pick([0, 0.1, 0.3]),
    slowMs: pick([10, 40]),
    changes: whole(5, 12),
    lostMessages: pick([0, 0.3]),
  },
});

/**
 * Redis comes back without the orders that it took while Postgres was away. The same buyers and nodes go on, and the nodes may
 * not know which orders are missing. Replies to the last of these takes are lost too.
 */
const setBack: Squall = ({ node, weather, ...scenario }, { whole, pick }) => ({
  ...scenario,
  redisServers: 1,
  nodes: 2,
  node: { ...node, workers: pick([2, 4]), maxLogOrders: 1_000, requestDeadlineMs: pick([400, 1_500]) },
  stock: 32,
  segments: whole(1, 2),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 24,
  requests: pick([16, 48]),
  changesOrder: 0.1,
  awaitsCommit: pick([0.2, 0.6]),
  lastsMs: 500,
  weather: {
    ...weather,
    ...NO_STORM,
    isLossy: true,
    setbacks: whole(1, 4),
    drags: pick([0, 0.5]),
    dragMs: 80,
    lostMessages: pick([0, 0.6]),
  },
});

/**
 * Units are added while all buyers use one node. Either Redis' answers to that node are late for a short while, so that newer
 * messages overtake them, or some of its connections to Redis hang for long.
 */
const lateNews: Squall = ({ node, weather, ...scenario }, { whole, pick, chance }) => {
  const isLate = chance(0.6);
  return {
    ...scenario,
    redisServers: 1,
    nodes: 2,
    node: { ...node, workers: whole(1, 2), requestDeadlineMs: 1_500, takeTimeoutMs: 300 },
    stock: whole(1, 2),
    segments: whole(1, 2),
    limit: 1,
    payWithinSeconds: undefined,
    buyers: 60,
    requests: 60,
    changesOrder: 0,
    awaitsCommit: 0.5,
    asksOneNode: true,
    lastsMs: isLate ? 400 : 1_500,
    weather: {
      ...weather,
      ...NO_STORM,
      drags: isLate ? 0.4 : 0,
      dragMs: 200,
      deafness: isLate ? 0 : whole(1, 4),
      topUps: isLate ? whole(2, 4) : whole(2, 6),
      lostMessages: isLate ? 0 : pick([0, 0.3]),
    },
  };
};

/**
 * On a cluster, the last units are transferred slowly between segments, while nodes die and buyers ask for these
 * units.
 */
const lastOnTheWay: Squall = ({ node, weather, ...scenario }, { whole, pick }) => ({
  ...scenario,
  redisServers: 3,
  nodes: 2,
  node: { ...node, takeTimeoutMs: pick([100, 300]), rebalanceEveryMs: pick([30, 100]) },
  stock: whole(2, 6),
  segments: whole(3, 5),
  limit: pick([1, 2]),
  payWithinSeconds: undefined,
  buyers: 24,
  requests: 48,
  changesOrder: pick([0, 0.3]),
  awaitsCommit: 0.3,
  lastsMs: 1_000,
  weather: {
    ...weather,
    ...NO_STORM,
    slow: pick([0.1, 0.3]),
    slowMs: pick([20, 60, 150]),
    nodeDeaths: whole(2, 8),
    topUps: whole(0, 3),
  },
});

/**
 * Several processes share several sales. Syncs come, stop, stall, and lose their locks while they have batches under way, several
 * times in short order. Meanwhile operators delete sales, make them again, and erase buyers.
 */
const handOvers: Squall = ({ node, weather, ...scenario }, random) => {
  const { whole, pick, chance } = random;
  return {
    ...scenario,
    nodes: whole(1, 2),
    syncs: 2,
    node: { ...node, workers: 1, batchRows: pick([1, 4, 100]), maxLogOrders: 1_000, rebalanceEveryMs: 0 },
    stock: 32,
    segments: whole(1, 2),
    limit: 3,
    payWithinSeconds: undefined,
    others: Array.from({ length: 3 }, (_, i) => ({
      ...otherSale(random, i === 0 ? whole(0, 1) : 0),
      stock: 32,
      requests: 20,
    })),
    buyers: 16,
    requests: 20,
    changesOrder: pick([0, 0.3]),
    awaitsCommit: 0.6,
    lastsMs: pick([3_000, 5_000]),
    weather: {
      ...weather,
      ...NO_STORM,
      slow: pick([0, 0.1]),
      slowMs: pick([10, 60]),
      lostMessages: pick([0, 0, 0.3]),
      cutPostgres: pick([0, 0, 0.01]),
      disturbances: whole(2, 6),
    },
    dealings: { ...NO_DEALINGS, erasures: chance(0.5) ? whole(1, 2) : 0 },
  };
};

export const SQUALLS = {
  brokenBatches,
  lateRefusals,
  rebuiltInTheRush,
  setBack,
  lateNews,
  lastOnTheWay,
  handOvers,
} satisfies Record<string, Squall>;

const IN_TURN = Object.values(SQUALLS);

/** @param nth chooses the squall; they take turns */
export function squallOf(nth: number, scenario: Scenario, random: Random): Scenario {
  return IN_TURN[nth % IN_TURN.length]!(scenario, random);
}
