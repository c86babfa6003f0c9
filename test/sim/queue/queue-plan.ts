/** Scenarios in which the first sale has a queue. */
import { type Random, random } from '../../support/random.ts';
import { NO_DEALINGS } from '../plan/dealings.ts';
import type { Scenario } from '../plan/scenario.ts';
import { NO_STORM } from '../plan/squalls.ts';

export interface QueuePlan {
  readonly order: 'fifo' | 'draw';
  /** The window opens so many virtual milliseconds after the sale is made; `undefined`: it is open from the beginning. */
  readonly opensAfterMs?: number;
  /** 0: nobody is ever absent. */
  readonly presenceSeconds: number;
  readonly offerSeconds: number;
  readonly fit: 'wait' | 'less' | 'pass';
  /** Places behind the head, at most. */
  readonly maxWaiting: number;
  /** People who want units. Some of them come several times. */
  readonly people: number;
  /** Units that each of them asks for, at most. */
  readonly wants: number;
  /** How often an operator changes the settings of the queue. */
  readonly changes: number;
  /** Whether the operator also turns the queue off for a while. */
  readonly turnsOff: boolean;
  /** The chance that somebody leaves while a unit is taken for its place. */
  readonly leavesEarly: number;
  /** The chance that somebody asks no more for its place, and is absent from then on. */
  readonly vanishes: number;
}

type Draw = (scenario: Scenario, random: Random) => Scenario;

/** More places than people come. */
export const MANY = 1_000_000;

/** One in three of the seeds that can have a queue has one, which is one in five of all seeds. */
const HAS_QUEUE = 1 / 3;
/** So that its random numbers are others than those of the run. */
const STREAM = 0x71_65_75_65;

/** A queue in mixed weather. */
export const queued: Draw = ({ weather, node, ...scenario }, { whole, chance, pick }) => {
  const limit = pick([1, 2, 3]);
  return {
    ...scenario,
    nodes: 2,
    node: { ...node, requestDeadlineMs: 800, takeTimeoutMs: 100, maxLogOrders: 1_000, runsHead: true },
    stock: pick([2, 4, 8]),
    segments: whole(1, 3),
    limit,
    payWithinSeconds: chance(0.3) ? 1 : undefined,
    buyers: 4,
    requests: 4,
    lastsMs: pick([2_000, 4_000]),
    weather: {
      ...weather,
      slowMs: pick([20, 150]),
      jumps: chance(0.2) ? 1 : 0,
      isEmptied: false,
      changes: whole(0, 5),
      lockBreaks: whole(0, 3),
    },
    queue: {
      order: 'fifo',
      presenceSeconds: 0,
      offerSeconds: pick([1, 2, 600]),
      fit: pick(['wait', 'wait', 'less', 'pass']),
      maxWaiting: MANY,
      people: whole(8, 20),
      wants: chance(0.5) ? 1 : limit,
      changes: whole(0, 2),
      turnsOff: chance(0.3),
      leavesEarly: chance(0.5) ? 0.3 : 0,
      vanishes: 0,
    },
  };
};

/** Little happens but what the people in the queue do, who come, leave, and come again without a pause. */
export const restlessQueue: Draw = (scenario, random) => {
  const { weather, queue, ...rest } = queued(scenario, random);
  const { pick } = random;
  return {
    ...rest,
    redisServers: 1,
    stock: pick([1, 2, 4]),
    lastsMs: 3_000,
    weather: {
      ...weather,
      ...NO_STORM,
      changes: 0,
      slow: pick([0, 0.2]),
      slowMs: 60,
      topUps: 3,
      lockBreaks: 1,
    },
    dealings: NO_DEALINGS,
    queue: { ...queue!, offerSeconds: 1, people: 16, changes: 0, turnsOff: false, leavesEarly: 0.5 },
  };
};

/**
 * Redis loses units just after they were taken for offers, and the sale is rebuilt. More people come than there will be units, so
 * that the others take what a place does not get.
 */
export const lostOffers: Draw = (scenario, random) => {
  const { weather, queue, ...rest } = restlessQueue(scenario, random);
  return {
    ...rest,
    payWithinSeconds: undefined,
    weather: { ...weather, slow: 0, topUps: 1, lockBreaks: 0, takeLosses: 3, rebuilds: 1 },
    queue: { ...queue!, people: 20, wants: 1, leavesEarly: 0 },
  };
};

/** People stop asking for their places, in calm weather. */
export const absentees: Draw = (scenario, random) => {
  const { weather, queue, ...rest } = restlessQueue(scenario, random);
  const { pick } = random;
  return {
    ...rest,
    lastsMs: 8_000,
    weather: { ...weather, slow: 0, topUps: 6, lockBreaks: 0, postgresDeaths: random.whole(0, 1) },
    queue: { ...queue!, presenceSeconds: pick([1, 3]), wants: 1, people: 30, leavesEarly: 0, vanishes: 0.4 },
  };
};

/** Clocks are set by minutes while offers stand: those of nodes and of the stores. */
export const setClocks: Draw = (scenario, random) => {
  const { weather, ...rest } = queued(scenario, random);
  return { ...rest, weather: { ...weather, jumps: random.whole(3, 8), jumpMs: 240_000 } };
};

/** People come to a lobby, and the places are drawn when the window opens. Nodes die and hang meanwhile, some in the draw. */
export const lobby: Draw = (scenario, random) => {
  const { weather, queue, ...rest } = queued(scenario, random);
  const { pick, whole, chance } = random;
  const opensAfterMs = pick([500, 1_200]);
  return {
    ...rest,
    stock: pick([2, 4]),
    lastsMs: 3_000,
    weather: {
      ...weather,
      ...NO_STORM,
      changes: whole(0, 2),
      slow: pick([0, 0.1]),
      slowMs: 60,
      topUps: 3,
      nodeDeaths: whole(0, 2),
      hangs: whole(0, 3),
      lockBreaks: whole(0, 2),
      allDieAt: chance(0.5) ? ['drawing'] : [],
    },
    dealings: NO_DEALINGS,
    queue: { ...queue!, order: 'draw', opensAfterMs, wants: 1, fit: 'wait', changes: 0, turnsOff: false },
  };
};

/** In any weather that was drawn, also while Redis loses all data. Queues may be short. */
const anyWeather: Draw = (scenario, random) => {
  const { weather, ...rest } = queued(scenario, random);
  const { isEmptied, jumps } = scenario.weather;
  const maxWaiting = random.pick([3, 8, MANY]);
  return { ...rest, weather: { ...weather, isEmptied, jumps }, queue: { ...rest.queue!, maxWaiting } };
};

const DRAWN: readonly Draw[] = [anyWeather, anyWeather, queued, setClocks, restlessQueue, absentees, lobby];

/**
 * The scenario with a queue, if the seed has one. The seed draws it from random numbers of its own, so that the others mean the same
 * run as without queues.
 */
export function queueOf(seed: number, scenario: Scenario): Scenario | undefined {
  const own = random(seed ^ STREAM);
  return own.chance(HAS_QUEUE) ? own.pick(DRAWN)(scenario, own) : undefined;
}
