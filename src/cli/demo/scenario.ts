/** The parameters of a demo. A seeded generator draws the buyers, so that a run can be repeated. */
import { randomInt } from 'node:crypto';
import { Option } from 'commander';
import { z } from 'zod';
import { whole } from '../../config/values/schemas.ts';
import { InvalidInput } from '../../engine/errors.ts';
import { seededRandom } from '../command/seeded-random.ts';

export interface Scenario {
  readonly stock: number;
  readonly segments: number;
  /** How many different buyers there are; each request is of one of them. */
  readonly buyers: number;
  readonly requests: number;
  /** Clients, each with a connection of its own and one request in flight. */
  readonly concurrency: number;
  readonly seed: number;
}

/** The standard scenario, `S1` in reports: 200 clients, 100 requests each, 500 buyers, 100 units, one per buyer. */
const S1: Omit<Scenario, 'seed'> = {
  stock: 100,
  segments: 8,
  buyers: 500,
  requests: 20_000,
  concurrency: 200,
};

export const FIRST_BUYER = 100_003;
const SEEDS = 2 ** 31;

const bounds = {
  stock: whole(1, 1_000_000),
  segments: whole(1, 1_024),
  buyers: whole(1, 1_000_000),
  requests: whole(1, 10_000_000),
  concurrency: whole(1, 1_000),
  seed: whole(0, SEEDS - 1),
} satisfies Record<keyof Scenario, z.ZodType>;

export const scenarioOptions = [
  new Option('--stock <n>', `units for sale (default: ${S1.stock})`),
  new Option('--segments <n>', `parts of the stock (default: ${S1.segments})`),
  new Option('--buyers <n>', `different buyers, drawn at random (default: ${S1.buyers})`),
  new Option('--requests <n>', `purchases to try (default: ${S1.requests})`),
  new Option('--concurrency <n>', `clients, one request in flight each (default: ${S1.concurrency})`),
  new Option('--seed <n>', 'seed for the random buyers (default: a new one, which is printed)'),
];

/** @throws InvalidInput with all faults at once */
export function scenarioFrom(options: Readonly<Record<string, unknown>>): Scenario {
  const given = Object.fromEntries(Object.keys(bounds).map((name) => [name, options[name]]));
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const parsed = z.object(bounds).safeParse({ ...S1, seed: randomInt(SEEDS), ...set });
  if (parsed.success) return parsed.data;
  throw new InvalidInput(
    "the demo can't run",
    parsed.error.issues.map(({ path: [name], message }) => ({
      field: `--${String(name)}`,
      problem: `is ${JSON.stringify(given[String(name)])}, but ${message}`,
    })),
  );
}

export function scenarioName(scenario: Scenario): string {
  const changed = (Object.keys(S1) as (keyof typeof S1)[]).filter((name) => scenario[name] !== S1[name]);
  return changed.length === 0 ? 'S1' : `S1 with other ${changed.join(', ')}`;
}

/** The buyer of each request, as offsets from FIRST_BUYER. */
export function drawBuyers({ requests, buyers, seed }: Scenario): Uint32Array {
  const random = seededRandom(seed);
  return Uint32Array.from({ length: requests }, () => Math.floor(random() * buyers));
}

/**
 * When a request is due if requests come within this time, evenly more of them in each moment.
 * @param place of the request among all: 0 to 1
 */
export function dueMs(place: number, withinMs: number): number {
  return Math.sqrt(place) * withinMs;
}
