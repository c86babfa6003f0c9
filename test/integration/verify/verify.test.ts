/** Verify: says of a whole sale that it is whole, also while it is being sold, and names what is wrong with any other. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import type { VerifyReport } from '../../../src/operations/sale-operations.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { verifySale } from '../../../src/verify/verify.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { everNewBuyers, startCrowd } from '../../support/nodes/crowd.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { buyers, Shop, type WatchedSync } from '../../support/shop/shop.ts';
import { acceptFour, soldSix } from '../../support/shop/sold-sales.ts';
import { query } from '../../support/shop/truth.ts';
import { inTier } from '../../support/tier.ts';

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const differences = ({ identities }: VerifyReport) => identities.map(({ difference }) => difference);

/** A term of either identity by its name. */
function term({ identities }: VerifyReport, name: string): number | undefined {
  const terms = identities.flatMap(({ left, right }) => [...left, ...right]);
  return terms.find((candidate) => candidate.name === name)?.units;
}

describe('a whole sale', () => {
  test('passes when nothing is sold', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({
      saleId: id,
      ok: true,
      findings: [],
      committedOrders: 0,
      rejectedOrders: 0,
    });
    expect(differences(report)).toEqual([0, 0]);
  });

  test('that is at rest is looked at once', async () => {
    const id = await soldSix(shop);
    let audits = 0;
    const backend = intercept(shop.backend, (call) => {
      if (call === 'audits.audit') audits++;
    });
    expect(await verifySale(shop.db, backend, id)).toMatchObject({ ok: true });
    // Before and after the query for what Postgres has given.
    expect(audits).toBe(2);
  });

  test('passes with orders in Postgres, in the logs and in neither', async () => {
    const id = await soldSix(shop);
    await acceptFour(shop, id);
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: true, findings: [], committedOrders: 6, distinctBuyers: 6 });
    expect(term(report, 'stock')).toBe(14);
    expect(term(report, 'in live orders')).toBe(6);
    expect(term(report, 'in segments')).toBe(10);
    expect(term(report, 'in logs beyond the cursors')).toBe(4);
  });

  test('is read again if it is rebuilt while its records are read, a bounded number of times', async () => {
    const id = await soldSix(shop);
    let rebuilds = 1;
    const { backend, db } = shop;
    const rebuilt = intercept(backend, (call) => {
      if (call === 'audits.records' && rebuilds-- > 0) throw new StaleGeneration(id, 1);
    });
    expect(await verifySale(db, rebuilt, id)).toMatchObject({ ok: true, findings: [], committedOrders: 6 });
    rebuilds = Number.POSITIVE_INFINITY;
    await expect(verifySale(db, rebuilt, id)).rejects.toThrow(StaleGeneration);
    const away = intercept(backend, (call) => {
      if (call === 'audits.records') throw new Error('the backend is away');
    });
    await expect(verifySale(db, away, id)).rejects.toThrow('the backend is away');
  });

  test.each([
    ['is not reported', 10, true],
    ['is reported if it is another one each time', 1_000, false],
  ])('a fault that no second look finds %s', async (_, faultyLooks, ok) => {
    const { id } = await shop.sell({ stock: 20, segments: 1 });
    let audits = 0;
    const changing = intercept(shop.backend, async (call) => {
      // A look has two audits.
      if (call !== 'audits.audit' || ++audits % 2 === 0) return;
      const look = Math.ceil(audits / 2);
      await keys.redis.hset(keys.of(id, 0).segment, 'left', look <= faultyLooks ? 20 + look : 20);
    });
    expect(await verifySale(shop.db, changing, id)).toMatchObject({ ok });
  });

  test('waits for a rebuild under way', async () => {
    const id = await soldSix(shop);
    await shop.backend.sales.freeze(id, 2, 1);
    let audits = 0;
    const slowly = intercept(shop.backend, async (call) => {
      // Two looks have seen the rebuild, each by two readings. A fault would be reported now.
      if (call === 'audits.audit' && ++audits === 5) await rebuildSale(shop.db, shop.backend, id);
    });
    expect(await verifySale(shop.db, slowly, id)).toMatchObject({ ok: true, findings: [] });
  });

  test('passes with a log of many pages, not all in memory; a page without an entry is noticed', async () => {
    const entries = 500;
    const { id } = await shop.sell({ stock: 1_000, segments: 1 });
    const till = await shop.startEngine();
    for (const buyer of buyers(entries)) {
      expect((await till.buy(id, buyer, { awaitCommit: false })).code).toBe('accepted');
    }
    const pages: number[] = [];
    const watched = intercept(shop.backend, (call, args) => {
      if (call === 'log.readLog') pages.push(args[1] as number);
    });
    const report = await verifySale(shop.db, watched, id);
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(term(report, 'in logs beyond the cursors')).toBe(entries);
    expect(Math.max(...pages) * 2).toBeLessThan(entries);
    // Twice for its units and its buyers' records, and by the entry for orders that Postgres does not know yet.
    expect(pages.reduce((sum, page) => sum + page, 0)).toBeLessThan(entries * 4);

    await keys.redis.xdel(keys.of(id, 0).log, `1-${entries - 50}`);
    const { ok, findings } = await shop.service.verify(id);
    expect(ok).toBe(false);
    expect(findings[0]).toMatch(`entry ${entries - 50} is missing`);
  });

  test('that does not exist is reported as unknown', async () => {
    await expect(shop.service.verify('nobody')).rejects.toMatchObject({ code: 'unknown_sale' });
  });
});

