/** A sync dies after Postgres has refused an order, and before the nodes were told. The next sync tells them, whatever the clock says. */
import { expect, test } from 'vitest';
import type { Watermark } from '../../../src/engine/contract.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { deathAt, intercept } from '../../support/engine/intercept.ts';
import { freshDatabase } from '../../support/fixtures.ts';
import { settablePostgresClock } from '../../support/postgres/settable-postgres-clock.ts';
import { Shop } from '../../support/shop/shop.ts';

test.each([0, 3_600])(
  'the clock of Postgres is %i s ahead then: its buyer is not told that it is committed',
  async (ahead) => {
    const database = await freshDatabase();
    const clock = await settablePostgresClock(database);
    await using shop = await Shop.open({ database });
    const { id } = await shop.sell({ stock: 2, segments: 1 });
    await shop.db.raw('UPDATE sales SET stock = 1');
    const { before, death } = deathAt(
      (call, [watermarks]) => call === 'log.advance' && (watermarks as Watermark[]).length > 0,
    );
    await shop.startSync({ backend: intercept(shop.backend, before), locks: new LocalLocks(), hangs: true });
    const till = await shop.startEngine();
    const waiting = till.buyAll(id, ['anna', 'ben']);
    await death;
    await clock.set(ahead);
    await shop.startSync({ locks: new LocalLocks() });
    const codes = (await waiting).map(({ code }) => code);
    expect(codes.filter((code) => code === 'committed')).toHaveLength(1);
  },
);
