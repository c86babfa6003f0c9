/** What happens in the demo of the queue: how many come and when, and what each does with an offer. */
import { randomInt } from 'node:crypto';
import { Option } from 'commander';
import { z } from 'zod';
import { whole } from '../../../config/values/schemas.ts';
import { InvalidInput } from '../../../engine/errors.ts';
import { seededRandom } from '../../command/seeded-random.ts';

export interface QueuePlan {
  readonly order: 'fifo' | 'draw';
  readonly stock: number;
  readonly segments: number;
  /** How many people the crowd has. Each wants one unit. */
  readonly buyers: number;
  readonly seed: number;
  /** From the creation of the sale until its window opens. */
  readonly opensInMs: number;
  /** Those who come late come within this time after the window has opened. */
  readonly lateMs: number;
  /** How long somebody thinks about an offer at most. */
  readonly thinksMs: number;
  readonly offerSeconds: number;
  /** Offers in a minute at most. Without a limit, the first offers are all made at once, and nobody sees places move. */
  readonly offersPerMinute: number;
}

const DEFAULTS = { stock: 100, segments: 8, buyers: 200, opensIn: 20 };
const SEEDS = 2 ** 31;
/** The first offers are spread over this time. */
const FIRST_OFFERS_S = 15;
/** Each listens to its place by a connection of its own. */
const MAX_BUYERS = 2_000;
/** Options of the rush, which mean nothing here. */
const OF_THE_RUSH = ['requests', 'concurrency'];

export const queueOptions = [
  new Option('--queue [order]', 'show a sale with a queue instead, with a page that you can open')
    .choices(['fifo', 'draw'])
    .preset('fifo'),
  new Option('--opens-in <s>', `with --queue: seconds until the sale opens (default: ${DEFAULTS.opensIn})`),
];

const bounds = {
  stock: whole(1, 1_000_000),
  segments: whole(1, 1_024),
  buyers: whole(1, MAX_BUYERS),
  seed: whole(0, SEEDS - 1),
  opensIn: whole(1, 3_600),
};

/** @throws InvalidInput with all faults at once */
export function queuePlanFrom(options: Readonly<Record<string, unknown>>): QueuePlan {
  const given = Object.fromEntries(
    Object.keys(bounds).flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
  );
  const parsed = z.object(bounds).safeParse({ ...DEFAULTS, seed: randomInt(SEEDS), ...given });
  const faults = [
    ...OF_THE_RUSH.filter((name) => options[name] !== undefined).map((name) => ({
      field: `--${name}`,
      problem: 'means nothing with --queue: leave it out',
    })),
    ...(parsed.error?.issues ?? []).map(({ path: [name], message }) => ({
      field: name === 'opensIn' ? '--opens-in' : `--${String(name)}`,
      problem: `is ${JSON.stringify(given[String(name)])}, but ${message}`,
    })),
  ];
  if (!parsed.success || faults.length > 0) throw new InvalidInput("the demo can't run", faults);
  const { opensIn, ...rest } = parsed.data;
  const order = options.queue === 'draw' ? 'draw' : 'fifo';
  return {
    ...{ ...rest, order, opensInMs: opensIn * 1_000, lateMs: 10_000, thinksMs: 8_000, offerSeconds: 20 },
    offersPerMinute: Math.ceil((rest.stock * 60) / FIRST_OFFERS_S),
  };
}

export type Deed = 'buys' | 'gives back' | 'lets it lapse';

export interface Person {
  /** After the creation of the sale. */
  readonly comesAtMs: number;
  readonly deed: Deed;
  /** How long it thinks about an offer. */
  readonly thinksMs: number;
}

const [GIVE_BACK, LET_LAPSE] = [0.25, 0.1];
/** This share of the crowd comes before the window opens. */
const EARLY = 0.6;
/** Nobody comes in the last part of the lobby, so that a visitor who opens the page sees it complete. */
const LOBBY_FILLS = 0.8;

/** The people in the order in which they come. The same plan has the same people. */
export function peopleOf({ stock, buyers, seed, opensInMs, lateMs, thinksMs }: QueuePlan): Person[] {
  const random = seededRandom(seed);
  const early = Math.round(buyers * EARLY);
  return Array.from({ length: buyers }, (_, nth) => {
    const comesAtMs =
      nth < early
        ? (nth / early) * LOBBY_FILLS * opensInMs
        : opensInMs + ((nth - early) / (buyers - early)) * lateMs;
    return { comesAtMs, deed: deedOf(random(), nth < stock), thinksMs: (0.2 + 0.8 * random()) * thinksMs };
  });
}

/** Only buyers who get one of the first offers let it lapse: everybody behind has to wait for the units of a lapsed offer. */
function deedOf(drawn: number, isEarly: boolean): Deed {
  if (drawn < GIVE_BACK) return 'gives back';
  return isEarly && drawn < GIVE_BACK + LET_LAPSE ? 'lets it lapse' : 'buys';
}

/** The one whose place is shown: many in the lobby come before it, so its place has far to go. */
export function shownPerson(people: readonly Person[]): number {
  const candidates = people.flatMap(({ deed }, nth) => (deed === 'buys' ? [nth] : []));
  const wanted = Math.floor(people.length * EARLY * 0.7);
  return candidates.reduce(
    (best, nth) => (Math.abs(nth - wanted) < Math.abs(best - wanted) ? nth : best),
    candidates[0] ?? 0,
  );
}
