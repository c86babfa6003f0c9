/** Units that operators add to a sale or withdraw from it, as a segment sees them. */
import { describe, expect, it } from 'vitest';
import { StaleGeneration } from '../../src/engine/errors.ts';
import { kinds } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  const counters = async (sale: Awaited<ReturnType<typeof stage.load>>) => (await sale.counters())[0]!;

  describe('a credit', () => {
    it('is given once per movement, and can be sold', async () => {
      const sale = await stage.load({ stock: 1 });
      await sale.sellEach(1);
      const share = { ...sale.ref(), movement: '7', units: 2 };
      for (let i = 0; i < 3; i++) await stage.backend.sales.credit(share);
      sale.returned += 2;
      expect(await counters(sale)).toMatchObject({ left: 2, supplied: 3 });
      expect(kinds(await sale.take([sale.order('ben'), sale.order('cleo')]))).toEqual(['taken', 'taken']);
    });

    it('of an older movement than the last changes nothing', async () => {
      const sale = await stage.load({ stock: 1 });
      await stage.backend.sales.credit({ ...sale.ref(), movement: '10', units: 2 });
      await stage.backend.sales.credit({ ...sale.ref(), movement: '9', units: 2 });
      sale.returned += 2;
      expect(await counters(sale)).toMatchObject({ left: 3 });
    });

    it.each([{ generation: 2 }, { segment: 1 }])('is refused at %o', async (other) => {
      const sale = await stage.load();
      const credit = stage.backend.sales.credit({ ...sale.ref(), movement: '1', units: 2, ...other });
      await expect(credit).rejects.toThrow(StaleGeneration);
    });
  });

  describe('a withdrawal', () => {
    it('takes at most the given number in all, and a repeat takes nothing twice', async () => {
      const sale = await stage.load({ stock: 5 });
      const share = { ...sale.ref(), movement: '7' };
      expect(await stage.backend.sales.withdraw({ ...share, units: 3 })).toBe(3);
      expect(await stage.backend.sales.withdraw({ ...share, units: 3 })).toBe(3);
      expect(await stage.backend.sales.withdraw({ ...share, units: 9 })).toBe(5);
      sale.returned -= 5;
      expect(await counters(sale)).toMatchObject({
        left: 0,
        supplied: 0,
        withdrawal: { movement: '7', units: 5 },
      });
    });

    it('that is undone leaves the units for sale, and a late repeat takes nothing', async () => {
      const sale = await stage.load({ stock: 5 });
      const share = { ...sale.ref(), movement: '7' };
      await stage.backend.sales.withdraw({ ...share, units: 3 });
      for (let i = 0; i < 2; i++) await stage.backend.sales.giveBack(share);
      expect(await stage.backend.sales.withdraw({ ...share, units: 3 })).toBe(0);
      expect(await counters(sale)).toMatchObject({ left: 5, withdrawal: { movement: '7', units: 0 } });
      expect(await stage.backend.sales.withdraw({ ...share, movement: '8', units: 1 })).toBe(1);
      sale.returned -= 1;
    });

    it('is refused after the undo even if it had taken nothing yet', async () => {
      const sale = await stage.load({ stock: 5 });
      const share = { ...sale.ref(), movement: '7' };
      await stage.backend.sales.giveBack(share);
      expect(await stage.backend.sales.withdraw({ ...share, units: 3 })).toBe(0);
      expect(await counters(sale)).toMatchObject({ left: 5 });
    });

    it('does not change a later one', async () => {
      const sale = await stage.load({ stock: 5 });
      const share = { ...sale.ref(), movement: '8' };
      await stage.backend.sales.withdraw({ ...share, units: 2 });
      await stage.backend.sales.giveBack({ ...share, movement: '7' });
      expect(await stage.backend.sales.withdraw({ ...share, movement: '7', units: 3 })).toBe(0);
      sale.returned -= 2;
      expect(await counters(sale)).toMatchObject({ left: 3, withdrawal: { movement: '8', units: 2 } });
    });

    it.each([{ generation: 2 }, { segment: 1 }])('is refused at %o', async (other) => {
      const sale = await stage.load();
      const share = { ...sale.ref(), movement: '1', units: 2, ...other };
      await expect(stage.backend.sales.withdraw(share)).rejects.toThrow(StaleGeneration);
      await expect(stage.backend.sales.giveBack(share)).rejects.toThrow(StaleGeneration);
    });
  });

  it('a sale that is reopened has a newer epoch', async () => {
    const sale = await stage.load();
    const epoch = await sale.epoch();
    await stage.backend.sales.reopen(sale.sale.id);
    expect(await sale.epoch()).toBe(epoch + 1);
  });
});
