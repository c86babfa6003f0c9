/** The interleavings that tell right from wrong, each written once and run on every strategy that it concerns. */
import { WATCHDOG_TTL_MS } from '../../catalogue/locked/b7-watchdog.ts';
import type { Outcome, Point, SellingRow, Setting } from '../../catalogue/parts/contract.ts';
import { random } from '../support/random.ts';
import { buyersOf, Lab, type LabNode, type LabOptions, tally } from './lab.ts';

/**
 * S2: `count` buyers buy at once. All calls stop at `point` at the same time, as far as the strategy lets them, and then
 * continue.
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

/** Two buyers for the last unit. Both calls stop at `point` at the same time, if the strategy lets them, and then continue. */
export async function lastUnit(row: SellingRow, nodeCount: number, point: Point) {
  await using lab = await Lab.open(row, { stock: 1 });
  const nodes = await lab.nodes(nodeCount);
  const calls = ['ann', 'bob'].map((buyerId, i) => nodes[i % nodeCount]!.begin(buyerId, point));
  await lab.atRest(...calls);
  const atOnce = calls.filter(({ state }) => state === 'held').length;
  const outcomes = await lab.finish(...calls);
  const [node] = nodes;
  return {
    atOnce,
    outcomes: tally(outcomes),
    sold: (await node!.sold()).length,
    left: await node!.left(),
  };
}

export function buyers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `buyer-${i}`);
}

/**
 * The first holder is slow at `slowAt`, so its lock expires and a second holder gets it. Then the first one releases. Does the
 * second still have the lock, or does a third get it?
 */
export async function slowHolder(row: SellingRow, slowAt: Point) {
  await using lab = await Lab.open(row, { stock: 10 });
  const [first, second, third] = await lab.nodes(3);
  const slow = first!.begin('ann', slowAt);
  await lab.atRest(slow);
  // Slow enough for every expiry, even with a watchdog: the whole process is frozen.
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
 * The holder's whole process is frozen after it has read the stock. `ms` later another one gets the lock and reads. Then the
 * first wakes and writes, and then the other writes.
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

/** S5's user service hangs for this time, and then answers all requests. */
const HANG_MS = 11_000;

/**
 * S5: the check of a buyer hangs for longer than a lock of ten seconds lives. In each round, one buyer buys, a second one ten
 * seconds later, and then the service answers both checks. If both calls have read the stock, they continue together.
 */
export async function hangingCheck(row: SellingRow, stock: number, pairs: number) {
  await using lab = await Lab.open(row, { stock });
  let check: Setting['checkBuyer'] = async () => {};
  const nodes = await lab.nodes(2, { checkBuyer: (buyerId) => check(buyerId) });
  const outcomes: Outcome[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    check = lab.hangingCheck(HANG_MS);
    const first = nodes[0]!.begin(`first-${pair}`, 'read', 'taken');
    await lab.atRest(first);
    await lab.time.pass(HANG_MS - 1_000);
    const second = nodes[1]!.begin(`second-${pair}`, 'read', 'taken');
    await lab.atRest(second);
    await lab.time.pass(1_000);
    await lab.atRest(first, second);
    // No time passes any more: a call that waits for a lock is woken by its release.
    outcomes.push(...(await Promise.all([first.finish(), second.finish()])));
  }
  return { outcomes: tally(outcomes), sold: (await nodes[0]!.sold()).length, left: await nodes[0]!.left() };
}

/** S1: 20,000 requests of 200 clients on two nodes, for 100 units, by 500 buyers who are drawn from `seed`. */
export async function crowdOfBuyers(row: SellingRow, seed: number, options: LabOptions = {}) {
  const [clients, requestsEach, firstBuyer, lastBuyer] = [200, 100, 100_003, 100_502];
  await using lab = await Lab.open(row, { stock: 100, ...options });
  const nodes = await lab.nodes(2);
  const { whole } = random(seed);
  const outcomes: Outcome[] = [];
  const client = async (node: LabNode) => {
    for (let i = 0; i < requestsEach; i++) {
      outcomes.push(await node.sell(String(whole(firstBuyer, lastBuyer))));
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, i) => client(nodes[i % 2]!)));
  const sold = buyersOf(await nodes[0]!.sold());
  return { answered: outcomes.length, sold: sold.length, buyers: new Set(sold).size };
}
