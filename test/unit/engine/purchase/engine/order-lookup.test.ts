/** A buyer’s order, searched for in the sales that the worker knows. */
import { describe, expect, it } from 'vitest';
import { StaleGeneration } from '../../../../../src/engine/errors.ts';
import {
  anOrder,
  answers,
  engine,
  learn,
  listener,
  recalls,
  remember,
  stageEngine,
  viewOf,
} from '../../../../support/engine/engine-stage.ts';
import { settledTurns } from '../../../../support/engine/frozen-time.ts';

stageEngine();

describe('a buyer’s order', () => {
  it('is found in the sales that this worker knows', async () => {
    learn();
    listener.changed({ ...viewOf({ id: 'other' }), slot: -1 });
    remember(0, anOrder({ quantity: 2 }));
    expect(await engine.findOrder('anna', '900', 1_000)).toEqual({ saleId: 'sale', quantity: 2 });
    expect(await engine.findOrder('anna', '901', 1_000)).toBeUndefined();
  });

  it('is found although another sale’s records can’t be read; if no other sale has it, the search fails', async () => {
    const [sick, own] = ['sick', 'sale'];
    learn();
    listener.changed({ ...viewOf({ id: sick }), slot: -1 });
    const order = anOrder({ quantity: 2 });
    const holding = async (buyerIds: readonly string[]) => ({
      committed: 0,
      holdings: buyerIds.map((buyerId) => ({ buyerId, orders: [order] })),
    });
    answers.recall = (buyerIds, saleId) =>
      saleId === own ? holding(buyerIds) : Promise.reject(new StaleGeneration(sick, 1));
    expect(await engine.findOrder('anna', order.orderId, 1_000)).toEqual({ saleId: own, quantity: 2 });
    await expect(engine.findOrder('anna', '901', 1_000)).rejects.toThrow(StaleGeneration);
  });

  it('is found although the record in another sale is not read in time', async () => {
    learn();
    listener.changed({ ...viewOf({ id: 'silent' }), slot: -1 });
    const order = anOrder();
    answers.recall = async (buyerIds, saleId) => {
      if (saleId === 'silent') await new Promise(() => {});
      return { committed: 0, holdings: buyerIds.map((buyerId) => ({ buyerId, orders: [order] })) };
    };
    expect(await engine.findOrder('anna', order.orderId, 1_000)).toEqual({ saleId: 'sale', quantity: 1 });
  });

  it('is searched for in some records at a time, and in no more of them once it is found', async () => {
    const sales = 50;
    for (let i = 0; i < sales; i++) listener.changed({ ...viewOf({ id: `sale-${i}` }), slot: -1 });
    remember(0, anOrder());
    expect(await engine.findOrder('anna', '900', 1_000)).toEqual({ saleId: 'sale-0', quantity: 1 });
    await settledTurns();
    expect(recalls.length).toBeLessThan(sales / 2);
  });

  it('is not called missing while the records can’t be read: the search fails', async () => {
    learn();
    answers.recall = async () => Promise.reject(new Error('away'));
    await expect(engine.findOrder('anna', '900', 1_000)).rejects.toThrow('away');
  });
});
