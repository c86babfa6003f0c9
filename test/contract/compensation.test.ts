import { describe, expect, it } from 'vitest';
import { StaleGeneration } from '../../src/engine/errors.ts';
import { allHoldings, kinds, served } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  describe('a compensation', () => {
    it('returns the units, raises the epoch, and lets the buyer buy again', async () => {
      const sale = await stage.load({ stock: 2, perBuyerLimit: 2 });
      const anna = sale.order('anna', { quantity: 2 });
      await sale.take([anna]);
      const epoch = await sale.epoch();
      await sale.compensate(anna);
      expect(await sale.left()).toEqual([2]);
      expect(await sale.held('anna')).toEqual([]);
      expect(await sale.epoch()).toBeGreaterThan(epoch);
      expect(kinds(await sale.take([sale.order('anna', { quantity: 2 })]))).toEqual(['taken']);
    });

    it('is counted in the replies to later takes, so that a lane knows that an order may have ended', async () => {
      const sale = await stage.load({ stock: 6, perBuyerLimit: 2 });
      const anna = sale.order('anna', { quantity: 2 });
      expect(served(await sale.take([anna])).returned).toBe(0);
      await sale.compensate(anna);
      expect(served(await sale.take([sale.order('ben')])).returned).toBe(2);
      expect(
        served(await sale.take([sale.order('cleo', { quantity: 2 }), sale.order('dora', { quantity: 3 })]))
          .returned,
      ).toBe(2);
      expect(served(await sale.take([])).returned).toBe(2);
    });

    it('happens once per order', async () => {
      const sale = await stage.load({ stock: 3 });
      const [anna] = await sale.sellEach(2);
      for (let i = 0; i < 3; i++) await sale.compensate(anna!);
      expect(await sale.left()).toEqual([2]);
    });

    it('leaves the buyer’s other orders and their keys unchanged', async () => {
      const sale = await stage.load({ perBuyerLimit: 3 });
      const orders = ['a', 'b', 'c'].map((key) => sale.order('anna', { key }));
      await sale.take(orders);
      await sale.compensate(orders[1]!);
      expect((await sale.held('anna')).map((order) => order.key)).toEqual(['a', 'c']);
      const again = served(await sale.take([orders[0]!, orders[2]!, sale.order('anna', { key: 'b' })]));
      expect(again.results.map((result) => result.kind)).toEqual(['replay', 'replay', 'taken']);
    });

    it('compares the whole order id, not a part of it', async () => {
      const sale = await stage.load({ perBuyerLimit: 3 });
      await sale.take([sale.order('anna'), sale.order('anna', { key: '100:1' })]);
      await sale.compensate({ orderId: '100', buyerId: 'anna', quantity: 1, key: '' });
      expect(await sale.held('anna')).toHaveLength(2);
    });

    it('changes nothing for another buyer or an unknown order', async () => {
      const sale = await stage.load();
      const anna = sale.order('anna');
      await sale.take([anna]);
      await sale.compensate({ ...anna, buyerId: 'ben' });
      await sale.compensate(sale.order('cleo'));
      expect(await sale.left()).toEqual([9]);
      expect(await sale.held('anna')).toHaveLength(1);
    });

    it('of no units clears only the record: a rejected order was never in Postgres’ stock', async () => {
      const sale = await stage.load();
      const anna = sale.order('anna');
      await sale.take([anna]);
      const epoch = await sale.epoch();
      await stage.backend.log.compensate({ ...sale.ref(), ...anna, units: 0 });
      expect(await sale.held('anna')).toEqual([]);
      expect(await sale.left()).toEqual([9]);
      expect(await sale.epoch()).toBe(epoch);
    });

    it('does not change the log', async () => {
      const sale = await stage.load();
      const [anna] = await sale.sellEach(2);
      const before = await stage.backend.log.readLog([sale.position()], 10);
      await sale.compensate(anna!);
      expect(await stage.backend.log.readLog([sale.position()], 10)).toEqual(before);
    });

    it('returns an order that was loaded with the sale', async () => {
      const orders = [{ orderId: '77', quantity: 1, key: '', seq: 0 }];
      const sale = await stage.load({ stock: 1 }, { split: [0], holdings: [[{ buyerId: 'anna', orders }]] });
      // The stock of the sale was 1, and the one unit is in an order of an earlier generation.
      sale.returned = -1;
      await sale.compensate({ orderId: '77', buyerId: 'anna', quantity: 1, key: '' });
      expect(kinds(await sale.take([sale.order('ben')]))).toEqual(['taken']);
    });

    it('is refused by a frozen segment', async () => {
      const sale = await stage.load();
      const [anna] = await sale.sellEach(1);
      await stage.backend.sales.freeze(sale.sale.id, 1, 1);
      await expect(sale.compensate(anna!)).rejects.toThrow(StaleGeneration);
      expect(await sale.left()).toEqual([9]);
    });

    it('is refused by a segment that is not published yet, because its load counts the units already', async () => {
      const { sales, log } = stage.backend;
      const ref = { saleId: 'in-loading', segment: 0, generation: 1 };
      await sales.loadSegment({ ...ref, left: 9, perBuyerLimit: 1 });
      const held = { orderId: '7', quantity: 1, key: '', seq: 0 };
      await sales.loadHoldings(ref, allHoldings([{ buyerId: 'anna', orders: [held] }]));
      const back = log.compensate({ ...ref, buyerId: 'anna', orderId: '7', units: 1 });
      await expect(back).rejects.toThrow(StaleGeneration);
      const [segment] = await sales.snapshot('in-loading', 1, 1);
      expect(segment?.counters).toMatchObject({ left: 9, supplied: 9 });
    });

    it.each([{ generation: 2 }, { segment: 1 }, { saleId: 'nowhere' }])('is refused at %o', async (other) => {
      const sale = await stage.load();
      const [anna] = await sale.sellEach(1);
      const elsewhere = { ...sale.ref(), ...anna!, units: 1, ...other };
      await expect(stage.backend.log.compensate(elsewhere)).rejects.toThrow(StaleGeneration);
      expect(await sale.left()).toEqual([9]);
    });
  });
});
