/**
 * Finds the number of connections with which the takes of a shop have a given mean size. The same number of connections for each
 * lane does not do it: a slower shop has larger batches, and three primaries execute smaller ones than one.
 */
const MOST_WARM_UPS = 6;
/** Of a warm-up. Narrower than the limit for what is measured, which differs from its warm-up. */
const CLOSE = 0.05;

export interface ConnectionsWanted {
  /** Mean number of orders in a take. */
  readonly takeOrders: number;
  readonly first: number;
  readonly least: number;
  readonly most: number;
}

/**
 * @param warmUp runs the crowd with so many connections. @returns the mean number of orders in a take
 * @returns the connections of the last warm-up if it was close enough, otherwise those that should be closer
 */
export async function connectionsForTakes(
  { takeOrders, first, least, most }: ConnectionsWanted,
  warmUp: (connections: number, attempt: number) => Promise<number | undefined>,
): Promise<number> {
  let connections = first;
  for (let attempt = 0; attempt < MOST_WARM_UPS; attempt++) {
    const orders = await warmUp(connections, attempt);
    if (!orders || Math.abs(orders / takeOrders - 1) <= CLOSE) break;
    connections = Math.min(most, Math.max(least, Math.round((connections * takeOrders) / orders)));
  }
  return connections;
}
