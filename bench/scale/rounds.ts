/**
 * The run. In each round every size of shop sells to both crowds, each in a sale of its own. Then the backlogs are drained, and syncs work
 * beside nodes that sell.
 * What comes first changes from round to round.
 */
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { count } from '../support/figures.ts';
import { rotated } from '../support/rotated.ts';
import { type Beside, measureBeside } from './beside.ts';
import { type Drain, measureDrain } from './drains.ts';
import { Fleet, type Measurement } from './fleet.ts';
import type { ScaleParameters } from './options.ts';
import {
  CROWDS,
  type CrowdName,
  connectionLimits,
  connectionsOf,
  type ShopSize,
  shopSizes,
} from './points.ts';
import { type Places, startPlaces } from './stores.ts';

export interface Leg {
  readonly crowd: CrowdName;
  readonly size: ShopSize;
  readonly measured: Measurement;
}

export interface DrainLeg {
  readonly syncs: number;
  readonly measured: Drain;
}

export interface BesideLeg {
  readonly syncs: number;
  readonly measured: Beside;
}

export interface Measured {
  readonly legs: readonly Leg[];
  readonly drains: readonly DrainLeg[];
  readonly besides: readonly BesideLeg[];
}

/** @throws BenchFailure if an answer was wrong, or if a sale does not add up at the end */
export async function runRounds(parameters: ScaleParameters): Promise<Measured> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    note('Starting Redis, a cluster and Postgres');
    const places = await startPlaces(teardown);
    const [legs, drains, besides]: [Leg[], DrainLeg[], BesideLeg[]] = [[], [], []];
    for (let round = 0; round < parameters.rounds; round++) {
      note(`round ${round + 1} of ${parameters.rounds}`);
      for (const size of rotated(shopSizes(parameters.nodes), round)) {
        legs.push(...(await measureShop(size, places, round, parameters)));
      }
      drains.push(...(await measureDrains(places, round, parameters)));
      besides.push(...(await measureBesides(places, round, parameters)));
    }
    return { legs, drains, besides };
  } finally {
    await teardown.release();
  }
}

async function measureShop(
  size: ShopSize,
  places: Places,
  round: number,
  parameters: ScaleParameters,
): Promise<Leg[]> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const fleet = await Fleet.start(size, places[size.primaries], parameters, teardown);
    const legs: Leg[] = [];
    try {
      for (const { name: crowd, title } of rotated(CROWDS, round)) {
        const first = connectionsOf(crowd, size, parameters);
        const { takeOrders } = parameters;
        const equal = { takeOrders, first, ...connectionLimits(size, parameters) };
        const saleId = `sale-${crowd.toLowerCase()}`;
        const measured = await fleet.sell({ saleId, connections: crowd === 'equalBatches' ? equal : first });
        tell(`${title}, ${size.nodes} nodes, ${size.primaries} primaries`, measured);
        legs.push({ crowd, size, measured });
        await fleet.finish(saleId);
      }
    } catch (error) {
      note(`The nodes: ${await fleet.lastWords()}`);
      throw error;
    }
    return legs;
  } finally {
    await teardown.release();
  }
}

async function measureDrains(
  places: Places,
  round: number,
  parameters: ScaleParameters,
): Promise<DrainLeg[]> {
  if (parameters.orders === 0) return [];
  const legs: DrainLeg[] = [];
  for (const syncs of syncCounts(parameters, round)) {
    const measured = await measureDrain(syncs, places[1], parameters);
    note(`  drain by ${syncs} syncs: ${count(measured.ordersPerSecond)} orders/s`);
    legs.push({ syncs, measured });
  }
  return legs;
}

async function measureBesides(
  places: Places,
  round: number,
  parameters: ScaleParameters,
): Promise<BesideLeg[]> {
  if (parameters.orders === 0) return [];
  const legs: BesideLeg[] = [];
  for (const syncs of syncCounts(parameters, round)) {
    const measured = await measureBeside(syncs, places[1], parameters);
    const share = `${Math.round(measured.committedShare * 100)} % in Postgres at the end`;
    note(
      `  ${syncs} syncs beside ${parameters.nodes} nodes: ${count(measured.acceptedPerSecond)} orders/s, ${share}`,
    );
    legs.push({ syncs, measured });
  }
  return legs;
}

function syncCounts({ nodes }: ScaleParameters, round: number): number[] {
  return rotated(
    Array.from({ length: nodes }, (_, i) => i + 1),
    round,
  );
}

function tell(what: string, { connections, ordersPerSecond, cpuMicros, takeOrders }: Measurement): void {
  const cost = cpuMicros === undefined ? '' : `, ${cpuMicros.toFixed(1)} µs of processor time each`;
  const rate = `${count(ordersPerSecond)} orders/s in takes of ${takeOrders?.toFixed(1)}`;
  note(`  ${what}, ${count(connections)} connections: ${rate}${cost}`);
}
