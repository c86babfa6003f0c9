/** The operations that are done and compared in both shops, each on a sale that sells. */
import { expireOrders } from '../../src/orders/expire-orders.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { BenchFailure } from '../support/failure.ts';
import type { BenchShop } from './shop.ts';

const SHOWS = 200;
const EXPIRED_ORDERS = 500;
/** Batches of a turn: some 30 ms. */
const BATCHES = 2;
const COMMIT_TURNS = 20;
const BATCH_ORDERS = 1_000;
const BY = { actor: 'bench', reason: '' };
/** Order ids of commits and of expired orders: behind those of the shop. */
const COMMITTED_FROM = 3n << 59n;
const EXPIRED_FROM = 1n << 61n;

export interface Operation {
  readonly name: 'show' | 'verify' | 'recover' | 'resize' | 'expiry' | 'commit';
  /** Turns of each shop in a round, 1 by default. */
  readonly turns?: number;
  /** Done before the time is taken. @param turn the number of turns that the shop has had */
  prepare?(shop: BenchShop, turn: number): Promise<void>;
  run(shop: BenchShop, turn: number): Promise<void>;
}

export const OPERATIONS: readonly Operation[] = [
  {
    name: 'show',
    async run({ service, selling }) {
      for (let i = 0; i < SHOWS; i++) await service.show(selling[i % selling.length]!);
    },
  },
  {
    name: 'verify',
    async run({ name, service, selling }) {
      const report = await service.verify(selling[0]!);
      if (!report.ok) throw new BenchFailure(`verify in the shop ${name}: ${report.findings.join('; ')}`);
    },
  },
  {
    name: 'recover',
    async run({ db, backend, selling }) {
      await rebuildSale(db, backend, selling[0]!);
    },
  },
  {
    name: 'resize',
    async run({ service, selling }, turn) {
      await service.change(selling[0]!, { action: 'resize', segments: turn % 2 === 0 ? 9 : 8 }, BY);
    },
  },
  {
    name: 'expiry',
    async prepare({ db, selling }, turn) {
      const sale = selling.at(-1)!;
      await db.raw(
        'UPDATE sales SET stock = stock - ?::integer, live_orders = live_orders + ?::integer WHERE id = ?',
        [EXPIRED_ORDERS, EXPIRED_ORDERS, sale],
      );
      await db.raw(
        `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, expires_at)
         SELECT ?::bigint + n, ?, ? || n, 1, true, now() - interval '1 second' FROM generate_series(1, ?::integer) AS n`,
        [String(EXPIRED_FROM + BigInt(turn * EXPIRED_ORDERS)), sale, `late-${turn}-`, EXPIRED_ORDERS],
      );
    },
    async run({ db }) {
      const { orderIds } = await expireOrders(db, EXPIRED_ORDERS);
      if (orderIds.length !== EXPIRED_ORDERS) throw new BenchFailure(`${orderIds.length} orders expired`);
    },
  },
  {
    name: 'commit',
    // The bar is narrow, and a machine that others share may be a third slower for half a second.
    turns: COMMIT_TURNS,
    async prepare({ db }, turn) {
      if (turn % COMMIT_TURNS === 0) await db.raw('CHECKPOINT');
    },
    async run({ db, selling }, turn) {
      const sale = selling[1 % selling.length]!;
      for (let batch = 0; batch < BATCHES; batch++) {
        const first = COMMITTED_FROM + BigInt((turn * BATCHES + batch) * BATCH_ORDERS);
        const ids = Array.from({ length: BATCH_ORDERS }, (_, i) => first + BigInt(i));
        const buyers = ids.map((id) => `crowd-${String(id).split('').reverse().join('')}`);
        await db.raw(
          `SELECT stockade_apply_batch(ARRAY[?], ARRAY[?::bigint], '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
             ?::bigint[], array_fill(1, ARRAY[?::integer]), ?::text[], array_fill(1, ARRAY[?::integer]), NULL)`,
          [sale, BATCH_ORDERS, `{${ids}}`, BATCH_ORDERS, `{${buyers}}`, BATCH_ORDERS],
        );
      }
    },
  },
];
