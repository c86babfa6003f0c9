/** Checks after the last fault: everything settles, all remaining units are sold, and the books agree. */
import { StockadeError } from '../../../src/engine/errors.ts';
import { OFFER_PREFIX, RETAKE_PREFIX } from '../../../src/engine/limits.ts';
import { groupBy } from '../../../src/lib/group-by.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { time } from '../machines/virtual-time.ts';
import { queueFinale } from '../queue/queue-finale.ts';
import {
  ask,
  type FinaleParts,
  insist,
  LOOK_EVERY_MS,
  nextLookMs,
  SETTLE_MS,
  settle,
  verify,
} from './calm.ts';
import { leave } from './leave.ts';

const BY = { actor: 'sim', reason: '' };
/** How long a node that could not ask Postgres for its lost orders keeps trying. */
const NAMING_MS = 10_000;
/** A "sold out" from a board is never older than this, with some slack. */
const BOARD_AGE_MS = 350;
/** Sync notices within this time that Redis has lost a unit that came back. */
const LOSS_SEEN_MS = 5_000;

/** One sale after the other, when all have settled: they share buyers and syncs. */
export async function finales(sales: readonly FinaleParts[]): Promise<void> {
  for (const parts of sales) {
    const { payers, operators, lives } = parts;
    await settle(parts, 'the sale settles', () => payers.isIdle && operators.isIdle && lives.isIdle);
  }
  for (const parts of sales) await finale(parts);
}

async function finale(parts: FinaleParts): Promise<void> {
  const { auditor } = parts;
  if (auditor.truth!.state === 'paused') {
    await ask(parts, ({ service }) => service.change(auditor.saleId, { action: 'resume' }, BY));
    await settle(parts, 'the sale is resumed', () => auditor.truth!.state === 'open');
  }
  const isClosed = auditor.truth!.state === 'closed';
  if (auditor.truth!.requireToken && !isClosed) {
    const change = { action: 'require-token', requireToken: false } as const;
    await ask(parts, ({ service }) => service.change(auditor.saleId, change, BY));
    await settle(parts, 'the sale needs no token any more', () => !auditor.truth!.requireToken);
  }
  await untilSound(parts);
  if (parts.people) await queueFinale(parts, parts.people);
  await settleUnknown(parts);
  if (isClosed) await sellNothing(parts);
  else await sellOut(parts);
  await settle(parts, 'the last orders are in Postgres');
  await checkPromises(parts);
  checkHidden(parts);
  await verify(parts);
  const copies = parts.world.redis.map((server) => server.copy());
  checkErased(parts);
  await archive(parts);
  checkErased(parts);
  if (parts.scenario.dealings.deletes) await leave(parts, copies);
}

/**
 * No store has the id of a buyer who was erased and has not bought since. Orders that Redis has lost may come back with the id: a
 * known gap.
 */
function checkErased({ world, auditor }: FinaleParts): void {
  const { erased, everLost } = auditor;
  for (const buyer of everLost ? [] : erased) {
    const left = [...world.tablesWith(buyer), ...world.keysWith(buyer)];
    if (left.length > 0) auditor.fail(`erased: the id of ${buyer} is still in ${left.join(', ')}`);
  }
}

/** Waits until sync has repaired whatever Redis has lost, without being asked. */
async function untilSound(parts: FinaleParts): Promise<void> {
  const { auditor, pass } = parts;
  if (!auditor.everLost) return;
  for (const begun = time.now; ; await pass(nextLookMs(begun))) {
    const { ok, findings } = await ask(parts, ({ service }) => service.verify(auditor.saleId));
    if (ok) return;
    if (time.now > begun + SETTLE_MS)
      auditor.fail(
        `P3: sync has not repaired within ${SETTLE_MS} ms what Redis has lost: ${findings.join('; ')}`,
      );
  }
}

/** P6: a buyer whose purchase is unknown repeats it with the same key, and learns the outcome. */
async function settleUnknown(parts: FinaleParts): Promise<void> {
  const { crowd, auditor, pass } = parts;
  const open = crowd.requests.filter(
    ({ code, purchase }) => (code === 'unknown' || code === 'gone') && purchase.key !== '',
  );
  for (const { purchase } of open) {
    const again = await insist(parts, purchase);
    if (again === 'unknown')
      auditor.fail(`P6: ${purchase.buyerId} asked again with the same key, and was answered unknown`);
  }
  await pass(LOOK_EVERY_MS);
}

/**
 * P2: one buyer after the other buys a unit, until one is answered that the sale is sold out. Then no unit may be left. The
 * board of a node may not know yet of units that came back a moment ago, from an expired order.
 */
