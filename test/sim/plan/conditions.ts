/**
 * Conditions under which a seed may be run, instead of those that it draws: squalls, dealings, and directed forms of them that no
 * seed draws. Each planted bug names the conditions in which about one seed in three finds it (mutations.ts).
 *
 * A directed form makes one coincidence likely that mixed weather has in one of hundreds of seeds. It leaves everything else to
 * chance, and the auditor and the finale are the same. Without a planted bug every promise must hold under it, too.
 */
import type { Random } from '../../support/random.ts';
import { absentees, lobby, lostOffers, queued, restlessQueue, setClocks } from '../queue/queue-plan.ts';
import { DEALINGS } from './dealings.ts';
import { mixedWeather, type Scenario } from './scenario.ts';
import { NO_STORM, SQUALLS } from './squalls.ts';

type Draw = (scenario: Scenario, random: Random) => Scenario;

/** Units are added while the reply is on its way that nothing is left. All buyers use one lane. */
const lateEmpty: Draw = (scenario, random) => {
  const { weather, node, dealings, ...rest } = SQUALLS.lateNews(scenario, random);
  return {
    ...rest,
    node: { ...node, workers: 1 },
    segments: 1,
    buyers: 100,
    requests: 100,
    lastsMs: 1_500,
    weather: {
      ...weather,
      drags: 0,
      dragsTakes: true,
      dragMs: 200,
      deafness: 0,
      topUps: 0,
      lostMessages: 0,
    },
    dealings: { ...dealings, refills: 12 },
  };
};

/** Redis loses orders that no sync has read, and messages that would show the loss get lost too. */
const unreadLost: Draw = (scenario, random) => {
  const { weather, ...rest } = SQUALLS.setBack(scenario, random);
  return {
    ...rest,
    awaitsCommit: 0.2,
    lastsMs: 1_500,
    requests: 48,
    weather: { ...weather, losesUnread: true, drags: 0, lostMessages: 0.6, setbacks: 4 },
  };
};

/** Redis loses orders that no sync has read. Others reuse their numbers before the lane that took them is back. */
const lateReturns: Draw = (scenario, random) => {
  const { weather, node, ...rest } = SQUALLS.setBack(scenario, random);
  return {
    ...rest,
    node: { ...node, workers: 1, requestDeadlineMs: 1_500 },
    segments: 1,
    stock: 64,
    awaitsCommit: 0.9,
    requests: 48,
    lastsMs: 3_000,
    weather: {
      ...weather,
      losesUnread: true,
      drags: 0,
      lostMessages: 0,
      setbacks: 5,
      lateLinks: 0.4,
      lateLinkMs: 1_500,
    },
  };
};

/** Buyers cancel and operators add units; then Redis loses its last writes, and few purchases come that would show it. */
const lostUnits: Draw = ({ weather, node, ...scenario }, { whole }) => ({
  ...scenario,
  redisServers: 1,
  nodes: 2,
  node: { ...node, workers: 1, maxLogOrders: 1_000 },
  stock: 32,
  segments: whole(1, 2),
  payWithinSeconds: undefined,
  buyers: 12,
  requests: 12,
  changesOrder: 0.95,
  awaitsCommit: 1,
  lastsMs: 2_000,
  weather: { ...weather, ...NO_STORM, isLossy: true, redisDeaths: whole(4, 8), topUps: whole(2, 4) },
});

/** Redis loses orders that no sync has read. The sale is closed before the lane that took them is back. */
const lostAndClosed: Draw = (scenario, random) => {
  const { weather, dealings, ...rest } = lateReturns(scenario, random);
  return {
    ...rest,
    awaitsCommit: 0.1,
    asksOneNode: true,
    requests: 24,
    lastsMs: 2_000,
    weather: { ...weather, setbacks: 1, lateLinks: 0.5, lateLinkMs: 3_000 },
    dealings: { ...dealings, closesAtMs: 0, closesAfterLoss: true },
  };
};

