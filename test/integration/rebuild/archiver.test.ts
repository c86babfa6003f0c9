/** Sales that have been over for long are closed and archived without an operator. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { Archiver, type ArchiverOptions } from '../../../src/rebuild/archiver.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let archiver: Archiver | undefined;

beforeEach(async () => {
  shop = await Shop.open();
});

afterEach(async () => {
  await archiver?.stop();
  await shop[Symbol.asyncDispose]();
});

function start(options: Partial<ArchiverOptions> = {}) {
  const archived: string[] = [];
  const failures: unknown[] = [];
  const events = {
    archived: ({ saleId }: { saleId: string }) => void archived.push(saleId),
    failed: ({ error }: { error: unknown }) => void failures.push(error),
  };
  const { db, backend, locks } = shop;
  archiver = new Archiver({ db, backend, locks, events, afterDays: 30, everyMs: 5, ...options });
  archiver.start();
  return { archived, failures };
}

const closedBefore = async (id: string, days: number) => {
  await shop.service.change(id, { action: 'close' }, BY);
  await shop.db.raw("UPDATE sales SET closed_at = now() - ? * interval '1 day' WHERE id = ?", [days, id]);
};

const endedBefore = (id: string, days: number) =>
  shop.db.raw(
    `UPDATE sales SET starts_at = now() - interval '100 days', ends_at = now() - ? * interval '1 day'
     WHERE id = ?`,
    [days, id],
  );

describe('the archiver', () => {
  test('archives what was closed or has ended long enough ago, and nothing else', async () => {
    const sales = await Promise.all(Array.from({ length: 5 }, () => shop.sell({ stock: 2, segments: 1 })));
    const [closed, closedLater, ended, endedLater, open] = sales.map(({ id }) => id) as [
      string,
      string,
      string,
      string,
      string,
    ];
    await closedBefore(closed, 31);
    await closedBefore(closedLater, 29);
    await endedBefore(ended, 31);
    await endedBefore(endedLater, 29);
    const { archived, failures } = start();
    await until(() => archived.length === 2, { what: 'two sales are archived' });
    await until(async () => (await rows(shop.db, OVER)).length === 0, { what: 'nothing is left' });
    expect([...archived].sort()).toEqual([closed, ended].sort());
    expect(failures).toEqual([]);
    const { sales: left } = await shop.service.list();
    expect(left.map(({ id, state }) => [id, state]).sort()).toEqual(
      [
        [closedLater, 'closed'],
        [endedLater, 'open'],
        [open, 'open'],
      ].sort(),
    );
    const by = { actor: 'stockade', reason: 'over for 30 days', applied: true };
    expect(await shop.changesOf(ended)).toMatchObject([
      { action: 'close', ...by },
      { action: 'archive', ...by },
    ]);
  });

  test('leaves a sale open that got another window after it was read', async () => {
    const [first, second] = [
      await shop.sell({ stock: 2, segments: 1 }),
      await shop.sell({ stock: 2, segments: 1 }),
    ];
    await endedBefore(first.id, 32);
    await endedBefore(second.id, 31);
    let endsAt: number | undefined;
    // The archiver has read by then which sales are over.
    const claim = async () => {
      if (endsAt !== undefined) return;
      endsAt = Date.now() + 86_400_000;
      await shop.service.change(first.id, { action: 'window', endsAt }, BY);
    };
    const { archived, failures } = start({ claim });
    await until(() => archived.length > 0, { what: 'the other sale is archived' });
    expect({ archived, failures }).toEqual({ archived: [second.id], failures: [] });
    expect(await shop.service.show(first.id)).toMatchObject({ state: 'open' });
  });

  test('goes on behind a sale that fails, and archives that one later', async () => {
    const sales = await Promise.all(Array.from({ length: 12 }, () => shop.sell({ stock: 1, segments: 1 })));
    for (const { id } of sales) await closedBefore(id, 40);
    const bad = sales[0]!.id;
    await shop.db.raw("UPDATE sales SET closed_at = now() - interval '90 days' WHERE id = ?", [bad]);
    const { before, repair } = breaker('sales.snapshot');
    const backend = intercept(shop.backend, (call, args) => args[0] === bad && before(call));
    const { archived, failures } = start({ backend });
    await until(() => archived.length === 11, { what: 'all others are archived' });
    expect(failures.length).toBeGreaterThan(0);
    repair();
    await until(() => archived.includes(bad), { what: 'the sale that has failed' });
    expect(archived).toHaveLength(12);
  });

  test.each([
    ['before the backend knows of the close', ['sales.setState', 'sales.snapshot'], false],
    ['between the close and the archive', ['sales.snapshot'], true],
  ] as const)('if its process dies %s, another process archives the sale', async (_, steps, isKnown) => {
    const { id } = await shop.sell({ stock: 5, segments: 2 });
    const firstSync = await shop.startSync();
    const till = await shop.startEngine();
    const bought = await till.buyAll(id, buyers(3));
    expect(bought.map(({ code }) => code)).toEqual(Array(3).fill('committed'));
    await firstSync.stop();
    await endedBefore(id, 31);
    const { before, hits } = breaker(...steps);
    const dying = start({ backend: intercept(shop.backend, before) });
    await until(() => hits.length > 0, { what: 'it can go no further' });
    await archiver!.stop();
    expect(dying.archived).toEqual([]);
    const by = { actor: 'stockade', reason: 'over for 30 days' };
    expect(await shop.changesOf(id)).toMatchObject([{ action: 'close', ...by, applied: isKnown }]);
    expect(await shop.service.show(id)).toMatchObject({ state: 'closed', archivedAt: undefined });
    expect((await shop.backend.sales.read(id))!.state).toBe(isKnown ? 'closed' : 'open');

    const sync = await shop.startSync();
    const { archived } = start();
    await until(() => archived.length > 0, { what: 'the sale is archived' });
    expect(archived).toEqual([id]);
    expect(await shop.changesOf(id)).toMatchObject([
      { action: 'close', ...by, applied: true },
      { action: 'archive', ...by, applied: true },
    ]);
    expect(await shop.backend.sales.read(id)).toBeUndefined();
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [], committedOrders: 3 });
    expect(sync.seen).toMatchObject({ losses: [], crashes: [] });
  });

  test('does nothing if it is switched off', async () => {
    const { id } = await shop.sell({ stock: 1 });
    await closedBefore(id, 400);
    const { archived } = start({ afterDays: 0 });
    await archiver!.stop();
    expect(archived).toEqual([]);
    expect(await shop.service.show(id)).toMatchObject({ archivedAt: undefined });
  });
});

const OVER =
  "SELECT 1 FROM sales WHERE archived_at IS NULL AND least(ends_at, closed_at) < now() - interval '30 days'";
