import { setTimeout as delay } from 'node:timers/promises';
import { BenchFailure } from './failure.ts';
import { answered, backlog, type NodeFigures } from './metrics-text.ts';

const POLL_MS = 50;
const LIMIT_MS = 300_000;

/**
 * Returns when nothing is under way, and all orders named in answers to buyers are in Postgres and in the stream.
 * @param read the figures of a node, or of all nodes of a shop together
 * @param hasStream whether order events are delivered
 */
export async function settled(read: () => Promise<NodeFigures>, hasStream: boolean): Promise<NodeFigures> {
  let before = await read();
  return untilFigures(read, 'nothing is under way', (now) => {
    const isStreamed = !hasStream || now.streamedEvents >= now.syncedOrders;
    const idle = now.underWay === 0 && now.lagOrders === 0 && backlog(now) === 0 && isStreamed;
    const silent = answered(now) === answered(before);
    before = now;
    return idle && silent;
  });
}

/** @throws BenchFailure if the condition does not hold in time */
export async function untilFigures(
  read: () => Promise<NodeFigures>,
  what: string,
  holds: (now: NodeFigures) => boolean,
): Promise<NodeFigures> {
  const deadline = Date.now() + LIMIT_MS;
  while (Date.now() < deadline) {
    await delay(POLL_MS);
    const now = await read();
    if (holds(now)) return now;
  }
  throw new BenchFailure(`not within ${LIMIT_MS} ms: ${what}`);
}
