/**
 * How an archived sale leaves Postgres: it is deleted with its orders, while nodes die. Then Redis comes back with an older copy of
 * it: before another sale has got its id, or after that. Redis may have forgotten in between that the sale was archived.
 */
import { StockadeError } from '../../../src/engine/errors.ts';
import { readBooks } from '../audit/books.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import { atNode } from '../people/operators.ts';
import type { Data } from '../redis/mini-redis.ts';
import { ask, type FinaleParts, insist, LOOK_EVERY_MS, SETTLE_MS, settle, verify } from './calm.ts';

const BY = { actor: 'sim', reason: 'deleted' };
const MAX_CRASHES = 3;
/** A deletion that no node dies of is done within this time. */
const DELETION_MS = 60;
const DOWN_MS = 300;
const NEW_STOCK = 3;

/** @param copies what each Redis server held before the sale was archived */
export async function leave(parts: FinaleParts, copies: readonly Data[]): Promise<void> {
  const { auditor } = parts;
  const orders = auditor.truth!.orders.map(({ id }) => id);
  await refuseOthers(parts, orders.length);
  await deleteSale(parts, orders.length);
  if (time.random.chance(0.3)) {
    restore(parts, copies);
    await staysGone(parts);
    await sellAnother(parts, orders, () => {});
  } else {
    if (time.random.chance(0.7)) empty(parts);
    await sellAnother(parts, orders, () => restore(parts, copies));
  }
}

/** Another number of orders changes nothing. */
async function refuseOthers(parts: FinaleParts, orders: number): Promise<void> {
  const { auditor } = parts;
  const end = await ask(parts, ({ service }) =>
    service.delete(auditor.saleId, orders + 1, BY).catch((error) => {
      if (!(error instanceof StockadeError) || error.code !== 'orders_differ') throw error;
      return undefined;
    }),
  );
  if (end || auditor.truth!.isDeleting)
    auditor.fail('deleted: a deletion of another number of orders was accepted');
}

async function deleteSale(parts: FinaleParts, orders: number): Promise<void> {
  const { auditor, nodes, pass, world } = parts;
  const { random } = time;
  for (let crashes = random.whole(0, MAX_CRASHES); crashes > 0; crashes--) {
    const node = random.pick(nodes);
    const die = () => {
      if (!node.isAlive) return;
      auditor.trace(`* ${node.name} dies`);
      node.crash();
      time.after(random.unit() * DOWN_MS, () => node.isAlive || node.start(), WORLD);
    };
    time.after(random.unit() * DELETION_MS, die, WORLD);
  }
  for (const end = time.now + SETTLE_MS; auditor.truth; await pass(LOOK_EVERY_MS)) {
    if (time.now > end) auditor.fail(`deleted: the sale is there after ${SETTLE_MS} ms`);
    const node = nodes.find(({ running }) => running);
    if (node && !auditor.truth.isDeleting)
      atNode(node, 'delete the sale', auditor, ({ service }) => service.delete(auditor.saleId, orders, BY));
  }
  const isDone = world.sql<boolean>(
    `SELECT to_json(deleted_at IS NOT NULL AND done = ${orders}) FROM deleted_sales WHERE id = '${auditor.saleId}'`,
  );
  if (!isDone)
    auditor.fail(`deleted: the record of the deletion does not say that ${orders} orders are gone`);
  while (!nodes.every(({ running }) => running)) await pass(LOOK_EVERY_MS);
}

function restore({ world, auditor }: FinaleParts, copies: readonly Data[]): void {
  auditor.trace('* Redis comes back from an older copy');
  auditor.lost();
  for (const [i, server] of world.redis.entries()) server.restore(copies[i]!);
}

function empty({ world, auditor }: FinaleParts): void {
  auditor.trace('* Redis loses everything');
  auditor.lost();
  for (const server of world.redis) server.empty();
}

/** Sync removes the copy. What it sold until then is lost, and nothing of it gets to Postgres. */
async function staysGone(parts: FinaleParts): Promise<void> {
  const { auditor, world, pass } = parts;
  for (
    const end = time.now + SETTLE_MS;
    readBooks(world, auditor.saleId, 1).state !== undefined;
    await pass(LOOK_EVERY_MS)
  )
    if (time.now > end) auditor.fail(`deleted: Redis holds the deleted sale after ${SETTLE_MS} ms`);
  const purchase = { saleId: auditor.saleId, buyerId: 'late', quantity: 1, key: '', awaitCommit: true };
  const code = await insist(parts, purchase);
  if (code !== 'unknown_sale') auditor.fail(`deleted: a buyer is answered ${code}`);
  const isThere = world.sql<boolean>(
    `SELECT to_json(EXISTS (SELECT 1 FROM sales WHERE id = '${auditor.saleId}')
       OR EXISTS (SELECT 1 FROM orders WHERE sale_id = '${auditor.saleId}'))`,
  );
  if (isThere) auditor.fail('deleted: the sale or its orders are in Postgres again');
}

/** A sale that gets the id has nothing of the deleted one. @param meanwhile happens while it sells */
async function sellAnother(parts: FinaleParts, old: readonly string[], meanwhile: () => void): Promise<void> {
  const { auditor, crowd, pass } = parts;
  crowd.keepsOrders = true;
  const sale = {
    id: auditor.saleId,
    stock: NEW_STOCK,
    segments: 2,
    perBuyerLimit: 1,
    startsAt: '2026-01-01T00:00:00Z',
  };
  await ask(parts, async ({ service }) => {
    await service.create(sale, BY.actor).catch((error) => {
      if (!(error instanceof StockadeError) || error.code !== 'sale_exists') throw error;
    });
  });
  await settle(parts, 'the new sale is built');
  meanwhile();
  await settle(parts, 'the new sale is at rest');
  for (let nth = 0; nth <= NEW_STOCK; nth++) {
    const purchase = {
      saleId: auditor.saleId,
      buyerId: `new${nth}`,
      quantity: 1,
      key: '',
      awaitCommit: true,
    };
    const code = await insist(parts, purchase);
    const isSold = code === 'committed' || code === 'accepted';
    if (isSold !== nth < NEW_STOCK)
      auditor.fail(`deleted: buyer ${nth + 1} of ${NEW_STOCK} units is answered ${code}`);
  }
  await pass(LOOK_EVERY_MS);
  await settle(parts, 'the new sale is sold');
  const again = auditor.truth!.orders.filter(({ id }) => old.includes(id));
  if (again.length > 0)
    auditor.fail(`deleted: ${again.length} orders of the deleted sale are in the new one`);
  await verify(parts);
}
