/** What is measured: shops with some nodes on some primaries, and two crowds. */

export type CrowdName = 'equalBatches' | 'sameCrowd';

export interface ShopSize {
  readonly nodes: number;
  readonly primaries: 1 | 3;
}

interface CrowdSizes {
  readonly nodes: number;
  readonly segments: number;
  readonly connections: number;
  readonly connectionsPerLane: number;
}

export interface Crowd {
  readonly name: CrowdName;
  readonly title: string;
  /** The promised limit for the cost of the dearest point, divided by that of the cheapest. */
  readonly bar: number;
}

export const CROWDS: readonly Crowd[] = [
  { name: 'equalBatches', title: 'Equal batches', bar: 1.3 },
  { name: 'sameCrowd', title: 'The same crowd', bar: 1.8 },
];

/** From the smallest to the largest. */
export function shopSizes(mostNodes: number): ShopSize[] {
  const nodes = Array.from({ length: mostNodes }, (_, i) => i + 1);
  return ([1, 3] as const).flatMap((primaries) => nodes.map((count) => ({ primaries, nodes: count })));
}

/**
 * Connections to all nodes together. A worker has a lane for each segment, and a node has one worker here: with the same number
 * of connections for each lane, batches stay equally large. The same crowd is divided among more and more lanes.
 */
export function connectionsOf(crowd: CrowdName, { nodes }: ShopSize, sizes: CrowdSizes): number {
  return crowd === 'sameCrowd' ? sizes.connections : sizes.connectionsPerLane * nodes * sizes.segments;
}

export function mostConnections(sizes: CrowdSizes): number {
  const all = shopSizes(sizes.nodes).flatMap((size) =>
    CROWDS.map(({ name }) => connectionsOf(name, size, sizes)),
  );
  return Math.max(...all);
}
