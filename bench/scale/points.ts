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
  readonly takeOrders: number;
}

/** A take has about as many orders as a lane has connections, divided by this. */
const CONNECTIONS_PER_ORDER = 2.5;
/** How far warm-ups may go beyond that. */
const MOST_FACTOR = 4;

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
 * Connections to all nodes together. A worker has a lane for each segment, and a node has one worker here. The same crowd is
 * divided among more and more lanes. For equal batches this is the first guess.
 */
export function connectionsOf(crowd: CrowdName, { nodes }: ShopSize, sizes: CrowdSizes): number {
  if (crowd === 'sameCrowd') return sizes.connections;
  return Math.ceil(sizes.takeOrders * CONNECTIONS_PER_ORDER * nodes * sizes.segments);
}

/** What warm-ups may find for equal batches. */
export function connectionLimits(size: ShopSize, sizes: CrowdSizes): { least: number; most: number } {
  return { least: size.nodes, most: connectionsOf('equalBatches', size, sizes) * MOST_FACTOR };
}

export function mostConnections(sizes: CrowdSizes): number {
  const all = shopSizes(sizes.nodes).map((size) => connectionLimits(size, sizes).most);
  return Math.max(sizes.connections, ...all);
}
