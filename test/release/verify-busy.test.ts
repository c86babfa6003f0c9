/** While a sale is sold, and all that can happen to it happens, verify finds it whole every time. */
import { describe, expect, test } from 'vitest';
import type { VerifyReport } from '../../src/operations/sale-operations.ts';
import { rows } from '../../src/postgres/database.ts';
import { rebalanceSale } from '../../src/sales/rebalance.ts';
import { BY } from '../support/author.ts';
import { RedisKeys } from '../support/engine/redis-keys.ts';
import { until } from '../support/fixtures.ts';
import { Load } from '../support/http/load.ts';
import { Shop } from '../support/shop/shop.ts';

const LOOKS = 20;
const SEGMENTS = 8;

/** Does it again and again until it is stopped. What the sale's state does not allow now is tried again. */
class Again implements AsyncDisposable {
  times = 0;
  #stopped = false;
  readonly #ended: Promise<void>;

  constructor(work: () => Promise<unknown>) {
    const EXPECTED = new Set(['busy', 'unavailable', 'insufficient_stock', 'stale_generation']);
    const run = async () => {
      while (!this.#stopped) {
        const done = await work().then(
          () => true,
          (error) => {
            if (!EXPECTED.has((error as { code?: string }).code ?? '')) throw error;
            return false;
          },
        );
        if (done) this.times++;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    this.#ended = run();
    this.#ended.catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.#ended;
  }
}

describe.each(['redis', 'memory'] as const)('on %s', (backend) => {
  test('with returns, top-ups, withdrawals, transfers, pauses, rebuilds and resizes', {
    timeout: 400_000,
  }, async () => {
    await using shop = await Shop.open({ backend });
    const { id } = await shop.sell({ stock: 200_000, segments: SEGMENTS, perBuyerLimit: 3 });
    await shop.startSync({ batchRows: 200, rebalanceEveryMs: 50 });
    const till = await shop.startEngine();
    const orders = shop.orders(till.take);
    const { db, service } = shop;

    const cancel = async () => {
      const live = await rows<{ id: string }>(
        db,
        "SELECT order_id::text AS id FROM orders WHERE sale_id = ? AND status = 'unpaid' LIMIT 8",
        [id],
      );
      await Promise.all(live.map((order) => orders.changeOrder(order.id, { kind: 'cancel' }, BY)));
    };
    const change = async (kind: 'top-up' | 'withdraw') => service.change(id, { action: kind, units: 7 }, BY);
    const move = () => rebalanceSale(db, shop.backend, id, { dryRun: false });
    const pause = async () => {
      await service.change(id, { action: 'pause' }, BY);
      await service.change(id, { action: 'resume' }, BY);
    };

    await using load = new Load(till, id, { lines: 30, quantity: 1 });
    await until(() => load.promised.length > 100, { what: 'the sale runs' });
    await using returns = new Again(cancel);
    await using topUps = new Again(() => change('top-up'));
    await using withdrawals = new Again(() => change('withdraw'));
    await using transfers = new Again(move);
    await using pauses = new Again(pause);
    const works = [returns, topUps, withdrawals, transfers, pauses];
    for (let look = 1; look <= LOOKS; look++) {
      const before = works.map(({ times }) => times);
      expect(await service.verify(id), `look ${look}`).toMatchObject({
        ok: true,
        findings: [],
      } satisfies Partial<VerifyReport>);
      if (look % 8 === 0) {
        const segments = look % 16 === 0 ? SEGMENTS : 5;
        await service.change(id, { action: 'resize', segments }, BY);
      } else if (look % 4 === 0) {
        // As a rebuild that died at once leaves it: sync finds it, and builds the sale.
        const { generation, segments } = await service.show(id);
        await shop.backend.sales.freeze(id, segments, generation);
      }
      await until(() => works.every(({ times }, i) => times > before[i]!), { what: 'all goes on' });
    }
    expect((await service.show(id)).generation).toBeGreaterThan(LOOKS / 20);
  });
});

test('during a sale, a foreign write is found and repaired, and nothing else is', async () => {
  await using shop = await Shop.open();
  await using keys = new RedisKeys(shop);
  const { id } = await shop.sell({ stock: 200_000, segments: SEGMENTS, perBuyerLimit: 3 });
  await shop.startSync({ batchRows: 200 });
  const till = await shop.startEngine();
  await using load = new Load(till, id, { lines: 50 });
  await until(() => load.promised.length > 100, { what: 'the sale runs' });
  for (const units of [5, -5, 11]) {
    await keys.redis.hincrby(keys.of(id, 3).segment, 'left', units);
    const report = await shop.service.verify(id, { repair: true });
    expect(report.repairs).toEqual([
      {
        ...{ cause: 'foreign_redis', done: true },
        what: 'set units left of segment 3 to the value that the other counters give',
      },
    ]);
    expect(report).toMatchObject({ ok: true, findings: [] });
  }
});