/** A server of a cluster is emptied, and the sale is closed. */
const emptiedAndClosed: Draw = ({ weather, dealings, ...scenario }, { whole }) => ({
  ...scenario,
  redisServers: 3,
  segments: whole(4, 6),
  lastsMs: 3_000,
  requests: 12,
  weather: { ...weather, ...NO_STORM, isEmptied: true },
  dealings: { ...dealings, pairs: 0, refills: 0, closesAtMs: whole(100, 600) },
});

/** On a cluster, all nodes die in the middle of a transfer. */
const diesTransferring: Draw = (scenario, random) => {
  const { weather, ...rest } = SQUALLS.lastOnTheWay(scenario, random);
  return { ...rest, weather: { ...weather, nodeDeaths: 0, topUps: 0, allDieAt: ['transfer', 'unsettled'] } };
};

/** The same, with purchases that wait only for a short time. A lane that finds units on their way asks again at once. */
const leftTransferring: Draw = (scenario, random) => {
  const { node, ...rest } = diesTransferring(scenario, random);
  return {
    ...rest,
    node: { ...node, workers: 1, requestDeadlineMs: 400 },
    requests: 40,
    lastsMs: 500,
  };
};

/** All nodes die when the sale is closed and orders are left in its logs. */
const diesClosing: Draw = (scenario, random) => {
  const { weather, ...rest } = DEALINGS.closedInTheRush(scenario, random);
  return { ...rest, weather: { ...weather, nodeDeaths: 0, allDieAt: ['closedWithBacklog'] } };
};

/** The sale is rebuilt several times in a dense rush. */
const rebuiltAgain: Draw = (scenario, random) => {
  const { weather, ...rest } = SQUALLS.rebuiltInTheRush(scenario, random);
  return {
    ...rest,
    stock: 64,
    requests: 80,
    lastsMs: 300,
    weather: {
      ...weather,
      changes: 0,
      rebuilds: random.whole(3, 6),
      slow: 0.2,
      slowMs: random.pick([10, 40]),
    },
  };
};

/** Redis goes back while the sale is rebuilt: to before the buyers' records were loaded, and after the segments were. */
const recordsLost: Draw = (scenario, random) => {
  const { weather, ...rest } = rebuiltAgain(scenario, random);
  return { ...rest, lastsMs: 600, weather: { ...weather, rebuilds: 3, recordLosses: 4 } };
};

/**
 * On a cluster, the sale is resized slowly, and mostly to fewer segments. Meanwhile a server goes back to before its segments
 * were frozen: so they sell in the old generation.
 */
const sellsAgain: Draw = ({ weather, node, ...scenario }, { whole }) => ({
  ...scenario,
  redisServers: 3,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000, rebalanceEveryMs: 0, requestDeadlineMs: 4_000, takeTimeoutMs: 300 },
  stock: 60,
  segments: 5,
  limit: 2,
  payWithinSeconds: undefined,
  buyers: 40,
  requests: 80,
  changesOrder: 0,
  awaitsCommit: 0.3,
  lastsMs: 4_000,
  weather: { ...weather, ...NO_STORM, rebuilds: whole(3, 5), unfreezes: 3 },
});

/** Nodes start while servers of their cluster are down. */
const startsAlone: Draw = ({ weather, ...scenario }, { whole }) => ({
  ...scenario,
  redisServers: 3,
  nodes: 2,
  weather: {
    ...weather,
    redisDeaths: whole(3, 6),
    nodeDeaths: whole(3, 6),
    isLossy: false,
    isEmptied: false,
  },
});

/** Syncs lose their locks with batches under way, so that two syncs serve the sale. */
const lostLocks: Draw = (scenario, random) => {
  const { weather, ...rest } = SQUALLS.brokenBatches(scenario, random);
  return { ...rest, weather: { ...weather, cutPostgres: 0.05, lockBreaks: random.whole(6, 12) } };
};

