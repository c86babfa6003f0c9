/**
 * Finds the number of connections with which the takes of a shop have a given mean size. The same number of connections for each
 * lane does not do it: a slower shop has larger batches, and three primaries execute smaller ones than one.
 */
const MOST_WARM_UPS = 6;
const MOST_MEASUREMENTS = 4;
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
  wanted: ConnectionsWanted,
  warmUp: (connections: number, attempt: number) => Promise<number | undefined>,
): Promise<number> {
  let connections = wanted.first;
  for (let attempt = 0; attempt < MOST_WARM_UPS; attempt++) {
    const orders = await warmUp(connections, attempt);
    if (!orders || distance(orders, wanted) <= CLOSE) break;
    connections = closer(connections, orders, wanted);
  }
  return connections;
}

/**
 * A measurement is longer than a warm-up, and its takes may have another size. Then it is repeated with other connections.
 * @param measure measures with so many connections
 * @returns the first measurement whose takes are close enough to the wanted size, otherwise the one whose takes were closest
 */
export async function measuredWithTakes<T extends { readonly takeOrders: number | undefined }>(
  wanted: ConnectionsWanted,
  measure: (connections: number, attempt: number) => Promise<T>,
): Promise<T> {
  let connections = wanted.first;
  let best = await measure(connections, 0);
  let orders = best.takeOrders;
  for (
    let attempt = 1;
    attempt < MOST_MEASUREMENTS && orders && distance(orders, wanted) > CLOSE;
    attempt++
  ) {
    const next = closer(connections, orders, wanted);
    if (next === connections) break;
    connections = next;
    const measured = await measure(connections, attempt);
    orders = measured.takeOrders;
    if (orders && distance(orders, wanted) < distance(best.takeOrders!, wanted)) best = measured;
  }
  return best;
}

/** How far takes of this size are from the wanted ones, as a share. */
function distance(orders: number, { takeOrders }: ConnectionsWanted): number {
  return Math.abs(orders / takeOrders - 1);
}

function closer(connections: number, orders: number, { takeOrders, least, most }: ConnectionsWanted): number {
  return Math.min(most, Math.max(least, Math.round((connections * takeOrders) / orders)));
}
