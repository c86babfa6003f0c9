/** Changes of a sale by operators while it sells: in both stores or in none, once, and with a row in the ledger. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Outcome, Purchase } from '../../../src/engine/contract.ts';
import { InvalidInput, StaleGeneration } from '../../../src/engine/errors.ts';
import { MAX_STOCK } from '../../../src/engine/limits.ts';
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import type { PageQuery } from '../../../src/operations/checked-input.ts';
import {
  InsufficientStock,
  SaleExists,
  UnknownSale,
  WrongState,
} from '../../../src/operations/sale-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import type { SaleLocks } from '../../../src/postgres/sale-locks.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { followState } from '../../../src/sales/follow-state.ts';
import { readOpenMovements } from '../../../src/sales/ledger.ts';
import { finishMovements, readOverdueSales } from '../../../src/sales/movements.ts';
import { readSale, type SaleRow } from '../../../src/sales/sale-rows.ts';
import { undoWithdrawal, withdraw } from '../../../src/sales/withdrawal.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { BY } from '../../support/author.ts';
import { hidingChanges } from '../../support/engine/hiding-changes.ts';
import { breaker, deathAt, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { cutOffAt } from '../../support/shop/cut-off.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

const PRICE = { priceMinor: 100, currency: 'EUR' };

let shop: Shop;

afterEach(() => shop[Symbol.asyncDispose]());

const topUp = (units: number) => ({ action: 'top-up' as const, units });
const take = (units: number) => ({ action: 'withdraw' as const, units });

const parseAndTell = (spec: object) => saleToJson(parseSale(spec));

async function left(saleId: string): Promise<number[]> {
  const { segments, generation } = await shop.service.show(saleId);
  const snapshot = await shop.backend.sales.snapshot(saleId, segments, generation);
  return snapshot.map(({ counters }) => counters?.left ?? -1);
}

function failingOnce(name: string, error: Error) {
  let hits = 0;
  const before = (call: string) => {
    if (call === name && hits++ === 0) throw error;
  };
  return { before, hits: () => Math.min(hits, 1) };
}

const epochOf = async (saleId: string) => (await shop.backend.sales.read(saleId))!.epoch;

const sum = (parts: number[]) => parts.reduce((total, part) => total + part, 0);

async function expectVerified(saleId: string): Promise<void> {
  const report = await shop.service.verify(saleId);
  expect(report.findings).toEqual([]);
  expect(report.identities.map(({ difference }) => difference)).toEqual([0, 0]);
}

describe.each(['redis', 'memory'] as const)('on %s', (backend) => {
  beforeEach(async () => {
    shop = await Shop.open({ backend });
  });

  test('a creation that meets a rebuild of the sale waits for it', async () => {
    const { before, hits } = failingOnce('sales.loadSegment', new StaleGeneration('late', 1));
    const service = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    expect(await service.create({ id: 'late', stock: 5, segments: 2 }, 'anna')).toMatchObject({
      remaining: 5,
    });
    expect(hits()).toBe(1);
  });

  test('a creation waits for the lock of its sale, also if the clock is set ahead meanwhile', async () => {
    onTestFinished(() => void vi.restoreAllMocks());
    let tries = 0;
    const locks = {
      async tryLock(saleId: string) {
        tries++;
        if (tries === 2) vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
        return tries > 3 && shop.locks.tryLock(saleId);
      },
      unlock: (saleId: string) => shop.locks.unlock(saleId),
    } as SaleLocks;
    const service = new SaleService(shop.db, shop.backend, locks);
    expect(await service.create({ id: 'late', stock: 5, segments: 2 }, 'anna')).toMatchObject({
      remaining: 5,
    });
  });

  test('a creation fails at once if the backend fails, and sync builds the sale', async () => {
    const { before } = failingOnce('sales.loadSegment', new Error('the backend is away'));
    const service = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    const creation = service.create({ id: 'failed', stock: 5, segments: 1 }, 'anna');
    await expect(creation).rejects.toThrow('the backend is away');
    await (await shop.startSync()).ready;
    expect(await left('failed')).toEqual([5]);
  });

  test('a resize fails at once if the backend fails, and sync continues it', async () => {
    const { id } = await shop.sell({ stock: 5, segments: 1 });
    const { before } = failingOnce('sales.publish', new Error('the backend is away'));
    const service = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    const resize = service.change(id, { action: 'resize', segments: 2 }, BY);
    await expect(resize).rejects.toThrow('the backend is away');
    await (await shop.startSync()).ready;
    await until(async () => (await shop.service.show(id)).segments === 2, { what: 'two segments' });
    expect(await left(id)).toEqual([3, 2]);
  });

  test('a pause stays although the resume before it arrives late, from a process whose session Postgres has ended', async () => {
    const sale = await shop.sell({ stock: 5, segments: 2 });
    await shop.service.change(sale.id, { action: 'pause' }, BY);
    const late = cutOffAt(shop, 'sales.setState');
    const outcome = late.service.change(sale.id, { action: 'resume' }, BY).catch(() => 'failed');
    await late.losesSession('SELECT * FROM sales%');
    await shop.service.change(sale.id, { action: 'pause' }, BY);
    late.goOn();
    expect(await outcome).toBe('failed');
    expect(await shop.backend.sales.read(sale.id)).toMatchObject({ state: 'paused' });
    const { generation } = await shop.service.show(sale.id);
    const logs = [0, 1].map((segment) => ({ saleId: sale.id, segment, generation, seq: 0, tail: '' }));
    const read = await shop.backend.log.readLog(logs, 1);
    expect(read.map(({ head }) => head?.state)).toEqual(['paused', 'paused']);
  });

  test('a pause that ended before a rebuild published the sale stays ended, although it arrives late', async () => {
    const sale = await shop.sell({ stock: 5, segments: 2 });
    let paused: SaleRow | undefined;
    const meeting = intercept(shop.backend, async (call) => {
      if (call !== 'sales.publish' || paused) return;
      const change = (action: 'pause' | 'resume') => shop.service.change(sale.id, { action }, BY);
      await expect(change('pause')).rejects.toThrow(StaleGeneration);
      paused = await readSale(shop.db, sale.id);
      await expect(change('resume')).rejects.toThrow(StaleGeneration);
    });
    await rebuildSale(shop.db, meeting, sale.id);
    expect(paused).toMatchObject({ state: 'paused' });
    await shop.backend.sales.setState(paused!);
    expect(await shop.backend.sales.read(sale.id)).toMatchObject({ state: 'open' });
  });

  test('if Postgres was set back, its state is that of the backend all the same, and so are later changes', async () => {
    const sale = await shop.sell({ stock: 5, segments: 2 });
    for (const action of ['pause', 'resume', 'pause'] as const)
      await shop.service.change(sale.id, { action }, BY);
    await shop.db.raw("UPDATE sales SET revision = 0, state = 'open' WHERE id = ?", [sale.id]);
    expect(await followState(shop.db, shop.backend, sale.id)).toBe(true);
    expect(await shop.backend.sales.read(sale.id)).toMatchObject({ state: 'open' });
    await shop.service.change(sale.id, { action: 'pause' }, BY);
    expect(await shop.backend.sales.read(sale.id)).toMatchObject({ state: 'paused' });
  });

  const HOUR_MS = 3_600_000;
  const past = Date.now() - HOUR_MS;
  const stricter: [string, SaleChange, Outcome['code']][] = [
    ['asks for purchase tokens', { action: 'require-token', requireToken: true }, 'token_required'],
    ['ends the window', { action: 'window', startsAt: past - 1, endsAt: past }, 'ended'],
    ['begins the window later', { action: 'window', startsAt: Date.now() + HOUR_MS }, 'not_started'],
  ];
  test.each(stricter)(
    'a node that missed a change that %s does not sell by the old rules',
    async (_, change, code) => {
      const sale = await shop.sell({ stock: 30, segments: 2 });
      await shop.startSync();
      const checkToken = ({ token }: Purchase) => (token === 'good' ? undefined : 'alien');
      const till = await shop.startEngine({ backend: hidingChanges(shop.backend), checkToken });
      // From here on it knows the sale, and would not look again by itself.
      expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'committed' });
      await shop.service.change(sale.id, change, BY);
      const outcomes = await till.buyAll(sale.id, buyers(20));
      expect([...new Set(outcomes.map((outcome) => outcome.code))]).toEqual([code]);
      if (code === 'token_required')
        expect(await till.buy(sale.id, 'ben', { token: 'good' })).toMatchObject({ code: 'committed' });
      expect(till.faults).toEqual([]);
      await expectVerified(sale.id);
    },
  );

  test('purchases that meet new rules in a segment before the record has them wait for the record', async () => {
    const sale = await shop.sell({ stock: 4, segments: 2 });
    await shop.startSync();
    const checkToken = ({ token }: Purchase) => (token === 'good' ? undefined : 'alien');
    const reading = { old: await shop.backend.sales.read(sale.id), isOld: false };
    // The record still says this while the change has reached the segments.
    const halfway = intercept(hidingChanges(shop.backend), () => {});
    const sales = new Proxy(halfway.sales, {
      get: (target, name) =>
        name === 'read' && reading.isOld ? async () => reading.old : target[name as keyof typeof target],
    });
    const till = await shop.startEngine({ backend: { ...halfway, sales }, checkToken });
    expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'committed' });
    reading.isOld = true;
    await shop.service.change(sale.id, { action: 'require-token', requireToken: true }, BY);
    const waiting = [till.buy(sale.id, 'ben'), till.buy(sale.id, 'cleo', { token: 'good' })];
    await until(() => [...till.engine.laneDepths()].some(({ queued }) => queued === 2), {
      what: 'they wait',
    });
    reading.isOld = false;
    expect((await Promise.all(waiting)).map(({ code }) => code)).toEqual(['token_required', 'committed']);
    await expectVerified(sale.id);
  });

  test('an edit may not leave an amount without a currency', async () => {
    const half = await shop.sell({ stock: 1 });
    const edit = (id: string, change: object) =>
      shop.service.change(id, { action: 'edit', ...change }, BY).then(
        () => 'done',
        (error: InvalidInput) => error.faults.map(({ field, problem }) => `${field} ${problem}`).join(),
      );
    expect(await edit(half.id, { priceMinor: 1 })).toBe('priceMinor needs a `currency`, such as EUR');
    // As an older version stored it.
    await query(asAdmin(shop.databaseUrl), `UPDATE sales SET price_minor = 5 WHERE id = '${half.id}'`);
    expect(await edit(half.id, { title: 'New' })).toBe('done');
    expect(await edit(half.id, { title: 'Newer', priceMinor: 5 })).toBe('done');
    expect(await edit(half.id, { currency: 'EUR' })).toBe('done');

    const priced = await shop.sell({ stock: 1, ...PRICE });
    expect(await edit(priced.id, { currency: null })).toBe(
      'priceMinor stays, and needs a `currency`: remove the amount too',
    );
    for (const change of [
      ...[{ priceMinor: 200 }, { currency: 'CHF' }, { faceValueMinor: 1 }],
      ...[
        { faceValueMinor: null },
        { priceMinor: null },
        { priceMinor: 5 },
        { priceMinor: null, currency: null },
      ],
    ])
      expect(await edit(priced.id, change)).toBe('done');
  });

  test('an edit is in the record, in the ledger with both values, and in the time to pay of later orders', async () => {
    const sale = await shop.sell({ stock: 5, title: 'Old', ...PRICE, metadata: { a: 1 } });
    await shop.startSync();
    const till = await shop.startEngine();
    expect(await till.buy(sale.id, 'ann')).toMatchObject({ code: 'committed' });
    const edit = {
      title: 'New',
      priceMinor: null,
      currency: 'CHF',
      payWithinSeconds: 60,
      faceValueMinor: 90,
    };
    const metadata = { a: 2, hall: ['B', null] };
    const change = { action: 'edit', ...edit, metadata } as const;
    const status = await shop.service.change(sale.id, change, BY);
    expect(status).toMatchObject({ title: 'New', currency: 'CHF', payWithinSeconds: 60 });
    expect(status.metadata).toEqual(metadata);
    expect(status.priceMinor).toBeUndefined();
    expect((await shop.backend.sales.read(sale.id))!.sale).toMatchObject({ title: 'New', currency: 'CHF' });
    expect(await shop.changesOf(sale.id)).toMatchObject([
      {
        action: 'edit',
        applied: true,
        detail: {
          from: { title: 'Old', payWithinSeconds: null, ...PRICE, faceValueMinor: null, metadata: { a: 1 } },
          to: { ...edit, metadata },
        },
      },
    ]);
    await shop.service.change(sale.id, { action: 'edit', title: 'New', currency: 'CHF', metadata }, BY);
    expect(await shop.changesOf(sale.id)).toHaveLength(1);
    expect(await till.buy(sale.id, 'ben')).toMatchObject({ code: 'committed' });
    const expiries = await rows(
      shop.db,
      'SELECT buyer_id, expires_at IS NULL AS never FROM orders WHERE sale_id = ? ORDER BY buyer_id',
      [sale.id],
    );
    expect(expiries).toEqual([
      { buyer_id: 'ann', never: true },
      { buyer_id: 'ben', never: false },
    ]);
    await expectVerified(sale.id);
  });

  test('a raised limit holds for what a buyer has from before and after it, also after a rebuild', async () => {
    const sale = await shop.sell({ stock: 20, segments: 2 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const buy = (buyerId: string, quantity = 1, at = till) => at.buy(sale.id, buyerId, { quantity });
    expect(await buy('anna')).toMatchObject({ code: 'committed' });
    expect(await buy('anna')).toMatchObject({ code: 'limit_reached', limit: 1 });
    const raise = { action: 'edit', perBuyerLimit: 3 } as const;
    expect(await shop.service.change(sale.id, raise, BY)).toMatchObject({ perBuyerLimit: 3 });
    await until(async () => (await buy('ben', 2)).code === 'committed', { what: 'the node knows the limit' });
    expect(await buy('anna')).toMatchObject({ code: 'committed' });
    expect(await buy('anna', 2)).toMatchObject({ code: 'limit_reached', limit: 3 });
    await sync.stop();
    await rebuildSale(shop.db, shop.backend, sale.id);
    await shop.startSync();
    const next = await shop.startEngine();
    expect(await buy('anna', 2, next)).toMatchObject({ code: 'limit_reached', limit: 3 });
    expect(await buy('anna', 1, next)).toMatchObject({ code: 'committed' });
    expect(await buy('anna', 1, next)).toMatchObject({ code: 'limit_reached', limit: 3 });
    await shop.service.change(sale.id, raise, BY);
    expect(await shop.changesOf(sale.id)).toMatchObject([
      { action: 'edit', detail: { from: { perBuyerLimit: 1 }, to: { perBuyerLimit: 3 } }, applied: true },
    ]);
    await expectVerified(sale.id);
  });

  test('a node that missed a raised limit learns it from the first take', async () => {
    const sale = await shop.sell({ stock: 20, segments: 2 });
    await shop.startSync();
    const till = await shop.startEngine({ backend: hidingChanges(shop.backend) });
    expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'committed' });
    await shop.service.change(sale.id, { action: 'edit', perBuyerLimit: 2 }, BY);
    expect(await till.buy(sale.id, 'ben', { quantity: 2 })).toMatchObject({ code: 'invalid_request' });
    expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'committed' });
    expect(await till.buy(sale.id, 'ben', { quantity: 2 })).toMatchObject({ code: 'committed' });
    expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'limit_reached', limit: 2 });
    await expectVerified(sale.id);
  });

  test('the initial settings of a sale without a creation entry are those before its edits', async () => {
    const sale = await shop.sell({ stock: 5, title: 'First' });
    await shop.service.change(sale.id, { action: 'edit', title: 'Second', ...PRICE }, BY);
    await shop.service.change(sale.id, { action: 'edit', title: 'Third' }, BY);
    await query(asAdmin(shop.databaseUrl), "DELETE FROM stock_movements WHERE action = 'create'");
    const [creation] = (await shop.service.ledger(sale.id)).ledger;
    expect(creation).toMatchObject({ action: 'create', detail: { title: 'First' } });
    expect(creation!.detail.currency).toBeUndefined();
  });

  test('a top-up reopens a sale that is sold out, and is sold to the last unit', async () => {
    const sale = await shop.sell({ stock: 3, segments: 4 });
    await shop.startSync();
    const till = await shop.startEngine();
    await till.buyAll(sale.id, buyers(5));
    expect(await till.buy(sale.id, 'late')).toEqual({ code: 'sold_out' });
    const status = await shop.service.change(sale.id, topUp(6), { actor: 'ann', reason: 'second batch' });
    expect(status).toMatchObject({ stock: 3, movedUnits: 6, remaining: 6, soldOut: false });
    await until(async () => (await till.buy(sale.id, 'first', { key: 'until-sold' })).code === 'committed', {
      what: 'it sells again',
    });
    const outcomes = await till.buyAll(sale.id, buyers(10, 'second'));
    expect(outcomes.filter(({ code }) => code === 'committed')).toHaveLength(5);
    expect(await shop.changesOf(sale.id)).toMatchObject([
      { action: 'top-up', units: 6, actor: 'ann', reason: 'second batch', applied: true },
    ]);
    await expectVerified(sale.id);
  });

  test('the ledger begins with the creation: operator, settings and reason', async () => {
    const spec = { id: 'noted', stock: 7, segments: 3, startsAt: '2026-01-01T00:00:00Z', perBuyerLimit: 2 };
    await shop.service.create({ ...spec, title: 'Row 1', reason: 'opening night' }, 'ann');
    await shop.service.change('noted', topUp(5), BY);
    await shop.service.change('noted', { action: 'require-token', requireToken: true }, BY);
    const [creation, ...changes] = (await shop.service.ledger('noted')).ledger;
    expect(creation).toEqual({
      ...{ id: expect.any(String), at: expect.any(String), action: 'create', units: 0 },
      ...{ actor: 'ann', reason: 'opening night', applied: true },
      detail: {
        ...{ title: 'Row 1', stock: 7, segments: 3, perBuyerLimit: 2, requireToken: false },
        startsAt: '2026-01-01T00:00:00.000Z',
      },
    });
    expect(changes.map(({ action }) => action)).toEqual(['top-up', 'require-token']);
    expect(await shop.service.show('noted')).toMatchObject({ stock: 7, movedUnits: 5 });
    await expectVerified('noted');
  });

  test('creating a sale again adds no second row', async () => {
    const again = () => shop.service.create({ id: 'once', stock: 1, reason: 'again' }, 'bert');
    await shop.service.create({ id: 'once', stock: 1 }, 'ann');
    await expect(again()).rejects.toThrow(new SaleExists('once'));
    const racing = { id: 'raced', stock: 1 };
    const ends = await Promise.allSettled(
      ['ann', 'bert', 'cid'].map((actor) => shop.service.create(racing, actor)),
    );
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await shop.service.ledger('once')).ledger).toMatchObject([
      { action: 'create', actor: 'ann', reason: '' },
    ]);
    expect((await shop.service.ledger('raced')).ledger).toMatchObject([{ action: 'create' }]);
  });

  test('a sale and its ledger row are created together, or neither', async () => {
    await query(asAdmin(shop.databaseUrl), "ALTER TABLE stock_movements ADD CHECK (actor <> 'nobody')");
    await expect(shop.service.create({ id: 'half', stock: 1 }, 'nobody')).rejects.toThrow(/check/);
    await expect(shop.service.show('half')).rejects.toThrow(new UnknownSale('half'));
    expect(await shop.service.create({ id: 'half', stock: 1 }, 'ann')).toMatchObject({ remaining: 1 });
  });

  test('the creation of a sale from an older version is derived from its row and its first changes', async () => {
    const spec = { id: 'older', stock: 9, segments: 4, startsAt: '2026-01-01T00:00:00Z' };
    await shop.service.create(spec, 'ann');
    await query(asAdmin(shop.databaseUrl), "DELETE FROM stock_movements WHERE action = 'create'");
    const first = async () => (await shop.service.ledger('older')).ledger[0];
    const { id: _, metadata: __, ...settings } = parseAndTell(spec);
    const creation = {
      ...{ id: '0', at: expect.any(String), action: 'create', units: 0, applied: true },
      ...{ actor: undefined, reason: '', detail: settings },
    };
    expect(await first()).toEqual(creation);
    const endsAt = Date.parse('2200-01-01T00:00:00Z');
    await shop.service.change('older', { action: 'window', endsAt }, BY);
    await shop.service.change('older', { action: 'window', startsAt: 0, endsAt: null }, BY);
    await shop.service.change('older', { action: 'require-token', requireToken: true }, BY);
    await shop.service.change('older', { action: 'resize', segments: 2 }, BY);
    await shop.service.change('older', { action: 'resize', segments: 3 }, BY);
    await shop.service.change('older', topUp(3), BY);
    expect(await first()).toEqual(creation);
    expect(await shop.changesOf('older')).toHaveLength(6);
    const page = async (query: PageQuery) => {
      const { ledger, next } = await shop.service.ledger('older', query);
      return { actions: ledger.map((entry) => entry.action), next };
    };
    expect(await page({ limit: 1 })).toEqual({ actions: ['create'], next: '0' });
    const second = await page({ limit: 2, after: '0' });
    expect(second.actions).toEqual(['window', 'window']);
    const last = await page({ limit: 4, after: second.next });
    expect(last).toEqual({ actions: ['require-token', 'resize', 'resize', 'top-up'], next: undefined });
    await expectVerified('older');
  });

  test('a withdrawal takes unsold units evenly, and never more than there are', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    await shop.startSync();
    const till = await shop.startEngine();
    await till.buyAll(sale.id, buyers(5));
    expect(await shop.service.change(sale.id, take(7), BY)).toMatchObject({ remaining: 8, movedUnits: -7 });
    const parts = await left(sale.id);
    expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
    await expect(shop.service.change(sale.id, take(9), BY)).rejects.toThrow(
      new InsufficientStock(sale.id, 9, 8),
    );
    expect(sum(await left(sale.id))).toBe(8);
    expect(
      (await till.buyAll(sale.id, buyers(9, 'second'))).filter((o) => o.code === 'committed'),
    ).toHaveLength(8);
    expect(await shop.changesOf(sale.id)).toMatchObject([
      { action: 'withdraw', units: -7, detail: { wanted: 7 }, applied: true },
    ]);
    await expectVerified(sale.id);
  });

  test('the window moves, and a buyer sees it at once', async () => {
    const sale = await shop.sell({ stock: 3, startsAt: '2200-01-01T00:00:00Z' });
    const till = await shop.startEngine();
    expect(await till.buy(sale.id, 'ann')).toMatchObject({ code: 'not_started' });
    await shop.startSync();
    const startsAt = Date.parse('2026-01-01T00:00:00Z');
    const status = await shop.service.change(sale.id, { action: 'window', startsAt }, BY);
    expect(status).toMatchObject({ startsAt: '2026-01-01T00:00:00.000Z' });
    await until(async () => (await till.buy(sale.id, 'ann', { key: 'until-sold' })).code === 'committed', {
      what: 'ann can buy',
    });
    const endsAt = startsAt + 1;
    await shop.service.change(sale.id, { action: 'window', endsAt }, BY);
    await until(async () => (await till.buy(sale.id, 'ben')).code === 'ended', { what: 'ben is told' });
    await shop.service.change(sale.id, { action: 'window', endsAt: null }, BY);
    await until(async () => (await till.buy(sale.id, 'ben', { key: 'until-sold' })).code === 'committed', {
      what: 'ben can buy',
    });
    expect((await shop.changesOf(sale.id)).map(({ detail }) => detail)).toEqual([
      { from: ['2200-01-01T00:00:00.000Z', null], to: ['2026-01-01T00:00:00.000Z', null] },
      {
        from: ['2026-01-01T00:00:00.000Z', null],
        to: ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z'],
      },
      {
        from: ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z'],
        to: ['2026-01-01T00:00:00.000Z', null],
      },
    ]);
  });

  test('a change without effect leaves no row', async () => {
    const sale = await shop.sell({ stock: 3 });
    await shop.service.change(sale.id, { action: 'pause' }, BY);
    await shop.service.change(sale.id, { action: 'pause' }, BY);
    await shop.service.change(sale.id, { action: 'window', startsAt: Date.parse(sale.startsAt) }, BY);
    expect((await shop.changesOf(sale.id)).map(({ action, detail }) => ({ action, detail }))).toEqual([
      { action: 'pause', detail: { from: 'open' } },
    ]);
  });

  test('an impossible change is refused and changes nothing', async () => {
    const sale = await shop.sell({ stock: 3, segments: 2, perBuyerLimit: 2 });
    const refused = async (change: Parameters<typeof shop.service.change>[1], error: unknown) => {
      await expect(shop.service.change(sale.id, change, BY)).rejects.toThrow(error as Error);
    };
    await refused(take(4), new InsufficientStock(sale.id, 4, 3));
    await refused(topUp(MAX_STOCK), InvalidInput as never);
    await refused({ action: 'window', endsAt: 0 }, InvalidInput as never);
    await refused(
      { action: 'edit', title: 'New', perBuyerLimit: 1 },
      /perBuyerLimit must be at least 2, the limit now, because buyers may hold that many units/,
    );
    await expect(shop.service.change('nowhere', topUp(1), BY)).rejects.toThrow(new UnknownSale('nowhere'));
    await expect(shop.service.ledger('nowhere')).rejects.toThrow(new UnknownSale('nowhere'));
    expect(await left(sale.id)).toEqual([2, 1]);
    await shop.service.change(sale.id, { action: 'close' }, BY);
    await refused(topUp(1), new WrongState(sale.id, 'closed', 'topped up'));
    await refused(
      { action: 'window', endsAt: null },
      new WrongState(sale.id, 'closed', 'given another window'),
    );
    await refused({ action: 'edit', title: 'New' }, new WrongState(sale.id, 'closed', 'edited'));
    await refused({ action: 'resize', segments: 3 }, new WrongState(sale.id, 'closed', 'resized'));
    await refused(
      { action: 'require-token', requireToken: true },
      new WrongState(sale.id, 'closed', 'changed'),
    );
    expect((await shop.changesOf(sale.id)).map(({ action }) => action)).toEqual(['close']);
    expect(await shop.service.show(sale.id)).toMatchObject({ movedUnits: 0, remaining: 3 });
    await expectVerified(sale.id);
  });
});

describe('a change whose process dies', () => {
  beforeEach(async () => {
    shop = await Shop.open();
  });

  /** Makes the change old enough for the reconciler. */
  const forsake = () => shop.db.raw("UPDATE stock_movements SET moved_at = now() - interval '1 minute'");

  async function repair(saleId: string): Promise<void> {
    await forsake();
    expect(await readOverdueSales(shop.db)).toEqual([saleId]);
    await finishMovements(shop.db, shop.backend, saleId);
    expect(await readOverdueSales(shop.db)).toEqual([]);
  }

  test('is found by its age, also after the clock of Postgres was set back', async () => {
    const { id } = await shop.sell({ stock: 4, segments: 1 });
    await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
    for (const [madeAt, isOverdue] of [
      ["now() - interval '1 second'", false],
      ["now() - interval '1 minute'", true],
      ["now() + interval '1 second'", false],
      ["now() + interval '1 hour'", true],
    ] as const) {
      await shop.db.raw(`UPDATE stock_movements SET applied_at = NULL, moved_at = ${madeAt}`);
      expect(await readOverdueSales(shop.db), madeAt).toEqual(isOverdue ? [id] : []);
    }
  });

  const credits =
    (segment: number) =>
    (call: string, [share]: readonly unknown[]) =>
      call === 'sales.credit' && (share as { segment: number }).segment === segment;

  test.each([
    ['before the first credit', credits(0)],
    ['before the last credit', credits(3)],
    ['before the epoch is raised', (call: string) => call === 'sales.reopen'],
  ])('a top-up, %s: its units come once', async (_, fatal) => {
    const sale = await shop.sell({ stock: 4, segments: 4 });
    const { death, before } = deathAt(fatal);
    const dying = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    void dying.change(sale.id, topUp(6), BY);
    await death;
    expect((await shop.changesOf(sale.id))[0]).toMatchObject({ applied: false });
    await repair(sale.id);
    expect(sum(await left(sale.id))).toBe(10);
    await expectVerified(sale.id);
  });

  const EDIT = { action: 'edit', title: 'New', priceMinor: 300, currency: 'EUR' } as const;
  const recordOf = async (saleId: string) => (await shop.backend.sales.read(saleId))!.sale;

  test('an edit, before the record has it: the reconciler writes it', async () => {
    const sale = await shop.sell({ stock: 4, title: 'Old' });
    const { before } = breaker('sales.setState');
    const dying = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    await expect(dying.change(sale.id, EDIT, BY)).rejects.toThrow();
    expect((await shop.changesOf(sale.id))[0]).toMatchObject({ applied: false });
    expect((await recordOf(sale.id)).title).toBe('Old');
    await repair(sale.id);
    expect(await recordOf(sale.id)).toMatchObject({ title: 'New', priceMinor: 300 });
    await expectVerified(sale.id);
  });

  test.each(['sales.setState', 'sales.loadSegment', 'sales.publish'])(
    'a raised limit, before %s: no more is sold than Postgres allows, and a rebuild or the reconciler raises it',
    async (step) => {
      const sale = await shop.sell({ stock: 9, segments: 2 });
      const sync = await shop.startSync();
      const till = await shop.startEngine();
      expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'committed' });
      await sync.stop();
      const raise = { action: 'edit', perBuyerLimit: 2 } as const;
      let met = false;
      const dying = new SaleService(
        shop.db,
        intercept(shop.backend, breaker('sales.setState').before),
        shop.locks,
      );
      const raiseAndDie = async (call: string) => {
        if (call !== step || met) return;
        met = true;
        await expect(dying.change(sale.id, raise, BY)).rejects.toThrow();
      };
      if (step === 'sales.setState') {
        await raiseAndDie(step);
        expect((await recordOf(sale.id)).perBuyerLimit).toBe(1);
        expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'limit_reached', limit: 1 });
      } else await rebuildSale(shop.db, intercept(shop.backend, raiseAndDie), sale.id);
      expect(met).toBe(true);
      await repair(sale.id);
      expect((await recordOf(sale.id)).perBuyerLimit).toBe(2);
      await shop.startSync();
      const next = await shop.startEngine();
      expect(await next.buy(sale.id, 'anna')).toMatchObject({ code: 'committed' });
      expect(await next.buy(sale.id, 'anna')).toMatchObject({ code: 'limit_reached', limit: 2 });
      await expectVerified(sale.id);
    },
  );

  test('an edit, before its row is closed: it is written a second time', async () => {
    const sale = await shop.sell({ stock: 4, title: 'Old' });
    await shop.service.change(sale.id, EDIT, BY);
    await shop.db.raw("UPDATE stock_movements SET applied_at = NULL WHERE action = 'edit'");
    await repair(sale.id);
    expect(await recordOf(sale.id)).toMatchObject({ title: 'New', priceMinor: 300 });
    expect((await shop.changesOf(sale.id))[0]).toMatchObject({ applied: true });
  });

  test('an edit that meets a rebuild which began with the old values is in the record afterwards', async () => {
    const sale = await shop.sell({ stock: 4, title: 'Old' });
    let edited: Promise<unknown> | undefined;
    const backend = intercept(shop.backend, async (call) => {
      if (call !== 'sales.publish' || edited) return;
      edited = shop.service.change(sale.id, EDIT, BY).catch((error: unknown) => error);
      await edited;
    });
    await rebuildSale(shop.db, backend, sale.id);
    expect(await edited).toBeInstanceOf(StaleGeneration);
    await forsake();
    await finishMovements(shop.db, shop.backend, sale.id);
    expect(await recordOf(sale.id)).toMatchObject({ title: 'New', priceMinor: 300 });
    expect((await shop.changesOf(sale.id))[0]).toMatchObject({ applied: true });
    await expectVerified(sale.id);
  });

  test.each([
    ['before the first segment', 1],
    ['after some', 3],
  ])('a withdrawal, %s: its units come back, and it has no effect', async (_, fatalCall) => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    let calls = 0;
    const { death, before } = deathAt((call) => call === 'sales.withdraw' && ++calls === fatalCall);
    void withdraw(shop.db, intercept(shop.backend, before), sale.id, 10, BY);
    await death;
    const epoch = await epochOf(sale.id);
    await repair(sale.id);
    expect(await left(sale.id)).toEqual([5, 5, 5, 5]);
    expect(await epochOf(sale.id), 'a node that closed its board meanwhile sees it').toBeGreaterThan(epoch);
    expect(await shop.changesOf(sale.id)).toMatchObject([{ units: 0, detail: { wanted: 10, void: true } }]);
    await expectVerified(sale.id);
  });

  test('a slow withdrawal that sync has undone can’t complete', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    let snapshots = 0;
    const backend = intercept(shop.backend, async (call) => {
      // By then all units are out, and the process is about to complete it in Postgres.
      if (call === 'sales.snapshot' && ++snapshots === 2) await repair(sale.id);
    });
    await expect(withdraw(shop.db, backend, sale.id, 10, BY)).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(await left(sale.id)).toEqual([5, 5, 5, 5]);
    await expectVerified(sale.id);
  });

  test('a top-up, beside a withdrawal that is under way: the withdrawal is not undone', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    const dying = new SaleService(
      shop.db,
      intercept(shop.backend, breaker('sales.credit').before),
      shop.locks,
    );
    await expect(dying.change(sale.id, topUp(4), BY)).rejects.toThrow(/sales.credit fails/);
    let repaired = false;
    const backend = intercept(shop.backend, async (call) => {
      if (call !== 'sales.withdraw' || repaired) return;
      repaired = true;
      await shop.db.raw(
        "UPDATE stock_movements SET moved_at = now() - interval '1 minute' WHERE action = 'top-up'",
      );
      await finishMovements(shop.db, shop.backend, sale.id);
    });
    await withdraw(shop.db, backend, sale.id, 10, BY);
    expect(sum(await left(sale.id))).toBe(14);
    await expectVerified(sale.id);
  });

  test('a withdrawal that ends while it is being undone withdraws nothing', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    let isOut = false;
    const { open: goOn, opened: mayEnd } = gate();
    let snapshots = 0;
    const slow = intercept(shop.backend, async (call) => {
      if (call !== 'sales.snapshot' || ++snapshots < 2) return;
      isOut = true;
      await mayEnd;
    });
    const end = withdraw(shop.db, slow, sale.id, 10, BY).then(
      () => 'done',
      ({ code }: { code: string }) => code,
    );
    await until(() => isOut, { what: 'all of it is out of the segments' });
    const [movement] = await readOpenMovements(shop.db, sale.id);
    const undoing = intercept(shop.backend, async (call) => {
      // All units are still out: the process that made the withdrawal finds them.
      if (call !== 'sales.giveBack') return;
      goOn();
      await end;
    });
    await undoWithdrawal(shop.db, undoing, movement!);
    expect(await end).toBe('unavailable');
    expect(await left(sale.id)).toEqual([5, 5, 5, 5]);
    expect(await shop.changesOf(sale.id)).toMatchObject([
      { units: 0, applied: true, detail: { wanted: 10, void: true } },
    ]);
    await expectVerified(sale.id);
  });

  test('a withdrawal that has ended is not undone', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    let movement: Awaited<ReturnType<typeof readOpenMovements>>[number] | undefined;
    const backend = intercept(shop.backend, async (call) => {
      if (call === 'sales.withdraw') [movement] = await readOpenMovements(shop.db, sale.id);
    });
    await withdraw(shop.db, backend, sale.id, 10, BY);
    await undoWithdrawal(shop.db, shop.backend, movement!);
    expect(sum(await left(sale.id))).toBe(10);
    expect(await shop.changesOf(sale.id)).toMatchObject([
      { units: -10, applied: true, detail: { wanted: 10 } },
    ]);
    await expectVerified(sale.id);
  });

  test('a sale has one withdrawal at a time', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    const { death, before } = deathAt((call) => call === 'sales.withdraw');
    void withdraw(shop.db, intercept(shop.backend, before), sale.id, 10, BY);
    await death;
    await expect(shop.service.change(sale.id, take(1), BY)).rejects.toMatchObject({ code: 'busy' });
    await repair(sale.id);
    await shop.service.change(sale.id, take(1), BY);
    await expectVerified(sale.id);
  });

  test.each(['sales.snapshot', 'sales.withdraw'])(
    'a withdrawal has no effect if its sale is rebuilt before %s',
    async (step) => {
      const sale = await shop.sell({ stock: 20, segments: 4 });
      let rebuilt = false;
      const backend = intercept(shop.backend, async (call) => {
        if (call !== step || rebuilt) return;
        rebuilt = true;
        await rebuildSale(shop.db, shop.backend, sale.id);
      });
      await expect(withdraw(shop.db, backend, sale.id, 10, BY)).rejects.toThrow(StaleGeneration);
      expect(sum(await left(sale.id))).toBe(20);
      expect(await shop.changesOf(sale.id)).toMatchObject([
        { units: 0, detail: { void: true }, applied: true },
      ]);
      await expectVerified(sale.id);
    },
  );

  test('a withdrawal is void if version 0.1.0 has rebuilt the sale, which leaves it open', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4 });
    const { death, before } = deathAt((call) => call === 'sales.withdraw');
    void withdraw(shop.db, intercept(shop.backend, before), sale.id, 10, BY);
    await death;
    await rebuildSale(shop.db, shop.backend, sale.id);
    await shop.db.raw("UPDATE stock_movements SET applied_at = NULL, detail = detail - 'void'");
    await repair(sale.id);
    expect(await left(sale.id)).toEqual([5, 5, 5, 5]);
    expect(await shop.changesOf(sale.id)).toMatchObject([
      { units: 0, detail: { void: true }, applied: true },
    ]);
    await expectVerified(sale.id);
  });

  test('a rebuild includes a top-up that was not applied', async () => {
    const sale = await shop.sell({ stock: 4, segments: 4 });
    const broken = breaker('sales.credit');
    const service = new SaleService(shop.db, intercept(shop.backend, broken.before), shop.locks);
    await expect(service.change(sale.id, topUp(6), BY)).rejects.toThrow(/sales.credit fails/);
    await rebuildSale(shop.db, shop.backend, sale.id);
    await finishMovements(shop.db, shop.backend, sale.id);
    expect(sum(await left(sale.id))).toBe(10);
    await expectVerified(sale.id);
  });

  test('a top-up that a rebuild has loaded meanwhile is not credited a second time', async () => {
    const sale = await shop.sell({ stock: 4, segments: 4 });
    const broken = breaker('sales.credit');
    const dying = new SaleService(shop.db, intercept(shop.backend, broken.before), shop.locks);
    for (const units of [1, 6]) {
      await expect(dying.change(sale.id, topUp(units), BY)).rejects.toThrow(/sales.credit fails/);
    }
    let rebuilt = false;
    const backend = intercept(shop.backend, async (call) => {
      // The first is credited, the second is next.
      if (call !== 'sales.reopen' || rebuilt) return;
      rebuilt = true;
      await rebuildSale(shop.db, shop.backend, sale.id);
    });
    await finishMovements(shop.db, backend, sale.id);
    expect(sum(await left(sale.id))).toBe(11);
    await expectVerified(sale.id);
  });

  test('a top-up during a rebuild is credited to the generation that is built', async () => {
    const sale = await shop.sell({ stock: 4, segments: 2 });
    let topped = false;
    const backend = intercept(shop.backend, async (call) => {
      if (call !== 'sales.loadSegment' || topped) return;
      topped = true;
      await expect(shop.service.change(sale.id, topUp(6), BY)).rejects.toThrow(StaleGeneration);
    });
    await rebuildSale(shop.db, backend, sale.id);
    await repair(sale.id);
    expect(sum(await left(sale.id))).toBe(10);
    await expectVerified(sale.id);
  });

  test('sync applies it after a rebuild that broke off, and reports no failure', async () => {
    const sale = await shop.sell({ stock: 4, segments: 4 });
    const broken = breaker('sales.publish');
    const stopped = rebuildSale(shop.db, intercept(shop.backend, broken.before), sale.id);
    await expect(stopped).rejects.toThrow(/sales.publish fails/);
    await expect(shop.service.change(sale.id, topUp(6), BY)).rejects.toThrow(StaleGeneration);
    await forsake();
    const sync = await shop.startSync();
    await until(async () => sum(await left(sale.id)) === 10, { what: 'the units are there' });
    expect(sync.seen).toMatchObject({ failures: [], crashes: [] });
  });

  test('sync applies it', async () => {
    const sale = await shop.sell({ stock: 4, segments: 4 });
    const broken = breaker('sales.credit');
    const service = new SaleService(shop.db, intercept(shop.backend, broken.before), shop.locks);
    await expect(service.change(sale.id, topUp(6), BY)).rejects.toThrow(/sales.credit fails/);
    await forsake();
    await shop.startSync();
    await until(async () => sum(await left(sale.id)) === 10, { what: 'the units are there' });
    await until(
      async () =>
        (await rows(shop.db, 'SELECT 1 FROM stock_movements WHERE applied_at IS NULL')).length === 0,
      {
        what: 'it is marked',
      },
    );
  });
});
