/** A rolling upgrade from the release before. test/release/two-versions.test.ts has the rarer cases. */
import { expect, test } from 'vitest';
import { until } from '../../support/fixtures.ts';
import {
  changeSale,
  createSale,
  expectSound,
  Fleet,
  NO_RELEASE,
  sellAtEach,
  sellOut,
  unlessPossible,
} from '../../support/nodes/fleet.ts';

test.skipIf(NO_RELEASE)(
  `nodes of the release before and of this version sell together, until the old ones have left${unlessPossible}`,
  async () => {
    const fleet = await Fleet.open();
    await using old = await fleet.startOld();
    await createSale(old, { id: 'early', stock: 60, segments: 3, perBuyerLimit: 2 });
    await createSale(old, { id: 'over', stock: 5, segments: 2 });
    await sellAtEach({ old }, 'early', { buyers: 'alone', each: 5 });
    await sellAtEach({ old }, 'over', { buyers: 'alone', each: 3 });
    expect(await changeSale(old, 'over', { action: 'close' })).toMatchObject({ status: 200 });

    await using fresh = await fleet.startNew({ PUBLIC_ORDER_NOTES: '1' });
    const both = { old, new: fresh };
    // The node that has made a sale also syncs it.
    await createSale(fresh, { id: 'late', stock: 30, segments: 2 });
    await sellAtEach(both, 'early', { buyers: 'both', each: 5 });
    await sellAtEach(both, 'late', { buyers: 'both', each: 5 });
    const first = await old.buy('early', 'ann', { key: 'k' });
    expect((await fresh.buy('early', 'ann', { key: 'k' })).body).toEqual(first.body);
    expect((await fresh.buy('early', 'ann', { key: 'm' })).code).toBe('committed');
    expect((await old.buy('early', 'ann', { key: 'n' })).code).toBe('limit_reached');

    for (const [by, other] of [
      [old, fresh],
      [fresh, old],
    ] as const) {
      expect(await changeSale(by, 'early', { action: 'pause' })).toMatchObject({ status: 200 });
      const paul = async () => (await other.buy('early', 'paul', { key: 'p' })).code;
      await until(async () => (await other.buy('early', 'paul')).code === 'paused', { what: 'the pause' });
      expect(await changeSale(by, 'early', { action: 'resume' })).toMatchObject({ status: 200 });
      await until(async () => (await paul()) === 'committed', { what: 'the sale is open' });
    }
    expect(
      await fresh.request(`/v1/orders/${first.body.orderId}/cancel`, {
        method: 'POST',
        headers: { 'x-buyer-id': 'ann' },
      }),
    ).toMatchObject({ status: 200 });
    const again = async () => (await old.buy('early', 'ann', { key: 'o' })).code;
    await until(async () => (await again()) === 'committed', { what: 'ann may buy again' });
    for (const [action, units] of [
      ['top-up', 3],
      ['withdraw', 2],
    ] as const)
      expect(await changeSale(fresh, 'early', { action, units })).toMatchObject({ status: 200 });

    // What the old node would undo is refused until it has left.
    const noted = () => fresh.buy('late', 'nora', {}, { reference: 'cart-1' });
    const raise = () => changeSale(fresh, 'late', { action: 'edit', perBuyerLimit: 2 });
    const require = () => changeSale(fresh, 'late', { action: 'require-token', requireToken: true });
    const refused = { status: 503, body: { detail: expect.stringContaining('0.1.0') } };
    for (const act of [noted, raise, require]) expect(await act()).toMatchObject(refused);
    await old.stop();
    await until(async () => (await noted()).status === 201, { what: 'a purchase may have a reference' });
    for (const act of [raise, require]) expect(await act()).toMatchObject({ status: 200 });
    await sellOut(fresh, 'early');
    await expectSound(fresh, 'early', 61);
    await expectSound(fresh, 'late', 11);
    await expectSound(fresh, 'over', 3);
  },
);
