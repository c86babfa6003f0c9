/**
 * D3: Stockade's own engine on its Redis backend: segments, one script call for a whole batch of a lane, stock that moves to where it
 * is needed, and a board that answers "sold out" without any I/O.
 *
 * Shows: safe, keeps the limit (a buyer's orders are in its home segment only), and sells the last unit to the first buyer that
 * asks, in whichever segment it is.
 * It runs without sync here: an order counts as sold when it is in the order log, as with a `202`.
 */
import { createHash } from 'node:crypto';
import { Board } from '../../src/engine/board/board.ts';
import type { Outcome as EngineOutcome } from '../../src/engine/contract.ts';
import { OrderIds } from '../../src/engine/order-id.ts';
import { Engine } from '../../src/engine/purchase/engine.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { SaleDirectory } from '../../src/node/sale-directory.ts';
import {
  failed,
  LIMIT_REACHED,
  needed,
  type Outcome,
  type SellingRow,
  SOLD,
  SOLD_OUT,
} from '../parts/contract.ts';
import { GENERATION, putUp, segmentsOf, workerNumber } from '../parts/stockade-sale.ts';

const TAKE_TIMEOUT_MS = 1_000;
const REQUEST_DEADLINE_MS = 5_000;
const LANE_CAPACITY = 100_000;
const MAX_LOG_ORDERS = 1_000_000;
const BOARD_SLOTS = 1;

export const d3: SellingRow = {
  kind: 'selling',
  id: 'D3',
  title: 'Stockade: segments, batches, refill, board',
  stores: ['redis'],
  stock: 'safe',
  limit: 'safe',
  undersells: '',
  /** The engine makes the order ids; the given ones are not used. */
  async open(stores, spec) {
    const url = needed(stores, 'redis');
    const { keyPrefix } = stores;
    const options = { url, keyPrefix, takeTimeoutMs: TAKE_TIMEOUT_MS, maxLogOrders: MAX_LOG_ORDERS };
    const backend = await RedisBackend.open(options);
    if ((await backend.sales.read(spec.id)) === undefined) await putUp(backend, spec);
    const board = new Board(BOARD_SLOTS);
    const directory = new SaleDirectory(backend, board, async () => true);
    await directory.start();
    const worker = await workerNumber(options);
    const key = createHash('sha256').update(keyPrefix).digest();
    const ids = new OrderIds({ key, worker });
    const engine = await Engine.start({
      backend,
      directory,
      board,
      worker,
      nextOrderId: () => ids.next(),
      requestDeadlineMs: REQUEST_DEADLINE_MS,
      laneCapacity: LANE_CAPACITY,
    });
    return {
      sell: async (buyerId) =>
        outcomeOf(
          await engine.purchase({ saleId: spec.id, buyerId, quantity: 1, key: '', awaitCommit: false }),
        ),
      sold: async () => {
        const positions = segmentsOf(spec).map((ref) => ({ ...ref, seq: 0, tail: '' }));
        const logs = await backend.log.readLog(positions, spec.stock);
        return logs.flatMap(({ entries }) => entries.flatMap(({ orders }) => orders));
      },
      left: async () => {
        const segments = await backend.sales.snapshot(spec.id, spec.segments, GENERATION);
        return segments.reduce((sum, { counters }) => sum + (counters?.left ?? 0), 0);
      },
      close: async () => {
        await directory.stop();
        await engine.close();
        await backend.close();
      },
    };
  },
};

function outcomeOf({ code }: EngineOutcome): Outcome {
  switch (code) {
    case 'committed':
    case 'accepted':
      return SOLD;
    case 'sold_out':
      return SOLD_OUT;
    case 'limit_reached':
      return LIMIT_REACHED;
    default:
      return failed(`the engine answered ${code}`);
  }
}
