/** Derives a run from its seed: the sale, the nodes, the number of buyers, and the weather. */
import type { Random } from '../../support/random.ts';
import type { Moment } from '../faults/moments.ts';
import type { NodeOptions } from '../machines/sim-node.ts';
import { type QueuePlan, queueOf } from '../queue/queue-plan.ts';
import { type Dealings, dealingOf, NO_DEALINGS } from './dealings.ts';
import { type OtherSale, otherSale } from './other-sales.ts';
import { squallOf } from './squalls.ts';

export interface Scenario {
  readonly redisServers: number;
  readonly nodes: number;
  /** Further processes that run a sync and serve nobody. */
  readonly syncs: number;
  readonly node: NodeOptions;
  readonly stock: number;
  readonly segments: number;
  readonly limit: number;
  readonly payWithinSeconds: number | undefined;
  /** How often the sale is deleted and made again with its id, while the others sell. */
  readonly lives: number;
  /** How long the operator who does that may pause before the next step. */
  readonly pauseMs: number;
  /** The sales beside the first one. They have the same buyers. */
  readonly others: readonly OtherSale[];
  readonly buyers: number;
  readonly requests: number;
  /** The chance that a buyer returns its order, or pays it first. */
  readonly changesOrder: number;
  /** The chance that a buyer waits until its order is in Postgres. */
  readonly awaitsCommit: number;
  /** Whether all buyers use the first node while it is up. */
  readonly asksOneNode: boolean;
  /** How long buyers and faults come, in virtual milliseconds. */
  readonly lastsMs: number;
  /** Which faults may happen, and how often each. */
  readonly weather: Weather;
  readonly dealings: Dealings;
  /** Absent: the sale has no queue. */
  readonly queue?: QueuePlan;
}

export interface Weather {
  readonly cut: number;
  readonly slow: number;
  readonly slowMs: number;
  readonly nodeDeaths: number;
  readonly redisDeaths: number;
  readonly isLossy: boolean;
  readonly isEmptied: boolean;
  readonly postgresDeaths: number;
  readonly hangs: number;
  readonly jumps: number;
  /** How far a clock jumps at most, in milliseconds. Absent: by JUMP_MS (storm.ts). */
  readonly jumpMs?: number;
  readonly changes: number;
  /** The chance that a connection to Postgres breaks at a packet, in addition to `cut`. */
  readonly cutPostgres: number;
  /** How often the connections break that hold the locks of syncs. A sync does not notice that it has lost its lock. */
  readonly lockBreaks: number;
  /** The chances that a message between nodes is lost, and that it is late, repeated, or both. */
  readonly lostMessages: number;
  /** The chance for each connection to Redis that its answers are always late, and the longest delay. */
  readonly drags: number;
  /** Instead, the answers to all takes are late, and no others. */
  readonly dragsTakes: boolean;
  readonly dragMs: number;
  /** How often connections of a node to Redis hang. Each is chosen at random. */
  readonly deafness: number;
  /** How often an operator adds units. */
  readonly topUps: number;
  /** The chance that a new connection to Redis passes nothing at first, and for how long at most. */
  readonly lateLinks: number;
  readonly lateLinkMs: number;
  /** How often Postgres dies, and then Redis loses writes that were not in Postgres, and is back at once. */
  readonly setbacks: number;
  /** Whether such a loss comes just after the next take, and is only what was taken since Postgres died. */
  readonly losesUnread: boolean;
  /** How often Redis loses the buyers' records that a rebuild has loaded, and not the segments, and is back at once. */
  readonly recordLosses: number;
  /** How often a server goes back to just before a rebuild froze its segments, while the rebuild loads. It lacks no order then. */
  readonly unfreezes: number;
  /** How often Redis loses units that were just taken, also for offers, and is back at once. Postgres stays. Absent: never. */
  readonly takeLosses?: number;
  /** How often an operator has the sale rebuilt: a resize or a repair. */
  readonly rebuilds: number;
  /** How often a sync is disturbed while it has orders of a sale to copy. */
  readonly disturbances: number;
  /** At which moments all nodes die, once at each. */
  readonly allDieAt: readonly Moment[];
}

const CLUSTER = 3;

/** Every third seed has a squall: weather in which one kind of bug shows. Other seeds are not affected. */
const SQUALL_EVERY = 3;

/** Every ninth seed has a dealing: the fourth of nine, which never has a squall. */
const DEALINGS_EVERY = 9;
const DEALINGS_FIRST = 4;

/** The chance that a seed without a squall, a dealing or a queue has a second sale. */
const OTHER_SALE = 0.15;

export function scenarioOf(seed: number, random: Random): Scenario {
  const scenario = mixedWeather(random);
  if (seed % SQUALL_EVERY === 0) return squallOf(seed / SQUALL_EVERY, scenario, random);
  const nth = (seed - DEALINGS_FIRST) / DEALINGS_EVERY;
  if (Number.isInteger(nth)) return dealingOf(nth, scenario, random);
  const queued = queueOf(seed, scenario);
  if (queued) return queued;
  return random.chance(OTHER_SALE) ? { ...scenario, others: [otherSale(random)] } : scenario;
}

export function mixedWeather(random: Random): Scenario {
  const { whole, chance, pick } = random;
  const isLossy = chance(0.35);
  const rarely = (most: number) => (chance(0.5) ? whole(1, most) : 0);
  return {
    redisServers: chance(0.3) ? CLUSTER : 1,
    nodes: whole(1, 2),
    syncs: 0,
    node: {
      workers: whole(1, 2),
      requestDeadlineMs: pick([800, 1_500]),
      takeTimeoutMs: pick([100, 300]),
      maxLogOrders: pick([4, 1_000]),
      batchRows: pick([1, 4, 100]),
      rebalanceEveryMs: pick([0, 300]),
    },
    stock: pick([1, 2, 4, 8, 16]),
    segments: pick([1, 2, 3, 5]),
    limit: pick([1, 1, 2, 3]),
    payWithinSeconds: chance(0.35) ? 1 : undefined,
    lives: 0,
    pauseMs: 0,
    others: [],
    buyers: whole(4, 12),
    requests: whole(8, 32),
    changesOrder: 0.5,
    awaitsCommit: 0.7,
    asksOneNode: false,
    lastsMs: pick([400, 1_000, 2_000]),
    weather: {
      cut: chance(0.6) ? pick([0.003, 0.01, 0.03]) : 0,
      slow: chance(0.6) ? pick([0.01, 0.05]) : 0,
      slowMs: pick([20, 150, 600]),
      nodeDeaths: rarely(3),
      redisDeaths: isLossy ? whole(1, 3) : rarely(2),
      isLossy,
      isEmptied: isLossy && chance(0.25),
      postgresDeaths: rarely(2),
      hangs: rarely(4),
      jumps: rarely(4),
      changes: rarely(5),
      cutPostgres: 0,
      lockBreaks: 0,
      lostMessages: 0,
      setbacks: 0,
      drags: 0,
      dragMs: 0,
      dragsTakes: false,
      deafness: 0,
      topUps: 0,
      losesUnread: false,
      lateLinks: 0,
      lateLinkMs: 0,
      recordLosses: 0,
      unfreezes: 0,
      rebuilds: 0,
      disturbances: 0,
      allDieAt: [],
    },
    dealings: NO_DEALINGS,
  };
}