describe('a sale with foreign writes', () => {
  test('an order that was added: more units are sold than have left the stock', async () => {
    const id = await soldSix(shop);
    await shop.db.raw(
      "INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer) VALUES (1, ?, 'thief', 1, true)",
      [id],
    );
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(differences(report)).toEqual([-1, 0]);
    expect(report.identities[0]!.name).toBe('every unit is in stock or sold');
    expect(term(report, 'in live orders')).toBe(7);
  });

  test('an order that was deleted', async () => {
    const id = await soldSix(shop);
    await query(
      asAdmin(shop.databaseUrl),
      'DELETE FROM orders WHERE order_id = (SELECT min(order_id) FROM orders)',
    );
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(differences(report)).toEqual([1, 0]);
  });

  test('a changed stock: neither identity holds', async () => {
    const id = await soldSix(shop);
    await shop.db.raw('UPDATE sales SET stock = stock - 3 WHERE id = ?', [id]);
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(differences(report)).toEqual([3, -3]);
  });

  test('a segment with more units than it should have', async () => {
    const id = await soldSix(shop);
    await keys.redis.hincrby(keys.of(id, 1).segment, 'left', 5);
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(differences(report)).toEqual([0, -5]);
    expect(report.identities[1]!.name).toBe('Postgres and the segments agree');
    expect(term(report, 'in segments')).toBe(19);
  });

  test('an entry of a log that was deleted, though the counters still agree', async () => {
    const id = await soldSix(shop);
    await acceptFour(shop, id);
    const [segment, entry] = await firstEntry(id);
    await keys.redis.xdel(keys.of(id, segment).log, entry);
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(differences(report)).toEqual([0, 0]);
    expect(report.findings.join('\n')).toMatch(
      new RegExp(`log of segment ${segment}: (entry|entries) \\d+.* (is|are) missing`),
    );
  });

  test('a missing segment', async () => {
    const id = await soldSix(shop);
    await keys.redis.del(keys.of(id, 0).segment);
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(report.findings).toContain('segment 0 is not in the backend in generation 1');
  });

  test('a buyer above the limit', async () => {
    const id = await soldSix(shop);
    await shop.db.raw("UPDATE orders SET one_per_buyer = false, buyer_id = 'hoarder'");
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    expect(report.findings[0]).toBe(
      'buyer hoarder holds 6 units, above 1: the engine takes no order beyond the limit',
    );
    expect(report.findings.slice(1).join()).toMatch(
      /order \d+ of buyer buyer-\d .* is that of buyer hoarder/,
    );
  });

  async function firstEntry(saleId: string): Promise<[segment: number, id: string]> {
    for (const segment of [0, 1]) {
      const [entry] = await keys.redis.xrange(keys.of(saleId, segment).log, '-', '+', 'COUNT', 1);
      if (entry) return [segment, entry[0]];
    }
    throw new Error('the logs are empty');
  }
});

