/** What is particular to stock in memory; the rest is in the contract suite. */
import { beforeEach, describe, expect, it } from 'vitest';
import { StaleGeneration } from '../../../../src/engine/errors.ts';
import { MemoryBackend } from '../../../../src/engine/memory/memory-backend.ts';
import { aSale, kinds, type LoadedSale, loadSale, refilled } from '../../../support/shop/sales.ts';

let backend: MemoryBackend;
let sale: LoadedSale;

const foundOf = async (segments: number) =>
  (await backend.audits.audit(sale.sale.id, segments, sale.generation)).map(({ found }) => found);

beforeEach(async () => {
  backend = new MemoryBackend({ maxLogOrders: 100 });
  sale = await loadSale(backend, aSale({ segments: 3, stock: 9, perBuyerLimit: 3 }), {});
});

it('it is always ready, and does not outlive its process', () => {
  expect([backend.ready, backend.durable]).toEqual([true, false]);
});

it('it tells nobody anything after it was closed', async () => {
  const heard: string[] = [];
  await backend.subscribe({ saleChanged: (saleId) => heard.push(saleId) });
  await backend.sales.reopen(sale.sale.id);
  expect(heard).toEqual([sale.sale.id]);
  await backend.close();
  await backend.sales.reopen(sale.sale.id);
  expect(heard).toHaveLength(1);
});

it('an advance of no cursors is told to nobody', async () => {
  let told = 0;
  await backend.subscribe({ watermarks: () => told++ });
  await backend.log.advance([]);
  expect(told).toBe(0);
});

describe('a sale in memory', () => {
  it('freezes the segments that it has', async () => {
    await sale.freeze();
    expect(await foundOf(4)).toEqual(['sound', 'sound', 'sound', 'nothing']);
  });

  it('is not refilled while one of its segments is frozen', async () => {
    await backend.sales.freeze(sale.sale.id, 1, sale.generation);
    const batch = sale.batch([sale.order('anna')], 2);
    expect(await backend.takes.refillAndTake(batch, 3)).toEqual({ status: 'stale' });
  });

  it('says what is left in all segments after a refill', async () => {
    const batch = sale.batch([sale.order('anna', { quantity: 3 }), sale.order('ben', { quantity: 2 })], 2);
    const reply = refilled(await backend.takes.refillAndTake(batch, 3));
    expect([kinds(reply.take), reply.total]).toEqual([['taken', 'taken'], 4]);
  });

  it('removes segments from a number on, those of older generations only', async () => {
    await backend.sales.removeSegments({ saleId: sale.sale.id, generation: sale.generation }, 0);
    expect(await foundOf(3)).toEqual(['sound', 'sound', 'sound']);
    await backend.sales.removeSegments({ saleId: sale.sale.id, generation: sale.generation + 1 }, 1);
    expect(await foundOf(3)).toEqual(['sound', 'nothing', 'nothing']);
  });

  it('that is archived is not published in that generation or an older one', async () => {
    const archived = { saleId: sale.sale.id, generation: 5 };
    await backend.sales.archive({ ...archived, generation: sale.generation });
    expect(await backend.sales.read(sale.sale.id)).toBeDefined();
    await backend.sales.archive(archived);
    expect(await backend.sales.read(sale.sale.id)).toBeUndefined();
    // A late archival of an older generation changes nothing.
    await backend.sales.archive({ ...archived, generation: 4 });
    await expect(loadSale(backend, sale.sale, { generation: 4 })).rejects.toThrow(StaleGeneration);
    await expect(loadSale(backend, sale.sale, { generation: 5 })).rejects.toThrow(StaleGeneration);
    await loadSale(backend, sale.sale, { generation: 6 });
    expect(await backend.sales.read(sale.sale.id)).toMatchObject({ generation: 6 });
  });
});

describe('a withdrawal in memory', () => {
  it('counts its own units, not those of the one before', async () => {
    const share = { ...sale.ref(), movement: '7' };
    expect(await backend.sales.withdraw({ ...share, units: 1 })).toBe(1);
    expect(await backend.sales.withdraw({ ...share, movement: '8', units: 2 })).toBe(2);
    expect(await sale.counters()).toMatchObject([{ left: 0, supplied: 0 }, {}, {}]);
  });

  it('stays when a later one is undone', async () => {
    const share = { ...sale.ref(), movement: '7' };
    await backend.sales.withdraw({ ...share, units: 1 });
    await backend.sales.giveBack({ ...share, movement: '8' });
    expect(await sale.counters()).toMatchObject([{ left: 2, supplied: 2 }, {}, {}]);
  });

  it('and all credits are told by an audit', async () => {
    await backend.sales.credit({ ...sale.ref(), movement: '1', units: 4 });
    await backend.sales.withdraw({ ...sale.ref(), movement: '2', units: 6 });
    const [audit] = await backend.audits.audit(sale.sale.id, 1, sale.generation);
    expect(audit).toMatchObject({ credited: 4, withdrawn: 6, supplied: 1, returned: 0 });
    await backend.sales.giveBack({ ...sale.ref(), movement: '2' });
    const [after] = await backend.audits.audit(sale.sale.id, 1, sale.generation);
    expect(after).toMatchObject({ withdrawn: 0, supplied: 7 });
  });
});