/** Replies come later than a take waits for them, so that takes are repeated. */
const lostReplies: Draw = ({ weather, node, ...scenario }, { whole }) => ({
  ...scenario,
  node: { ...node, takeTimeoutMs: 100, requestDeadlineMs: 1_500, maxLogOrders: 1_000 },
  stock: 64,
  segments: whole(1, 2),
  limit: 3,
  payWithinSeconds: undefined,
  buyers: 12,
  requests: 40,
  lastsMs: 1_000,
  weather: {
    ...weather,
    ...NO_STORM,
    slow: 0.15,
    slowMs: 600,
    cut: 0.01,
  },
});

/** Takes are held up on their way to Redis, for longer than their buyers wait. */
const heldUp: Draw = (scenario, random) => {
  const { weather, node, ...rest } = lostReplies(scenario, random);
  return {
    ...rest,
    redisServers: 1,
    nodes: 2,
    node: { ...node, workers: 1, requestDeadlineMs: 400 },
    stock: 200,
    segments: 1,
    requests: 30,
    buyers: 20,
    weather: { ...weather, slowMs: 1_200, cut: 0.05 },
  };
};

/** Replies get lost, and orders expire before their takes are repeated. Then others buy the units. */
const endsUnheard: Draw = (scenario, random) => {
  const { weather, node, ...rest } = lostReplies(scenario, random);
  return {
    ...rest,
    redisServers: 1,
    nodes: 4,
    node: { ...node, requestDeadlineMs: 4_000 },
    stock: 14,
    segments: 1,
    limit: 1,
    payWithinSeconds: 1,
    buyers: 300,
    requests: 500,
    lastsMs: 3_000,
    weather: {
      ...weather,
      slow: 0,
      cut: 0,
      dragsTakes: true,
      dragMs: 200,
      lateLinks: 0.6,
      lateLinkMs: 3_500,
    },
  };
};

/** Replies are lost, and then Redis loses the takes. Others buy the units, and none come back. */
const setBackUnheard: Draw = (scenario, random) => {
  const { weather, ...rest } = endsUnheard(scenario, random);
  return {
    ...rest,
    payWithinSeconds: undefined,
    changesOrder: 0,
    stock: 30,
    lastsMs: 1_000,
    // All nodes are back at the same time: so others have bought the units before a sync sees the loss.
    weather: { ...weather, isLossy: true, redisDeaths: random.whole(6, 9), lateLinks: 0 },
  };
};

/** Nodes die and connections break while units come back or are added. */
const cutReturns: Draw = ({ weather, node, ...scenario }, { whole }) => ({
  ...scenario,
  nodes: 2,
  node: { ...node, maxLogOrders: 1_000 },
  stock: 8,
  segments: whole(1, 3),
  payWithinSeconds: undefined,
  buyers: 12,
  requests: 40,
  changesOrder: 0.95,
  awaitsCommit: 1,
  lastsMs: 1_000,
  weather: {
    ...weather,
    ...NO_STORM,
    cut: 0.02,
    slow: 0.2,
    slowMs: 100,
    nodeDeaths: whole(3, 6),
    topUps: whole(3, 6),
  },
});

/** Units are added while connections hang from Redis to the only node that buyers use. */
const deafBoards: Draw = (scenario, random) => {
  const { weather, ...rest } = SQUALLS.lateNews(scenario, random);
  return {
    ...rest,
    lastsMs: 1_500,
    weather: {
      ...weather,
      drags: 0,
      deafness: random.whole(8, 14),
      topUps: random.whole(6, 10),
      lostMessages: 0,
    },
  };
};

/** Units of expired orders are sold again before the late payment comes. */
const paidTooLate: Draw = (scenario, random) => {
  const { weather, ...rest } = DEALINGS.payDay(scenario, random);
  return {
    ...rest,
    stock: random.whole(4, 8),
    limit: 1,
    buyers: 40,
    requests: 80,
    lastsMs: 3_000,
    weather: { ...weather, cut: 0, nodeDeaths: 0, postgresDeaths: 0, jumps: 0, topUps: 0 },
  };
};

