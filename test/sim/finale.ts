/** Checks after the last fault: everything settles, all remaining units are sold, and the books agree. */
import type { Purchase } from '../../src/engine/contract.ts';
import { StockadeError } from '../../src/engine/errors.ts';
import type { Auditor } from './auditor.ts';
import { isPublished, readBooks, SALE_ID } from './books.ts';
import { type Crowd, onceOnly } from './crowd.ts';
import type { Operators } from './operators.ts';
import type { Payers } from './payers.ts';
import type { SimNode } from './sim-node.ts';
import { time, WORLD } from './virtual-time.ts';
import { runToEnd, type World } from './world.ts';

/** Everything that was begun ends within this time: reconnections, retries, sweeps, rebuilds. */
const SETTLE_MS = 60_000;
const BY = { actor: 'sim', reason: '' };
const LOOK_EVERY_MS = 40;
/** How long a buyer may have to ask again after a rebuild or a pause. */
const ASK_AGAIN_MS = 20_000;
const MAX_ASKED = 5;
/** How long a node that could not ask Postgres for its lost orders keeps trying. */
const NAMING_MS = 10_000;
/** A "sold out" from a board is never older than this, with some slack. */
const BOARD_MS = 350;

export interface FinaleParts {
  readonly world: World;
  readonly nodes: readonly SimNode[];
  readonly auditor: Auditor;
  readonly crowd: Crowd;
  readonly payers: Payers;
  readonly operators: Operators;
  /** Runs the simulation for this long, with the auditor checking. */
  readonly pass: (ms: number) => Promise<void>;
}

export async function finale(parts: FinaleParts): Promise<void> {
  const { auditor } = parts;
  await settle(parts, 'the sale settles', () => parts.payers.isIdle && parts.operators.isIdle);
  if (auditor.truth!.state === 'paused') {
    await ask(parts, ({ service }) => service.change(SALE_ID, { action: 'resume' }, BY));
    await settle(parts, 'the sale is resumed', () => auditor.truth!.state === 'open');
  }
  const isClosed = auditor.truth!.state === 'closed';
  if (auditor.truth!.requireToken && !isClosed) {
    const change = { action: 'require-token', requireToken: false } as const;
    await ask(parts, ({ service }) => service.change(SALE_ID, change, BY));
    await settle(parts, 'the sale needs no token any more', () => !auditor.truth!.requireToken);
  }
  await untilSound(parts);
  await settleDoubts(parts);
  if (isClosed) await sellNothing(parts);
  else await sellOut(parts);
  await settle(parts, 'the last orders are in Postgres');
  await checkPromises(parts);
  checkHidden(parts);
  await verify(parts);
  await archive(parts);
}

async function settle(
  { world, nodes, auditor, crowd, pass }: FinaleParts,
  what: string,
  also: () => boolean = () => true,
): Promise<void> {
  const why = () => unsettled(world, nodes, auditor) ?? (also() ? undefined : what);
  for (const end = time.now + SETTLE_MS; why() || crowd.requests.some(({ code }) => code === undefined); ) {
    if (time.now > end)
      auditor.fail(`P2: ${what}: not within ${SETTLE_MS} ms, because ${why() ?? 'a buyer waits'}`);
    await pass(LOOK_EVERY_MS);
  }
}

/** @returns why the stores are not at rest yet; `undefined` if they are */
function unsettled(world: World, nodes: readonly SimNode[], auditor: Auditor): string | undefined {
  const { truth } = auditor;
  if (!truth || world.postgres.isInTransaction) return 'a transaction is open';
  const down = nodes.find(({ running }) => !running);
  if (down) return `${down.name} has not started`;
  const books = readBooks(world, truth.segments);
  if (books.generation !== truth.generation || books.state !== truth.state)
    return `Redis has generation ${books.generation}, ${books.state}; Postgres ${truth.generation}, ${truth.state}`;
  const wrong = books.segments.findIndex((segment) => !isPublished(segment, truth.generation));
  if (wrong >= 0) return `segment ${wrong} is ${JSON.stringify(books.segments[wrong])}`;
  const behind = truth.cursors.findIndex((cursor, i) => cursor.units !== books.segments[i]?.taken);
  if (behind >= 0) return `the log of segment ${behind} is not drained`;
  if (truth.pendingReturns > 0) return `${truth.pendingReturns} returns are pending`;
  if (truth.openMovements > 0) return `${truth.openMovements} changes are open`;
  return undefined;
}

/** Whatever Redis has lost, sync repairs it without being asked. */
async function untilSound(parts: FinaleParts): Promise<void> {
  const { auditor, pass } = parts;
  if (!auditor.everLost) return;
  for (const end = time.now + SETTLE_MS; ; await pass(LOOK_EVERY_MS)) {
    const { ok, findings } = await ask(parts, ({ service }) => service.verify(SALE_ID));
    if (ok) return;
    if (time.now > end)
      auditor.fail(
        `P3: nobody has repaired within ${SETTLE_MS} ms what Redis has lost: ${findings.join('; ')}`,
      );
  }
}

