/** A rolling upgrade from the last release, which has queues. two-versions.test.ts has the release before it. */
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
import type { TestNode } from '../../support/nodes/node.ts';
import { LAST_RELEASE } from '../../support/nodes/releases.ts';

const place = (node: TestNode, method: 'GET' | 'POST' | 'DELETE', buyer: string) =>
  node.request('/v1/sales/queued/place', { method, headers: { 'x-buyer-id': buyer } });

/** Asks until the place is in this state. @returns the answer */
function untilTold(node: TestNode, buyer: string, state: string) {
  return until(
    async () => {
      const { body } = await place(node, 'GET', buyer);
      return body.state === state && body;
    },
    { what: `${buyer} is told ${state}`, timeoutMs: 30_000 },
  );
}

const accept = (node: TestNode, buyer: string, token: string) =>
  node.buy('queued', buyer, { headers: { 'purchase-token': token } });

test.skipIf(NO_RELEASE)(
  `nodes of the last release and of this version sell, queue and change sales together${unlessPossible}`,
  async () => {
    const fleet = await Fleet.open(LAST_RELEASE);
    await using old = await fleet.startOld();
    await createSale(old, { id: 'early', stock: 80, segments: 3, perBuyerLimit: 2 });
    await createSale(old, {
      ...{ id: 'queued', stock: 2, segments: 2, perBuyerLimit: 1 },
      ...{ queue: 'fifo', presenceSeconds: 0, offerSeconds: 600 },
    });
    await sellAtEach({ old }, 'early', { buyers: 'alone', each: 5 });
    for (const buyer of ['ann', 'bob', 'cid'])
      expect(await place(old, 'POST', buyer)).toMatchObject({ status: 200 });
    const ann = await untilTold(old, 'ann', 'offered');

    await using fresh = await fleet.startNew();
    const both = { old, new: fresh };
    await sellAtEach(both, 'early', { buyers: 'both', each: 5 });

    // Places of the old node are known to the new one and the other way round, in one line.
    expect((await place(fresh, 'GET', 'cid')).body).toMatchObject({ number: 3, state: 'waiting' });
    expect((await place(fresh, 'POST', 'dan')).body).toMatchObject({ number: 4 });
    expect((await place(old, 'POST', 'eve')).body).toMatchObject({ number: 5 });
    expect((await place(old, 'POST', 'dan')).body).toMatchObject({ number: 4 });
    expect((await place(fresh, 'POST', 'fay')).body).toMatchObject({ number: 6 });
    // An offer that is told at one node is accepted at the other.
    expect(await accept(fresh, 'ann', ann.offer.token)).toMatchObject({ code: 'committed' });
    const bob = await untilTold(fresh, 'bob', 'offered');
    expect(await accept(old, 'bob', bob.offer.token)).toMatchObject({ code: 'committed' });
    // Both end places.
    expect((await place(old, 'DELETE', 'dan')).body).toMatchObject({ number: 4, state: 'left' });
    expect((await place(fresh, 'DELETE', 'eve')).body).toMatchObject({ number: 5, state: 'left' });
    expect((await place(old, 'DELETE', 'nobody')).status).toBe(404);
    for (const node of [old, fresh]) {
      const more = await changeSale(node, 'queued', { action: 'top-up', units: 1 });
      expect(more, JSON.stringify(more.body)).toMatchObject({ status: 200 });
    }
    for (const [node, buyer] of [
      [old, 'cid'],
      [fresh, 'fay'],
    ] as const) {
      const { offer } = await untilTold(node, buyer, 'offered');
      expect(await accept(node, buyer, offer.token)).toMatchObject({ code: 'committed' });
    }

    // Each of them resizes, rebuilds, edits, and cancels what the other has sold.
    for (const [by, other, segments] of [
      [old, fresh, 5],
      [fresh, old, 2],
    ] as const) {
      const bought = await other.buy('early', `returns-${segments}`);
      expect(
        await by.request(`/v1/orders/${bought.body.orderId}/cancel`, {
          method: 'POST',
          headers: { 'x-buyer-id': `returns-${segments}` },
        }),
      ).toMatchObject({ status: 200 });
      expect(await changeSale(by, 'early', { action: 'resize', segments })).toMatchObject({ status: 200 });
      expect(await changeSale(by, 'early', { action: 'edit', title: `By ${segments}` })).toMatchObject({
        status: 200,
      });
      expect(await by.opsRequest('/v1/sales/early/recover', { method: 'POST' })).toMatchObject({
        status: 202,
      });
      const sells = async () =>
        (await other.buy('early', `after-${segments}`, { key: 'k' })).code === 'committed';
      await until(sells, { what: 'the other node sells after the rebuild' });
    }
    await sellAtEach(both, 'early', { buyers: 'later', each: 5 });

    await old.stop();
    await sellOut(fresh, 'early');
    await expectSound(fresh, 'early', 80);
    await expectSound(fresh, 'queued', 4);
  },
);