/** Operators in pairs, in calm weather. */
const crossingHands: Draw = (scenario, random) => {
  const { weather, dealings, ...rest } = DEALINGS.manyHands(scenario, random);
  return {
    ...rest,
    requests: 10,
    lastsMs: 1_500,
    weather: { ...weather, nodeDeaths: 0, cut: 0, cutPostgres: 0 },
    dealings: { ...dealings, pairs: random.whole(20, 40), closesAtMs: 0 },
  };
};

/** A withdrawal ends while another process undoes it. */
const undoneHands: Draw = (scenario, random) => {
  const { dealings, ...rest } = DEALINGS.slowHands(scenario, random);
  return { ...rest, dealings: { ...dealings, slowWithdrawals: 0, undoneWithdrawals: 1 } };
};

/** Many buyers buy for the first time while a draft is written. */
const busyDrafts: Draw = (scenario, random) => ({
  ...DEALINGS.slowDrafts(scenario, random),
  stock: 200,
  limit: 1,
  buyers: 100,
  requests: 200,
  changesOrder: 0,
  lastsMs: 3_500,
});

/** The clock of Postgres is set back while a draft is written. */
const draftsOverSetClocks: Draw = (scenario, random) => {
  const { dealings, ...rest } = busyDrafts(scenario, random);
  return { ...rest, dealings: { ...dealings, setsClockBack: true } };
};

/** A sale is deleted and made again on a node that has the only sync. @param pauseMs see `Scenario` */
function madeAgainOnOneNode(lives: number, pauseMs: number): Draw {
  return (scenario, random) => {
    const { weather, node, others, ...rest } = DEALINGS.madeAgain(scenario, random);
    return {
      ...rest,
      nodes: 1,
      node: { ...node, batchRows: 100 },
      others: others.map((other) => ({ ...other, stock: 16, segments: 1, lives, pauseMs })),
      requests: 10,
      lastsMs: 1_500,
      weather: { ...weather, cut: 0, slow: 0, nodeDeaths: 0, lostMessages: 0 },
    };
  };
}

/** Sync sees the sale closed and archived before it is deleted. */
const madeAgainLater = madeAgainOnOneNode(1, 2_500);

/** Buyers are erased while they buy without a pause, and orders wait in the logs. */
const erasedInTheRush: Draw = (scenario, random) => {
  const { weather, node, dealings, ...rest } = DEALINGS.leavers(scenario, random);
  return {
    ...rest,
    node: { ...node, batchRows: 1 },
    stock: 200,
    limit: 60,
    buyers: 3,
    requests: 160,
    changesOrder: 0,
    awaitsCommit: 0,
    weather: { ...weather, nodeDeaths: 0, rebuilds: 0, cut: 0, slow: 0.3, slowMs: 60 },
    dealings: { ...dealings, erasures: 6, deletes: false, closesAtMs: 0 },
  };
};

const CONDITIONS = {
  mixedWeather: (scenario: Scenario) => scenario,
  ...SQUALLS,
  ...DEALINGS,
  lateEmpty,
  unreadLost,
  lateReturns,
  lostUnits,
  lostAndClosed,
  emptiedAndClosed,
  diesTransferring,
  leftTransferring,
  diesClosing,
  rebuiltAgain,
  recordsLost,
  sellsAgain,
  startsAlone,
  lostLocks,
  lostReplies,
  heldUp,
  endsUnheard,
  setBackUnheard,
  cutReturns,
  deafBoards,
  paidTooLate,
  crossingHands,
  undoneHands,
  busyDrafts,
  draftsOverSetClocks,
  erasedInTheRush,
  madeAgainLater,
  queued,
  restlessQueue,
  lostOffers,
  absentees,
  lobby,
  setClocks,
} satisfies Record<string, Draw>;

export type Conditions = keyof typeof CONDITIONS;

export function isConditions(name: string): name is Conditions {
  return Object.hasOwn(CONDITIONS, name);
}

export const ALL_CONDITIONS = Object.keys(CONDITIONS);

export function scenarioIn(conditions: Conditions, random: Random): Scenario {
  return CONDITIONS[conditions](mixedWeather(random), random);
}
