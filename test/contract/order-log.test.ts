import { describe, expect, it } from 'vitest';
import type { LogPosition, LogRead } from '../../src/engine/contract.ts';
import { type LoadedSale, served } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  const read = async (position: LogPosition, maxEntries = 100): Promise<LogRead> => {
    const [found] = await stage.backend.log.readLog([position], maxEntries);
    return found!;
  };
  const seqs = async (position: LogPosition, maxEntries?: number): Promise<number[]> =>
    (await read(position, maxEntries)).entries.map((entry) => entry.seq);

  describe('an entry of the log', () => {
    it('holds the taken orders of one batch, in their order', async () => {
      const sale = await stage.load({ stock: 4, perBuyerLimit: 3 });
      const anna = sale.order('anna', { quantity: 3, key: 'click:1' });
      const short = sale.order('ben', { quantity: 2 });
      const cleo = sale.order('cleo');
      const tooMany = sale.order('dora', { quantity: 4 });
      await sale.take([tooMany, anna, short, cleo, anna]);
      const { head, entries } = await read(sale.position());
      expect(entries).toEqual([
        { seq: 1, previous: '', tail: anna.orderId, ordersSoFar: 2, orders: [anna, cleo] },
      ]);
      expect(head).toEqual({
        seq: 1,
        tail: anna.orderId,
        orders: 2,
        committed: 0,
        state: 'open',
        rules: expect.any(String),
      });
    });

    it('has the notes of its orders, and of no others', async () => {
      const sale = await stage.load({ stock: 5, perBuyerLimit: 2 });
      const note = JSON.stringify({ reference: 'Zoë’s cart 1', metadata: { a: ['two\nlines', '{"b":1}'] } });
      const [anna, ben] = [{ ...sale.order('anna'), note }, sale.order('ben')];
      const aboveLimit = { ...sale.order('anna', { quantity: 2 }), note: '{"reference":"not sold"}' };
      await sale.take([anna, aboveLimit, ben]);
      const cleo = sale.order('cleo');
      await sale.take([{ ...anna, note: '{"reference":"again"}' }, cleo]);
      const { entries } = await read(sale.position());
      expect(entries.map(({ orders }) => orders)).toEqual([[anna, ben], [cleo]]);
    });

    it('names the entry before it, and numbers and orders have no gaps', async () => {
      const sale = await stage.load({ stock: 20 });
      const batches = [3, 1, 2].map((count) => sale.crowd(count));
      for (const batch of batches) await sale.take(batch);
      const { entries, head } = await read(sale.position());
      const tails = batches.map((batch) => batch[0]!.orderId);
      expect(entries.map((entry) => entry.seq)).toEqual([1, 2, 3]);
      expect(entries.map((entry) => entry.previous)).toEqual(['', tails[0], tails[1]]);
      expect(entries.map((entry) => entry.tail)).toEqual(tails);
      expect(entries.map((entry) => entry.ordersSoFar)).toEqual([3, 4, 6]);
      expect(head).toEqual({
        seq: 3,
        tail: tails[2],
        orders: 6,
        committed: 0,
        state: 'open',
        rules: expect.any(String),
      });
    });

    it('is not written for a batch that took nothing', async () => {
      const sale = await stage.load({ stock: 2 });
      const [anna] = await sale.sellEach(1);
      await sale.take([anna!]);
      await sale.take([sale.order('ben', { quantity: 2 })]);
      await sale.sellEach(1);
      expect(await seqs(sale.position())).toEqual([1, 2]);
    });

    it('does not change when the caller changes its order object', async () => {
      const sale = await stage.load();
      const order = { ...sale.order('anna'), settled: false };
      await sale.take([order]);
      const written = { orderId: order.orderId, buyerId: 'anna', quantity: 1, key: '' };
      Object.assign(order, { orderId: '9', settled: true });
      expect((await read(sale.position())).entries[0]!.orders).toEqual([written]);
    });

    it('has the number that the take returned', async () => {
      const sale = await stage.load();
      await sale.sellEach(3);
      const order = sale.order('anna');
      const { seq } = served(await sale.take([order]));
      const [entry] = (await read(sale.position(seq - 1))).entries;
      expect(entry).toMatchObject({ seq, orders: [order] });
    });
  });

  describe('reading a log', () => {
    it('starts after the position, and returns at most the given number of entries', async () => {
      const sale = await stage.load();
      await sale.sellEach(5);
      expect(await seqs(sale.position(2))).toEqual([3, 4, 5]);
      expect(await seqs(sale.position(2), 2)).toEqual([3, 4]);
      expect(await seqs(sale.position(5))).toEqual([]);
      expect(await seqs(sale.position(9))).toEqual([]);
    });

    it('returns the head with fewer entries', async () => {
      const sale = await stage.load();
      const orders = await sale.sellEach(3);
      const found = await read(sale.position(), 1);
      expect(found.entries).toHaveLength(1);
      expect(found.head).toEqual({
        seq: 3,
        tail: orders[2]!.orderId,
        orders: 3,
        committed: 0,
        state: 'open',
        rules: expect.any(String),
      });
    });

    it('of no entries returns only the heads', async () => {
      const sale = await stage.load();
      await sale.sellEach(2);
      expect(await read(sale.position(), 0)).toMatchObject({ head: { seq: 2, orders: 2 }, entries: [] });
    });

    it('finds an empty log at its beginning', async () => {
      const sale = await stage.load();
      const position = sale.position();
      expect(await read(position)).toEqual({
        position,
        head: { seq: 0, tail: '', orders: 0, committed: 0, state: 'open', rules: expect.any(String) },
        entries: [],
      });
    });

    it('finds no head where the segment is missing or in another generation', async () => {
      const sale = await stage.load({}, { generation: 2 });
      await sale.sellEach(1);
      for (const other of [{ generation: 1 }, { generation: 3 }, { segment: 1 }, { saleId: 'nowhere' }]) {
        const position = { ...sale.position(), ...other };
        expect(await read(position)).toEqual({ position, head: undefined, entries: [] });
      }
    });

    it('reads many logs in one call, in the given order', async () => {
      const [one, two] = [await stage.load({ segments: 2 }), await stage.load()];
      await one.sellEach(2, 1);
      await two.sellEach(1);
      const positions = [two.position(), one.position(1, '', 1), one.position()];
      const found = await stage.backend.log.readLog(positions, 10);
      expect(found.map((log) => log.position)).toEqual(positions);
      expect(found.map((log) => log.entries.map((entry) => entry.seq))).toEqual([[1], [2], []]);
      expect(await stage.backend.log.readLog([], 10)).toEqual([]);
    });

    it('still works while the sale is frozen: a rebuild drains it', async () => {
      const sale = await stage.load();
      await sale.sellEach(2);
      await sale.freeze();
      expect(await seqs(sale.position())).toEqual([1, 2]);
    });
  });

  describe('advancing the cursor', () => {
    const committed = async (sale: LoadedSale) => (await sale.counters())[0]!.committed;

    it('is stored in the segment, and trims the entries below', async () => {
      const sale = await stage.load();
      await sale.sellEach(4);
      await stage.backend.log.advance([sale.watermark(3, 3)]);
      expect(await committed(sale)).toBe(3);
      expect(await seqs(sale.position())).toEqual([4]);
      expect(await seqs(sale.position(3))).toEqual([4]);
    });

    it('to the end leaves an empty log that continues with the next number', async () => {
      const sale = await stage.load();
      const orders = await sale.sellEach(2);
      await stage.backend.log.advance([sale.watermark(2, 2)]);
      expect(await read(sale.position(2))).toMatchObject({ head: { seq: 2 }, entries: [] });
      await sale.sellEach(1);
      const { entries } = await read(sale.position(2));
      expect(entries).toMatchObject([{ seq: 3, previous: orders[1]!.orderId, ordersSoFar: 3 }]);
    });

    it('twice, or back, changes nothing', async () => {
      const sale = await stage.load();
      await sale.sellEach(4);
      const watermark = sale.watermark(3, 3);
      await stage.backend.log.advance([watermark]);
      await stage.backend.log.advance([watermark, sale.watermark(1, 1)]);
      expect(await committed(sale)).toBe(3);
      expect(await seqs(sale.position())).toEqual([4]);
    });

    it('of another generation or of a missing segment changes nothing', async () => {
      const sale = await stage.load();
      await sale.sellEach(2);
      const watermark = sale.watermark(2, 2);
      await stage.backend.log.advance([
        { ...watermark, generation: 2 },
        { ...watermark, segment: 9 },
      ]);
      expect(await committed(sale)).toBe(0);
      expect(await seqs(sale.position())).toEqual([1, 2]);
    });

    it('moves several segments in one call', async () => {
      const sale = await stage.load({ stock: 4, segments: 2 });
      await sale.sellEach(1, 0);
      await sale.sellEach(2, 1);
      await stage.backend.log.advance([sale.watermark(1, 1, 0), sale.watermark(2, 2, 1)]);
      expect((await sale.counters()).map((counters) => counters.committed)).toEqual([1, 2]);
    });
  });
});
