import { describe, expect, it } from 'vitest';
import type { BackendEvents, LogHint, SyncNews, Watermark } from '../../src/engine/contract.ts';
import { until } from '../support/fixtures.ts';
import type { LoadedSale } from '../support/shop/sales.ts';
import { onEachBackend } from './backends.ts';

/** Records the events that a subscriber gets. */
class Heard implements BackendEvents {
  readonly advanced: Watermark[] = [];
  readonly hints: LogHint[] = [];
  readonly changed: string[] = [];

  watermarks(watermarks: readonly Watermark[]): void {
    this.advanced.push(...watermarks);
  }

  hint(hint: LogHint): void {
    this.hints.push(hint);
  }

  saleChanged(saleId: string): void {
    this.changed.push(saleId);
  }
}

onEachBackend((stage) => {
  const listen = async () => {
    const heard = new Heard();
    const stop = await stage.backend.subscribe(heard);
    return { heard, stop };
  };
  /** Events of one backend arrive in order, so when this one is heard, the earlier ones are too. */
  const settled = async (heard: Heard) => {
    const mark = `mark-${Math.random().toString(36).slice(2)}`;
    stage.backend.takes.hint({ saleId: mark, segments: [0], awaited: true });
    await until(() => heard.hints.some(({ saleId }) => saleId === mark), { what: 'the mark is heard' });
  };

  describe('a subscriber', () => {
    it('hears which logs have grown', async () => {
      const { heard } = await listen();
      const hints = [true, false].map((awaited) => ({
        saleId: 'my.sale-1',
        segments: [0, 63, 1023],
        awaited,
      }));
      for (const hint of hints) stage.backend.takes.hint(hint);
      await until(() => heard.hints.length === hints.length, { what: 'the hints' });
      expect(heard.hints).toEqual(hints);
    });

    it('hears the news of syncs, if other processes can reach the backend', async () => {
      const heard: SyncNews[] = [];
      await stage.backend.subscribe({ syncNews: (news) => heard.push(news) });
      const from = '0123456789abcdef';
      const handedOver = { to: 'fedcba9876543210', saleIds: ['a.sale-1', 'another'] };
      const told = stage.backend.syncs
        ? [
            { from, sales: 0 },
            { from, sales: 1_000, handedOver },
          ]
        : [];
      for (const news of told) stage.backend.syncs?.tell(news);
      await until(() => heard.length === told.length, { what: 'the news' });
      // A cluster may deliver two messages in any order.
      expect(heard).toEqual(expect.arrayContaining(told));
      expect(told.length > 0).toBe(stage.backend.durable);
    });

    it('gets watermarks unchanged, with the rejected orders', async () => {
      const { heard } = await listen();
      const sale = await stage.load();
      await sale.sellEach(2);
      const watermark = {
        ...sale.watermark(2, 2),
        rejected: [{ orderId: '1001', reason: 'limit' as const }],
      };
      await stage.backend.log.advance([watermark]);
      await until(() => heard.advanced.length > 0, { what: 'a watermark' });
      expect(heard.advanced).toEqual([watermark]);
    });

    it('gets a watermark that the segment knew already, because it may have missed the first message', async () => {
      const { heard } = await listen();
      const sale = await stage.load();
      await sale.sellEach(1);
      await stage.backend.log.advance([sale.watermark(1, 1)]);
      await stage.backend.log.advance([sale.watermark(1, 1)]);
      await until(() => heard.advanced.length === 2, { what: 'both watermarks' });
    });

    it('gets nothing from an advance without watermarks', async () => {
      const heard: number[] = [];
      await stage.backend.subscribe({ watermarks: (watermarks) => heard.push(watermarks.length) });
      await stage.backend.log.advance([]);
      const sale = await stage.load();
      await stage.backend.log.advance([sale.watermark(1, 1)]);
      await until(() => heard.includes(1), { what: 'the watermark' });
      expect(heard).toEqual([1]);
    });

    it('hears of a sale that is published, changed, or gets units back', async () => {
      const { heard } = await listen();
      const sale = await stage.load();
      const { id } = sale.sale;
      await until(() => heard.changed.length === 1, { what: 'the sale is published' });
      await stage.backend.sales.setState({ sale: sale.sale, state: 'open', generation: 1 });
      await until(() => heard.changed.length === 2, { what: 'its state is set' });
      const [anna] = await sale.sellEach(1);
      await sale.compensate(anna!);
      await until(() => heard.changed.length === 3, { what: 'an order is compensated' });
      expect(heard.changed).toEqual([id, id, id]);
    });

    it('reads the raised epoch when it asks after the message', async () => {
      const epochs: Promise<number>[] = [];
      let sale: LoadedSale | undefined;
      let published = false;
      await stage.backend.subscribe({
        saleChanged: () => {
          if (sale) epochs.push(sale.epoch());
          published = true;
        },
      });
      const loaded = await stage.load();
      await until(() => published, { what: 'the sale is published' });
      const before = await loaded.epoch();
      sale = loaded;
      await stage.backend.sales.setState({ sale: sale.sale, state: 'paused', generation: 1 });
      await until(() => epochs.length > 0, { what: 'the change is heard' });
      expect(await epochs[0]).toBeGreaterThan(before);
    });

    it('is not told of takes, refusals and refused changes', async () => {
      const { heard } = await listen();
      const sale = await stage.load();
      await until(() => heard.changed.length === 1, { what: 'the sale is published' });
      await sale.sellEach(2);
      await stage.backend.sales
        .publish({ sale: sale.sale, state: 'open', generation: 0 })
        .catch((error: Error) => expect(error.name).toBe('StaleGeneration'));
      await settled(heard);
      expect([heard.changed, heard.advanced]).toEqual([[sale.sale.id], []]);
    });

    it('gets nothing after the end of its subscription', async () => {
      const [gone, stays] = [await listen(), await listen()];
      await gone.stop();
      await settled(stays.heard);
      expect(gone.heard.hints).toEqual([]);
    });
  });

  it('a store that is up is ready at once', async () => {
    await stage.backend.takes.whenReady(0);
    expect(stage.backend.takes.ready).toBe(true);
  });
});
