import { describe, expect, it } from 'vitest';
import { StaleGeneration } from '../../src/engine/errors.ts';
import { planMoves } from '../../src/engine/sale/transfer-plan.ts';
import { kinds } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  const transfer = (saleId: string, from: number, to: number, units: number, generation = 1) =>
    stage.backend.transfers.transfer({ saleId, generation }, { from, to, units });

  describe('a transfer', () => {
    it('moves the requested units', async () => {
      const loaded = await stage.load({}, { split: [7, 1, 4] });
      expect(await transfer(loaded.sale.id, 0, 2, 3)).toBe(3);
      expect(await loaded.left()).toEqual([4, 1, 7]);
    });

    it('moves what the donor has left, if that is less', async () => {
      const loaded = await stage.load({}, { split: [3, 0] });
      await loaded.take(loaded.crowd(1), 0);
      expect(await transfer(loaded.sale.id, 0, 1, 3)).toBe(2);
      expect(await transfer(loaded.sale.id, 0, 1, 3)).toBe(0);
      expect(await loaded.left()).toEqual([0, 2]);
      expect(kinds(await loaded.take(loaded.crowd(2), 1))).toEqual(['taken', 'taken']);
    });

    it('keeps `supplied` in step with `left`, which reveals foreign writes', async () => {
      const loaded = await stage.load({}, { split: [4, 2] });
      await loaded.take(loaded.crowd(1), 0);
      await transfer(loaded.sale.id, 0, 1, 2);
      expect((await loaded.counters()).map(({ supplied, taken }) => ({ supplied, taken }))).toEqual([
        { supplied: 2, taken: 1 },
        { supplied: 4, taken: 0 },
      ]);
    });

    it('moves units of a paused sale too', async () => {
      const loaded = await stage.load({}, { split: [2, 0], state: 'paused' });
      expect(await transfer(loaded.sale.id, 0, 1, 1)).toBe(1);
      expect(await loaded.left()).toEqual([1, 1]);
    });

    it('leaves nothing to finish', async () => {
      const loaded = await stage.load({}, { split: [2, 0] });
      await transfer(loaded.sale.id, 0, 1, 1);
      expect(await stage.backend.transfers.finish(loaded.ref(), 2)).toEqual([]);
    });

    it('evens out a sale by the planned moves, while buyers purchase', async () => {
      const loaded = await stage.load({}, { split: [40, 0, 3, 0, 11] });
      const moves = planMoves(await loaded.left());
      await Promise.all([
        ...moves.map(({ from, to, units }) => transfer(loaded.sale.id, from, to, units)),
        loaded.take(loaded.crowd(4), 0),
        loaded.refillAndTake(loaded.crowd(3), 1),
      ]);
      expect((await loaded.left()).reduce((sum, left) => sum + left, 0)).toBe(54 - 7);
    });
  });

  describe('a transfer is refused, and moves nothing', () => {
    it.each([1, 3])('in generation %i when the sale is in generation 2', async (generation) => {
      const loaded = await stage.load({}, { split: [2, 0], generation: 2 });
      await expect(transfer(loaded.sale.id, 0, 1, 1, generation)).rejects.toThrow(StaleGeneration);
      expect(await loaded.left()).toEqual([2, 0]);
    });

    it.each([
      ['donor', 2, 0],
      ['receiver', 0, 2],
    ])('when the %s waits to be published', async (_, from, to) => {
      const loaded = await stage.load({}, { split: [1, 1] });
      await stage.backend.sales.loadSegment({ ...loaded.ref(2), left: 1, perBuyerLimit: 1 });
      await expect(transfer(loaded.sale.id, from, to, 1)).rejects.toThrow(StaleGeneration);
      expect(await loaded.left()).toEqual([1, 1]);
    });

    it.each([
      ['donor', 2, 0],
      ['receiver', 0, 2],
    ])('when the %s is missing', async (_, from, to) => {
      const loaded = await stage.load({}, { split: [1, 1] });
      await expect(transfer(loaded.sale.id, from, to, 1)).rejects.toThrow(StaleGeneration);
      expect(await loaded.left()).toEqual([1, 1]);
    });

    it('when the sale is frozen', async () => {
      const loaded = await stage.load({}, { split: [2, 0] });
      await loaded.freeze();
      await expect(transfer(loaded.sale.id, 0, 1, 1)).rejects.toThrow(StaleGeneration);
      expect(await loaded.left()).toEqual([2, 0]);
    });
  });
});