/** P6: a buyer whose purchase is unknown repeats it with the same key, and learns the outcome. */
async function settleDoubts(parts: FinaleParts): Promise<void> {
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
 * Answers that are allowed for a while in calm weather, for example from a node that does not know yet that the sale
 * was rebuilt or resumed.
 */
const NOT_FINAL = new Set(['unavailable', 'busy', 'gone', 'paused', 'token_required']);

/** Repeats a purchase until its answer is final. */
async function insist({ crowd, auditor, pass }: FinaleParts, purchase: Purchase): Promise<string> {
  for (const end = time.now + ASK_AGAIN_MS; ; ) {
    const asked = onceOnly({ ...purchase, awaitCommit: true });
    time.after(0, () => crowd.ask(asked), WORLD);
    while (asked.code === undefined) await pass(1);
    const { code } = asked;
    if (!NOT_FINAL.has(code)) return code;
    if (time.now > end) auditor.fail(`P2: ${purchase.buyerId} is answered ${code} in calm weather`);
    await pass(LOOK_EVERY_MS);
  }
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
    const purchase = { saleId: SALE_ID, buyerId: `late${nth}`, quantity: 1, key: '', awaitCommit: true };
    const code = await insist(parts, purchase);
    if (code === 'committed' || code === 'accepted') {
      refused = 0;
      continue;
    }
    if (code !== 'sold_out') auditor.fail(`P2: a late buyer is answered ${code}`);
    await settle(parts, 'the sale is at rest before it is counted');
    const { stock } = auditor.truth!;
    if (stock === 0) return;
    if (refused++ > 0 && before === stock)
      auditor.fail(`P2: ${stock} units are left, and a buyer is answered sold_out`);
    await pass(BOARD_MS);
  }
}

/** A closed sale sells nothing more. The board is asked before the state, so a sold-out sale may say that instead. */
async function sellNothing(parts: FinaleParts): Promise<void> {
  const purchase = { saleId: SALE_ID, buyerId: 'late', quantity: 1, key: '', awaitCommit: true };
  const code = await insist(parts, purchase);
  const isSoldOut = code === 'sold_out' && parts.auditor.truth!.stock === 0;
  if (code !== 'ended' && !isSoldOut) parts.auditor.fail(`P2: a buyer of a closed sale is answered ${code}`);
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
  const named = new Set(auditor.promises.map(({ orderId }) => orderId));
  // Orders that Postgres rejected, because Redis had lost writes, don't count: their buyers are answered so.
  const hidden = auditor.truth!.orders.filter(
    ({ id, key, status }) => status !== 'rejected' && !named.has(id) && !key?.startsWith('retake:'),
  );
  for (const buyer of new Set(hidden.map((order) => order.buyer))) {
    const orders = hidden.filter((order) => order.buyer === buyer);
    const open = crowd.openAttempts.get(buyer) ?? 0;
    if (orders.length > open)
      auditor.fail(
        `P6: ${buyer} has ${orders.length} orders that were never answered, and ${open} attempts with unknown outcome`,
      );
  }
}

/** P7 */
async function verify(parts: FinaleParts): Promise<void> {
  const report = await ask(parts, ({ service }) => service.verify(SALE_ID));
  if (!report.ok) parts.auditor.fail(`P7: verify says ${report.findings.join('; ')}`);
}

/** P7 of a sale that has left Redis: only a tombstone is there, and the books of Postgres alone agree. */
async function archive(parts: FinaleParts): Promise<void> {
  const { auditor, world, pass } = parts;
  if (auditor.truth!.state !== 'closed')
    await ask(parts, ({ service }) => service.change(SALE_ID, { action: 'close' }, BY));
  for (const end = time.now + SETTLE_MS; !(await ask(parts, isArchived)); ) {
    if (time.now > end) auditor.fail(`P7: the closed sale is not drained within ${SETTLE_MS} ms`);
    await pass(LOOK_EVERY_MS);
  }
  const kept = world.redis.flatMap(({ redis }) =>
    [...redis.data.keys()].filter((key) => key.includes(`{${SALE_ID}`)),
  );
  const rest = kept.filter((key) => !/:(sale|lock(:fence)?)$/.test(key));
  if (rest.length > 0) auditor.fail(`P7: Redis holds ${rest.join(', ')} of the archived sale`);
  await verify(parts);
}

/** Archives the sale, unless sync has not announced its last commits yet. */
async function isArchived({ service }: NonNullable<SimNode['running']>): Promise<boolean> {
  try {
    await service.change(SALE_ID, { action: 'archive' }, BY);
    return true;
  } catch (error) {
    if (!(error instanceof StockadeError) || error.code !== 'unavailable') throw error;
    return false;
  }
}

/** Retries, because a connection that broke in the storm may be noticed only now. */
async function ask<T>(
  { nodes, auditor }: FinaleParts,
  work: (running: NonNullable<SimNode['running']>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const node = nodes.find(({ running }) => running)!;
    try {
      return await runToEnd(() => work(node.running!), node.machine);
    } catch (error) {
      if (attempt === MAX_ASKED) auditor.fail(`P7: asked ${attempt} times in calm weather: ${error}`);
    }
  }
}