describe('while the sale is being sold', () => {
  /** Each reads all orders there are by then: more of them would only take longer. */
  const TIMES = inTier({ test: 2, release: 10 });

  test.each([
    { name: 'in small transactions', segments: 8, batchRows: 20 },
    { name: 'in large transactions', segments: 64, batchRows: 4_000 },
  ])('it passes each time, $name', { timeout: 300_000 }, async ({ segments, batchRows }) => {
    const { id } = await shop.sell({ stock: 1_000_000, segments, perBuyerLimit: 3 });
    const sync: WatchedSync = await shop.startSync({ backend: await shop.anotherBackend(), batchRows });
    const till = await shop.startEngine();
    await using running = new Load(till, id, { lines: 200, quantity: 3 });
    await until(() => running.promised.length > 100, { what: 'the sale runs' });
    for (let time = 1; time <= TIMES; time++) {
      const before = sync.seen.orders;
      const report = await shop.service.verify(id);
      expect(report, `time ${time}`).toMatchObject({ ok: true, findings: [] });
      await until(() => sync.seen.orders > before, { what: 'sync goes on' });
    }
    expect([...running.codes.keys()]).toEqual(['committed']);
  });

  test('it passes although sync trims every log between two reads', async () => {
    const { id } = await shop.sell({ stock: 1_000, segments: 1 });
    const sync = await shop.startSync();
    await sync.ready;
    const till = await shop.startEngine();
    let reads = 0;
    const moving = intercept(shop.backend, async (call) => {
      if (call !== 'log.readLog') return;
      for (const buyer of buyers(3, `of read ${++reads}`.replaceAll(' ', '-'))) {
        expect((await till.buy(id, buyer)).code).toBe('committed');
      }
    });
    expect(await verifySale(shop.db, moving, id)).toMatchObject({ ok: true, findings: [] });
    expect(reads).toBeGreaterThan(1);
  });

  test('by a node, it passes each time in another process', { timeout: 300_000 }, async () => {
    const { redisUrl, databaseUrl, keyPrefix } = shop;
    await using node = await startTestNode({ redisUrl, databaseUrl, keyPrefix, env: { WORKERS: '2' } });
    const { id: saleId } = await shop.sell({ stock: 1_000_000, segments: 16 });
    await using running = startCrowd({
      ...{
        url: node.publicUrl,
        saleId,
        clients: inTier({ test: 10, release: 100 }),
        buyers: everNewBuyers(),
      },
    });
    const { answers } = running.result;
    for (let time = 1; time <= TIMES; time++) {
      const before = answers.length;
      expect(await shop.service.verify(saleId), `time ${time}`).toMatchObject({ ok: true, findings: [] });
      await until(() => answers.length > before, { what: 'the sale goes on' });
    }
    expect(Object.keys((await running.stop()).codes)).toEqual(['committed']);
  });

  test('it passes while the last units move from segment to segment', async () => {
    const { id } = await shop.sell({ stock: 300, segments: 64, perBuyerLimit: 3 });
    await shop.startSync();
    const till = await shop.startEngine();
    await using running = new Load(till, id, { lines: 20, quantity: 2 });
    while (!running.codes.has('sold_out')) {
      expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
    }
    await running.stop();
    expect((await shop.service.show(id)).committedUnits).toBe(300);
  });
});
