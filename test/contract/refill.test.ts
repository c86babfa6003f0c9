import { describe, expect, it } from 'vitest';
import { kinds, refilled, served } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  describe('a refill', () => {
    it('brings the last unit from the farthest of 64 segments', async () => {
      const split = Array.from({ length: 64 }, (_, segment) => (segment === 63 ? 1 : 0));
      const sale = await stage.load({}, { split });
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['short']);
      const reply = refilled(await sale.refillAndTake([sale.order('anna')]));
      expect(kinds(reply.take)).toEqual(['taken']);
      expect(reply.total).toBe(0);
      expect((await sale.left()).every((left) => left === 0)).toBe(true);
    });

    it('gathers three units from 3 + 2, and leaves the remaining two, which are too few for the next three', async () => {
      const sale = await stage.load({ perBuyerLimit: 3 }, { split: [2, 3] });
      const first = refilled(await sale.refillAndTake([sale.order('anna', { quantity: 3 })]));
      expect(kinds(first.take)).toEqual(['taken']);
      expect(first.total).toBe(2);
      const before = await sale.left();
      const second = refilled(await sale.refillAndTake([sale.order('ben', { quantity: 3 })], 1));
      expect(kinds(second.take)).toEqual(['short']);
      expect(second.total).toBe(2);
      expect(await sale.left()).toEqual(before);
    });

    it('gathers all units from many segments', async () => {
      const sale = await stage.load({ perBuyerLimit: 5 }, { split: [0, 1, 1, 0, 2, 1] });
      const reply = refilled(await sale.refillAndTake([sale.order('anna', { quantity: 5 })], 3));
      expect(kinds(reply.take)).toEqual(['taken']);
      expect(reply.total).toBe(0);
    });

    it('takes half of the richest donor when that is more than requested', async () => {
      const sale = await stage.load({}, { split: [0, 7, 20, 20] });
      refilled(await sale.refillAndTake([sale.order('anna')]));
      expect(await sale.left()).toEqual([9, 7, 10, 20]);
    });

    it('takes the requested number when that is more than half, and then from the next richest', async () => {
      const sale = await stage.load({ perBuyerLimit: 9 }, { split: [1, 6, 5] });
      refilled(await sale.refillAndTake([sale.order('anna', { quantity: 9 })]));
      // 6 of 6, then 3 of 5: half, because half is more than the two that are missing.
      expect(await sale.left()).toEqual([1, 0, 2]);
    });

    it('moves nothing when the segment has enough', async () => {
      const sale = await stage.load({}, { split: [2, 8] });
      refilled(await sale.refillAndTake([sale.order('anna'), sale.order('ben')]));
      expect(await sale.left()).toEqual([0, 8]);
    });

    it('serves as many orders of the batch as the whole stock allows', async () => {
      const sale = await stage.load({ perBuyerLimit: 4 }, { split: [0, 2, 1] });
      const orders = [4, 2, 2, 1].map((quantity, i) => sale.order(`buyer-${i}`, { quantity }));
      const reply = refilled(await sale.refillAndTake(orders));
      expect(kinds(reply.take)).toEqual(['short', 'taken', 'short', 'taken']);
      expect(reply.total).toBe(0);
    });

    it('returns total and epoch of one instant', async () => {
      const sale = await stage.load({}, { split: [0, 3, 0] });
      const epoch = await sale.epoch();
      const reply = refilled(await sale.refillAndTake([sale.order('anna')]));
      expect(reply).toMatchObject({ total: 2, epoch });
      expect(served(reply.take)).toMatchObject({ seq: 1, left: 1 });
      // Units that only move do not raise the epoch. Where they are in no segment for a while, they do.
      if (stage.isScattered) expect(await sale.epoch()).toBeGreaterThan(epoch);
      else expect(await sale.epoch()).toBe(epoch);
    });

    it('finds no units when all are sold', async () => {
      const sale = await stage.load({}, { split: [0, 0] });
      const reply = refilled(await sale.refillAndTake([sale.order('anna')]));
      expect(kinds(reply.take)).toEqual(['short']);
      expect(reply).toMatchObject({ total: 0, epoch: await sale.epoch() });
    });

    it('answers a replay and a limit as a take does', async () => {
      const sale = await stage.load({}, { split: [1, 1] });
      const anna = sale.order('anna');
      await sale.take([anna]);
      const reply = refilled(await sale.refillAndTake([anna, sale.order('anna'), sale.order('ben')]));
      expect(kinds(reply.take)).toEqual(['replay', 'limit', 'taken']);
    });
  });

  describe('a refill is refused', () => {
    it('by an older ticket of its lane, which takes nothing', async () => {
      const sale = await stage.load({}, { split: [1, 1] });
      await sale.take([sale.order('anna')], 0, { ticket: 5 });
      const reply = refilled(await sale.refillAndTake([sale.order('ben')], 0, { ticket: 5 }));
      expect(reply.take).toEqual({ status: 'superseded' });
      expect(reply.total).toBe(1);
    });

    it('by a paused sale', async () => {
      const sale = await stage.load({}, { split: [0, 1], state: 'paused' });
      expect(refilled(await sale.refillAndTake([sale.order('anna')])).take).toEqual({ status: 'paused' });
    });

    it.each([1, 3])('in generation %i when the sale is in generation 2', async (generation) => {
      const sale = await stage.load({}, { split: [0, 1], generation: 2 });
      expect(await sale.refillAndTake([sale.order('anna')], 0, { generation })).toEqual({ status: 'stale' });
      expect(await sale.left()).toEqual([0, 1]);
    });

    it('when any segment is frozen, and takes nothing even where the home segment has units', async () => {
      const sale = await stage.load({}, { split: [1, 1] });
      await stage.backend.sales.loadSegment({ ...sale.ref(2), left: 0, perBuyerLimit: 1 });
      const batch = sale.batch([sale.order('anna')]);
      expect(await stage.backend.takes.refillAndTake(batch, 3)).toEqual({ status: 'stale' });
      expect(await sale.left()).toEqual([1, 1]);
      expect(await sale.held('anna')).toEqual([]);
    });

    it('when any segment is missing, and takes nothing', async () => {
      const sale = await stage.load({}, { split: [1, 1] });
      const batch = sale.batch([sale.order('anna')]);
      expect(await stage.backend.takes.refillAndTake(batch, 3)).toEqual({ status: 'stale' });
      expect(await sale.left()).toEqual([1, 1]);
    });

    it('when the whole sale is frozen', async () => {
      const sale = await stage.load({}, { split: [0, 2] });
      await sale.freeze();
      expect(await sale.refillAndTake([sale.order('anna')])).toEqual({ status: 'stale' });
      expect(await sale.left()).toEqual([0, 2]);
    });
  });

  it('sells every unit to buyers at a single segment, one after another', async () => {
    const sale = await stage.load({ stock: 23, segments: 8 });
    for (const order of sale.crowd(23)) {
      const first = await sale.take([order], 5);
      if (kinds(first)[0] === 'taken') continue;
      expect(kinds(refilled(await sale.refillAndTake([order], 5)).take)).toEqual(['taken']);
    }
    expect(refilled(await sale.refillAndTake(sale.crowd(1), 5)).total).toBe(0);
  });
});
