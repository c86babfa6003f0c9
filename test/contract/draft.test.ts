import { describe, expect, it } from 'vitest';
import type { DraftRef, DraftStamp, HeldOrder } from '../../src/engine/contract.ts';
import { StaleGeneration } from '../../src/engine/errors.ts';
import { AFTER_ALL_IDS, MAX_ID_CHARACTERS } from '../../src/engine/limits.ts';
import type { LoadedSale } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

const order = (orderId: string): HeldOrder => ({ orderId, quantity: 1, key: '', seq: 0 });

onEachBackend((stage) => {
  const stamp = (writes: number, id = 'mine'): DraftStamp => ({ id, writes });
  const next = (sale: LoadedSale, draft = stamp(0)): DraftRef => ({
    ...{ ...sale.ref(0), generation: 2, draft },
  });
  const holds = (buyerId: string, ...orderIds: string[]) => ({ buyerId, orders: orderIds.map(order) });

  const load = (sale: LoadedSale, buyers: DraftStamp) =>
    stage.backend.sales.loadSegment({ ...next(sale), left: 5, perBuyerLimit: 1, buyers });

  /** The orders of these buyers in the next generation, which is built with a draft. */
  async function heldAfter(sale: LoadedSale, draft: DraftStamp, ...buyerIds: string[]) {
    const rebuilt = await stage.reload(sale, { draft });
    return (await stage.backend.sales.recall(rebuilt.ref(), buyerIds)).holdings;
  }

  describe('a draft of the next generation’s buyers', () => {
    it('is loaded with the segment, in its latest state', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const { sales } = stage.backend;
      await sales.beginDraft(next(sale));
      const early = [holds('anna', '11'), holds('ben', '12'), holds('cleo', '13')];
      await sales.draftHoldings(next(sale, stamp(1)), early);
      const late = [holds('anna', '11', '14'), holds('ben'), holds('dora')];
      await sales.draftHoldings(next(sale, stamp(2)), late);
      expect(await heldAfter(sale, stamp(2), 'anna', 'ben', 'cleo', 'dora', ' ')).toEqual([
        holds('anna', '11', '14'),
        holds('ben'),
        holds('cleo', '13'),
        holds('dora'),
        holds(' '),
      ]);
    });

    it('may be empty', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      await stage.backend.sales.beginDraft(next(sale));
      expect(await heldAfter(sale, stamp(0), 'anna')).toEqual([holds('anna')]);
    });

    it('does not change the segment that sells', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const [sold] = await sale.sellEach(1);
      await stage.backend.sales.beginDraft(next(sale));
      await stage.backend.sales.draftHoldings(next(sale, stamp(1)), [holds('anna', '11')]);
      expect(await sale.held(sold!.buyerId)).toHaveLength(1);
      expect(await sale.held('anna')).toEqual([]);
      await sale.sellEach(1);
    });

    it('is removed when another is begun: writing to it fails, and it can’t be loaded', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const { sales } = stage.backend;
      const first = (writes: number) => next(sale, stamp(writes, 'first'));
      await sales.beginDraft(first(0));
      await sales.draftHoldings(first(1), [holds('anna', '11')]);
      await sales.beginDraft(next(sale, stamp(0, 'second')));
      await expect(sales.draftHoldings(first(2), [holds('ben', '12')])).rejects.toThrow(StaleGeneration);
      await sale.sellEach(1);
      await sale.freeze();
      await expect(load(sale, stamp(1, 'first'))).rejects.toThrow(StaleGeneration);
      expect(await heldAfter(sale, stamp(0, 'second'), 'anna', 'ben')).toEqual([holds('anna'), holds('ben')]);
    });

    it('is removed when the segment is loaded without it', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const { sales } = stage.backend;
      await sales.beginDraft(next(sale));
      await sale.freeze();
      const { draft: _, ...ref } = next(sale);
      await sales.loadSegment({ ...ref, left: 5, perBuyerLimit: 1 });
      const late = sales.draftHoldings(next(sale, stamp(1)), [holds('anna', '11')]);
      await expect(late).rejects.toThrow(StaleGeneration);
      await stage.reload(sale, { generation: 3 });
    });

    it('leaves no buyers to load', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const { sales } = stage.backend;
      await sales.beginDraft(next(sale));
      await sale.freeze();
      await load(sale, stamp(0));
      expect(await sales.loadedUpTo({ saleId: sale.sale.id, generation: 2 }, 1)).toBe(AFTER_ALL_IDS);
      expect('~'.repeat(MAX_ID_CHARACTERS) < AFTER_ALL_IDS).toBe(true);
      await stage.reload(sale, { generation: 3 });
    });

    it('may be written again if the reply was lost', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const { sales } = stage.backend;
      await sales.beginDraft(next(sale));
      for (let times = 0; times < 2; times++)
        await sales.draftHoldings(next(sale, stamp(1)), [holds('anna', '11')]);
      expect(await heldAfter(sale, stamp(1), 'anna')).toEqual([holds('anna', '11')]);
    });

    it('without one of its writes is not written further, and can’t be loaded', async () => {
      const sale = await stage.load({ segments: 1, stock: 5 });
      const { sales } = stage.backend;
      await sales.beginDraft(next(sale));
      await sales.draftHoldings(next(sale, stamp(1)), [holds('anna', '11')]);
      const third = sales.draftHoldings(next(sale, stamp(3)), [holds('ben', '12')]);
      await expect(third).rejects.toThrow(StaleGeneration);
      await sale.freeze();
      for (const writes of [0, 2, 3])
        await expect(load(sale, stamp(writes))).rejects.toThrow(StaleGeneration);
      expect(await heldAfter(sale, stamp(1), 'anna', 'ben')).toEqual([holds('anna', '11'), holds('ben')]);
    });
  });
});
