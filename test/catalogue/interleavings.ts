/** The interleavings that tell right from wrong, each written once and run on every strategy that it concerns. */
import { WATCHDOG_TTL_MS } from '../../src/catalogue/b7-watchdog.ts';
import type { Outcome, Point, SellingRow } from '../../src/catalogue/contract.ts';
import { Lab, type LabNode, type LabOptions } from './lab.ts';

/**
 * S2: `count` buyers ask at once, and all of them stand at `point` at the same time, as far as the strategy lets them;
 * then all go on.
 */
export async function allAtOnce(
  lab: Lab,
  nodes: readonly LabNode[],
  buyerIds: readonly string[],
  point: Point,
): Promise<Outcome[]> {
  const calls = buyerIds.map((buyerId, i) => nodes[i % nodes.length]!.begin(buyerId, point));
  await lab.atRest(...calls);
  return lab.finish(...calls);
}

export function buyers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `buyer-${i}`);
}

/**
 * The first holder is slow at `slowAt`: his lock expires and the second gets it. The first lets go; what becomes of the
 * second one's lock, and of a third who asks now?
 */
export async function slowHolder(row: SellingRow, slowAt: Point) {
  await using lab = await Lab.open(row, { stock: 10 });
  const [first, second, third] = await lab.nodes(3);
  const slow = first!.begin('ann', slowAt);
  await lab.atRest(slow);
  // Slow enough for every expiry, a watchdog's too: the whole process stands still.
  first!.clock.frozen = true;
  await lab.time.pass(WATCHDOG_TTL_MS + 1_000);
  const inside = second!.begin('bob', 'read');
  await lab.atRest(inside);
  await slow.finish();
  const isLocked = (await lab.redis.exists(`${lab.stores.keyPrefix}{sale}:lock`)) === 1;
  const next = third!.begin('cid', 'read');
  await lab.atRest(next);
  return { ownerAfterwards: isLocked ? 'the second' : 'nobody', third: next.state };
}

/**
 * The holder has read the stock when its whole process stands still; `ms` later another gets the lock and reads; then
 * the first wakes and writes, and only then the other.
 */
export async function frozenHolder(row: SellingRow, ms: number, options: LabOptions = {}) {
  await using lab = await Lab.open(row, { stock: 1, ...options });
  const [first, second] = await lab.nodes(2);
  const frozen = first!.begin('ann', 'read');
  await lab.atRest(frozen);
  first!.clock.frozen = true;
  await lab.time.pass(ms);
  const next = second!.begin('bob', 'read');
  await lab.atRest(next);
  first!.clock.frozen = false;
  const woken = await frozen.finish();
  const [after] = await lab.finish(next);
  return {
    woken: woken.code,
    next: after!.code,
    sold: (await second!.sold()).length,
    left: await second!.left(),
  };
}
