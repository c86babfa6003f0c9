/** The operations that are done and compared in both shops, each on a sale that sells. */
import { expireOrders } from '../../src/orders/expire-orders.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { BenchFailure } from '../support/failure.ts';
import type { BenchShop } from './shop.ts';

const SHOWS = 200;
const EXPIRED_ORDERS = 500;
const BATCHES = 20;
const BATCH_ORDERS = 1_000;
const BY = { actor: 'bench', reason: '' };
/** Order ids of commits and of expired orders: behind those of the shop. */
const COMMITTED_FROM = 3n << 59n;
const EXPIRED_FROM = 1n << 61n;

export interface Operation {
  readonly name: 'show' | 'verify' | 'recover' | 'resize' | 'expiry' | 'commit';
  /** Done before the time is taken. */
  prepare?(shop: BenchShop, round: number): Promise<void>;
  run(shop: BenchShop, round: number): Promise<void>;
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
    async run({ service, selling }, round) {
      await service.change(selling[0]!, { action: 'resize', segments: round % 2 === 0 ? 9 : 8 }, BY);
    },
  },
  {
    name: 'expiry',
    async prepare({ db, selling }, round) {
      const sale = selling.at(-1)!;
      await db.raw(
        'UPDATE sales SET stock = stock - ?::integer, live_orders = live_orders + ?::integer WHERE id = ?',
        [EXPIRED_ORDERS, EXPIRED_ORDERS, sale],
      );
      await db.raw(
        `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, expires_at)
         SELECT ?::bigint + n, ?, ? || n, 1, true, now() - interval '1 second' FROM generate_series(1, ?::integer) AS n`,
        [String(EXPIRED_FROM + BigInt(round * EXPIRED_ORDERS)), sale, `late-${round}-`, EXPIRED_ORDERS],
      );
    },
    async run({ db }) {
      const { orderIds } = await expireOrders(db, EXPIRED_ORDERS);
      if (orderIds.length !== EXPIRED_ORDERS) throw new BenchFailure(`${orderIds.length} orders expired`);
    },
  },
  {
    name: 'commit',
    async prepare({ db }) {
      await db.raw('CHECKPOINT');
    },
    async run({ db, selling }, round) {
      const sale = selling[1 % selling.length]!;
      for (let batch = 0; batch < BATCHES; batch++) {
        const first = COMMITTED_FROM + BigInt((round * BATCHES + batch) * BATCH_ORDERS);
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