async function sellOut(parts: FinaleParts): Promise<void> {
  const { auditor, pass } = parts;
  let refused = 0;
  for (let nth = 0; ; nth++) {
    const before = auditor.truth!.stock;
    const purchase = {
      saleId: auditor.saleId,
      buyerId: `late${nth}`,
      quantity: 1,
      key: '',
      awaitCommit: true,
    };
    const code = await insist(parts, purchase);
    if (code === 'committed' || code === 'accepted') {
      refused = 0;
      continue;
    }
    if (code !== 'sold_out') auditor.fail(`P2: a late buyer is answered ${code}`);
    await settle(parts, 'the sale is at rest before it is counted');
    const { stock } = auditor.truth!;
    if (stock === 0) return;
    const patienceMs = auditor.everLost ? LOSS_SEEN_MS : BOARD_AGE_MS;
    if (refused++ * BOARD_AGE_MS >= patienceMs && before === stock)
      auditor.fail(`P2: ${stock} units are left, and a buyer is answered sold_out`);
    await pass(BOARD_AGE_MS);
  }
}

/** A closed sale sells nothing more. The board is asked before the state, so a sold-out sale may say that instead. */
async function sellNothing(parts: FinaleParts): Promise<void> {
  const { auditor } = parts;
  const purchase = { saleId: auditor.saleId, buyerId: 'late', quantity: 1, key: '', awaitCommit: true };
  const code = await insist(parts, purchase);
  const isSoldOut = code === 'sold_out' && auditor.truth!.stock === 0;
  if (code !== 'ended' && !isSoldOut) auditor.fail(`P2: a buyer of a closed sale is answered ${code}`);
}

/** P4 and P5: every promised order is in Postgres, or is reported as lost by Redis. */
async function checkPromises({ auditor, pass }: FinaleParts): Promise<void> {
  const { promises, everLost, nodesDied } = auditor;
  const orders = new Map(auditor.truth!.orders.map((order) => [order.id, order]));
  const missing = new Set<string>();
  for (const { orderId, buyerId, code } of promises) {
    const order = orders.get(orderId);
    if (code === 'committed' && (!order || order.status === 'rejected'))
      auditor.fail(`P4: order ${orderId} of ${buyerId} was answered 201, and is ${order?.status ?? 'gone'}`);
    if (order && order.status !== 'rejected') continue;
    if (!everLost)
      auditor.fail(`P5: order ${orderId} of ${buyerId} was answered 202, and is ${order?.status ?? 'gone'}`);
    if (!order) missing.add(orderId);
  }
  // The nodes that knew of these orders may have died: a known gap.
  if (missing.size === 0 || nodesDied > 0) return;
  await pass(NAMING_MS);
  for (const named of auditor.truth!.lostOrders) missing.delete(named);
  if (missing.size > 0)
    auditor.fail(`P5: accepted, lost, and not named in any report: ${[...missing].join(', ')}`);
}

/**
 * P6: a refused purchase has no order. An order that was never answered belongs to an attempt with unknown outcome, one order
 * for each such attempt at most.
 */
function checkHidden({ auditor, crowd }: FinaleParts): void {
  const { named } = auditor;
  // Orders that Postgres rejected, because Redis had lost writes, don't count: their buyers are answered so.
  const hidden = auditor.truth!.orders.filter(
    ({ id, key, status }) =>
      status !== 'rejected' &&
      !named.has(id) &&
      // The queue's watch knows the offers.
      ![RETAKE_PREFIX, OFFER_PREFIX].some((prefix) => key?.startsWith(prefix)),
  );
  const ofBuyers = groupBy(hidden, (order) => auditor.leaving.buyerOf(order.buyer));
  for (const [buyer, orders] of ofBuyers) {
    const open = crowd.openAttempts.get(buyer) ?? 0;
    if (orders.length > open)
      auditor.fail(
        `P6: ${buyer} has ${orders.length} orders that were never answered, and ${open} attempts with unknown outcome`,
      );
  }
}

/** P7 of a sale that has left Redis: only a tombstone is there, and the books of Postgres alone agree. */
async function archive(parts: FinaleParts): Promise<void> {
  const { auditor, world, pass } = parts;
  const { saleId } = auditor;
  if (auditor.truth!.state !== 'closed')
    await ask(parts, ({ service }) => service.change(auditor.saleId, { action: 'close' }, BY));
  for (const end = time.now + SETTLE_MS; !(await ask(parts, (running) => isArchived(running, saleId))); ) {
    if (time.now > end) auditor.fail(`P7: the closed sale is not drained within ${SETTLE_MS} ms`);
    await pass(LOOK_EVERY_MS);
  }
  const kept = world.redis.flatMap(({ redis }) =>
    [...redis.data.keys()].filter((key) => key.includes(`{${saleId}}`) || key.includes(`{${saleId}:`)),
  );
  const rest = kept.filter((key) => !/:(sale|lock(:fence)?)$/.test(key));
  if (rest.length > 0) auditor.fail(`P7: Redis holds ${rest.join(', ')} of the archived sale`);
  await verify(parts);
}

/** Archives the sale, unless sync has not announced its last commits yet. */
async function isArchived({ service }: NonNullable<SimNode['running']>, saleId: string): Promise<boolean> {
  try {
    await service.change(saleId, { action: 'archive' }, BY);
    return true;
  } catch (error) {
    if (!(error instanceof StockadeError) || error.code !== 'unavailable') throw error;
    return false;
  }
}
