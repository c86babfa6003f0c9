/** What an audit reads of a sale's segments, and what it may correct. */
import { expect, it } from 'vitest';
import { StaleGeneration } from '../../src/engine/errors.ts';
import { kinds } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  it('distinguishes returned, credited and withdrawn units', async () => {
    const sale = await stage.load({ stock: 10 });
    const [order] = await sale.sellEach(3);
    await sale.compensate(order!);
    await sale.compensate(order!);
    await stage.backend.sales.credit({ ...sale.ref(), movement: '1', units: 5 });
    await stage.backend.sales.withdraw({ ...sale.ref(), movement: '2', units: 4 });
    sale.returned += 1;
    expect(await stage.backend.audits.audit(sale.sale.id, 1, 1)).toEqual([
      {
        ...{ found: 'sound', state: 'open', left: 9, taken: 3, supplied: 12, seq: 3 },
        ...{ returned: 1, credited: 5, withdrawn: 4, inTransit: 0 },
      },
    ]);
    await stage.backend.sales.giveBack({ ...sale.ref(), movement: '2' });
    sale.returned += 4;
    expect(await stage.backend.audits.audit(sale.sale.id, 1, 1)).toMatchObject([
      { withdrawn: 0, supplied: 16 },
    ]);
  });

  it('finds nothing if the segment is missing or of another generation', async () => {
    const { sale } = await stage.load();
    const nothing = { found: 'nothing' };
    expect(await stage.backend.audits.audit(sale.id, 2, 1)).toMatchObject([{ found: 'sound' }, nothing]);
    expect(await stage.backend.audits.audit(sale.id, 1, 2)).toEqual([nothing]);
  });

  it('reports a frozen segment', async () => {
    const sale = await stage.load();
    await sale.freeze();
    expect(await stage.backend.audits.audit(sale.sale.id, 1, 1)).toMatchObject([{ state: 'frozen' }]);
  });

  it('reads all records, page by page', async () => {
    const sale = await stage.load({ stock: 10, perBuyerLimit: 2 });
    const [anna, again, ben] = [sale.order('anna'), sale.order('anna'), sale.order('ben')];
    await sale.take([anna, again, ben]);
    const held = new Map<string, string[]>();
    let page = '';
    do {
      const { holdings, next } = await stage.backend.audits.records(sale.ref(), page);
      for (const { buyerId, orders } of holdings)
        held.set(
          buyerId,
          orders.map(({ orderId }) => orderId),
        );
      page = next;
    } while (page !== '');
    expect(held).toEqual(
      new Map([
        ['anna', [anna.orderId, again.orderId]],
        ['ben', [ben.orderId]],
      ]),
    );
  });

  it('corrects nothing where the counters differ by another number, or do not differ', async () => {
    const sale = await stage.load({ stock: 10 });
    await sale.sellEach(2);
    for (const off of [1, -1, undefined]) {
      expect(await stage.backend.audits.correct(sale.ref(), 'left', off)).toBe(false);
    }
    expect((await sale.counters())[0]).toMatchObject({ left: 8, supplied: 10 });
  });

  it('sets a counter to what the others give: the same, where they agree', async () => {
    const sale = await stage.load({ stock: 10 });
    await sale.sellEach(3);
    for (const field of ['left', 'supplied'] as const)
      expect(await stage.backend.audits.correct(sale.ref(), field, 0)).toBe(true);
    expect(await stage.backend.audits.audit(sale.sale.id, 1, 1)).toMatchObject([
      { left: 7, taken: 3, supplied: 10 },
    ]);
  });

  it('adds missing orders to a record, once', async () => {
    const sale = await stage.load({ stock: 10, perBuyerLimit: 2 });
    const order = sale.order('anna', { key: 'k' });
    await sale.take([order]);
    const other = { orderId: '7', quantity: 1, key: '', seq: 0 };
    const holding = { buyerId: 'anna', orders: [{ ...order, seq: 0 }, other] };
    for (let i = 0; i < 2; i++)
      expect(await stage.backend.audits.remember(sale.ref(), holding, 0)).toBe(true);
    expect(await sale.held('anna')).toEqual([
      { orderId: order.orderId, quantity: 1, key: 'k', seq: 1 },
      other,
    ]);
    expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['limit']);
    const another = { buyerId: 'ben', orders: [{ ...other, orderId: '8' }] };
    await stage.backend.audits.remember(sale.ref(), another, 0);
    expect(await sale.held('ben')).toHaveLength(1);
  });

  it('adds no order to a record after units have come back to the segment', async () => {
    const sale = await stage.load({ stock: 10, perBuyerLimit: 2 });
    const order = sale.order('anna');
    await sale.take([order]);
    await sale.compensate(order);
    const holding = { buyerId: 'anna', orders: [{ ...order, seq: 0 }] };
    expect(await stage.backend.audits.remember(sale.ref(), holding, 0)).toBe(false);
    expect(await sale.held('anna')).toEqual([]);
    expect(await stage.backend.audits.remember(sale.ref(), holding, 1)).toBe(true);
  });

  it.each([{ generation: 2 }, { segment: 1 }])('changes nothing at %o', async (other) => {
    const sale = await stage.load();
    const ref = { ...sale.ref(), ...other };
    await expect(stage.backend.audits.correct(ref, 'left', 1)).rejects.toThrow(StaleGeneration);
    await expect(stage.backend.audits.remember(ref, { buyerId: 'anna', orders: [] }, 0)).rejects.toThrow(
      StaleGeneration,
    );
  });
});
