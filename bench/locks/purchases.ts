/**
 * Purchases from one segment: through the product's lane, or each order by itself, with and without the segment's
 * lock.
 */
import { Board } from '../../src/engine/board/board.ts';
import { type Backend, NO_ENTRY, type TakeReply } from '../../src/engine/contract.ts';
import { LockedBackend } from '../../src/engine/locked/locked-backend.ts';
import { Engine } from '../../src/engine/purchase/engine.ts';
import { Keys } from '../../src/engine/redis/protocol/keys.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { parseSale } from '../../src/engine/sale/sale-json.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import type { Locks } from '../../src/locks/locks.ts';
import { BenchFailure } from '../support/failure.ts';
import type { TakeTask } from './tasks.ts';
import { work } from './work.ts';

const STOCK = 10_000_000;
const SEGMENT = { segment: 0, generation: 1 };
const WORKER = 1;
/** So long that no measurement ends because the machine was slow. */
const TIMEOUT_MS = 20_000;

export type Purchase = () => Promise<void>;

interface Stage {
  readonly url: string;
  readonly saleId: string;
  readonly locks: Locks;
  readonly teardown: Teardown;
}

export async function purchases(task: TakeTask, stage: Stage): Promise<Purchase> {
  const inside = () => work(task);
  const { url, saleId, teardown } = stage;
  const options = { keyPrefix: 'bench:', takeTimeoutMs: TIMEOUT_MS, maxLogOrders: STOCK };
  const backend =
    task.kind === 'lane' && task.strategy === 'lock'
      ? await LockedBackend.open({
          ...options,
          urls: [url],
          inside: () => inside().then(() => []),
          insideMaxMs: TIMEOUT_MS,
        })
      : await RedisBackend.open({ ...options, url });
  teardown.add(() => backend.close());
  await loadSale(backend, saleId);
  if (task.kind === 'lane') return byLane(backend, stage);
  return oneByOne(backend, new Keys(options.keyPrefix), task, stage, inside);
}

async function loadSale({ sales }: Backend, saleId: string): Promise<void> {
  await sales.loadSegment({ saleId, ...SEGMENT, left: STOCK, perBuyerLimit: 1, buyers: 'none' });
  await sales.publish({ sale: saleOf(saleId), state: 'open', generation: SEGMENT.generation });
}

function saleOf(id: string) {
  return parseSale({ id, stock: STOCK, segments: 1 }, 0);
}

async function byLane(backend: Backend, { saleId, teardown }: Stage): Promise<Purchase> {
  const record = { sale: saleOf(saleId), state: 'open' as const, generation: SEGMENT.generation, epoch: 1 };
  const view = { record, slot: 0 };
  const orderId = counter();
  const engine = await Engine.start({
    backend,
    directory: { lookup: async () => {}, refresh: async () => {}, listen: (to) => void to.changed(view) },
    board: new Board(1),
    worker: WORKER,
    nextOrderId: () => String(orderId()),
    requestDeadlineMs: TIMEOUT_MS,
    laneCapacity: STOCK,
  });
  teardown.add(() => engine.close());
  const buyer = counter();
  return async () => {
    const buyerId = `buyer-${buyer()}`;
    const { code } = await engine.purchase({ saleId, buyerId, quantity: 1, key: '', awaitCommit: false });
    if (code !== 'accepted') throw new BenchFailure(`a purchase was answered ${code}`);
  };
}

function oneByOne(
  { takes }: Backend,
  keys: Keys,
  { strategy }: TakeTask,
  { saleId, locks }: Stage,
  inside: () => Promise<void>,
): Purchase {
  const orderId = counter();
  const take = async (fencing: { fencingToken?: number }) => {
    const id = orderId();
    const order = { orderId: String(id), buyerId: `buyer-${id}`, quantity: 1, key: '' };
    assertTaken(
      await takes.take({
        ...{ saleId, ...SEGMENT, lane: WORKER, ticket: id },
        ...{ answeredTicket: 0, newest: NO_ENTRY, orders: [order], ...fencing },
      }),
    );
  };
  if (strategy === 'script') return () => take({});
  const { lock } = keys.segment({ saleId, ...SEGMENT });
  return () =>
    locks.withLock(
      lock,
      async ({ token }) => {
        await inside();
        await take({ fencingToken: token });
      },
      { waitMs: TIMEOUT_MS },
    );
}

function assertTaken(reply: TakeReply): void {
  if (reply.status === 'served' && reply.results[0]?.kind === 'taken') return;
  throw new BenchFailure(`a take was answered ${JSON.stringify(reply)}`);
}

function counter(): () => number {
  let last = 0;
  return () => ++last;
}
