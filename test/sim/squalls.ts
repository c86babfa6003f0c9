/**
 * Squalls: weather for one kind of bug each. What a bug needs to show may be three misfortunes in a row, which mixed weather
 * has in one of thousands of seeds.
 */
import type { Random } from '../support/random.ts';
import type { Scenario } from './scenario.ts';

type Squall = (scenario: Scenario, random: Random) => Scenario;

const NO_STORM = {
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

/** Batches of one log are under way side by side when the first one's connection breaks, and two syncs have one sale. */
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

/** The sale is built anew while buyers come, who do not wait for Postgres. */
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

/** Redis is back without what it took while Postgres was away, and the same buyers and nodes go on. */
const setBack: Squall = ({ node, weather, ...scenario }, { whole }) => ({
  ...scenario,
  redisServers: 1,
  nodes: 2,
  node: { ...node, workers: 2, maxLogOrders: 1_000 },
  stock: 32,
  segments: whole(1, 2),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 24,
  requests: 48,
  changesOrder: 0.1,
  awaitsCommit: 0.5,
  lastsMs: 500,
  weather: { ...weather, ...NO_STORM, isLossy: true, setbacks: whole(1, 3) },
});

const SQUALLS: readonly Squall[] = [brokenBatches, lateRefusals, rebuiltInTheRush, setBack];

/** @param nth which of the squalls: they take turns */
export function squallOf(nth: number, scenario: Scenario, random: Random): Scenario {
  return SQUALLS[nth % SQUALLS.length]!(scenario, random);
}
