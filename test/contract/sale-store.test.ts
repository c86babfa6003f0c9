import { describe, expect, it } from 'vitest';
import { type LogRead, NO_ENTRY, type SaleState } from '../../src/engine/contract.ts';
import { StaleGeneration } from '../../src/engine/errors.ts';
import { AFTER_ALL_IDS } from '../../src/engine/limits.ts';
import { rulesOf } from '../../src/engine/sale/rules.ts';
import { allHoldings, aSale, kinds, LoadedSale, loadSale } from '../support/shop/sales.ts';
import { until } from '../support/until.ts';
import { onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  const publish = ({ sale, generation }: LoadedSale) =>
    stage.backend.sales.publish({ sale, state: 'open', generation });

  describe('the expected state of a sale', () => {
    async function aSoldSale({ isAnnounced = true } = {}) {
      const sale = await stage.load({ segments: 2, stock: 20 });
      await sale.sellEach(2);
      const reads = await stage.backend.log.readLog([sale.position(), sale.position(0, '', 1)], 0);
      const newest = reads.map(({ head }) => head!);
      const watermarks = newest.map(({ seq }, segment) => sale.watermark(seq, seq, segment));
      if (isAnnounced) await stage.backend.log.advance(watermarks);
      return {
        sale,
        expected: {
          saleId: sale.sale.id,
          generation: 1,
          state: 'open' as const,
          rules: rulesOf(sale.sale),
          newest,
        },
      };
    }

    it('matches only an equal sale, not a different or missing one', async () => {
      const { expected } = await aSoldSale();
      const [first, second] = expected.newest;
      expect(first!.seq).toBeGreaterThan(0);
      const others = [
        { ...expected, saleId: 'nowhere' },
        { ...expected, generation: 2 },
        { ...expected, state: 'paused' as const },
        { ...expected, rules: 'others' },
        { ...expected, newest: [{ ...first!, seq: first!.seq + 1 }, second!] },
        { ...expected, newest: [{ ...first!, tail: '1' }, second!] },
        { ...expected, newest: [first!, { ...second!, seq: 7, tail: '1' }] },
        { ...expected, newest: [first!, second!, NO_ENTRY] },
      ];
      const found = await stage.backend.sales.matches([expected, ...others, expected]);
      expect(found).toEqual([true, ...others.map(() => false), true]);
      expect(await stage.backend.sales.matches([])).toEqual([]);
    });

    it('does not match before its orders are announced as applied', async () => {
      const { sale, expected } = await aSoldSale({ isAnnounced: false });
      const { seq } = expected.newest[0]!;
      expect(await stage.backend.sales.matches([expected])).toEqual([false]);
      await stage.backend.log.advance([sale.watermark(seq, seq)]);
      const [{ head }] = (await stage.backend.log.readLog([sale.position()], 0)) as [LogRead];
      expect(head!.committed).toBe(seq);
      expect(await stage.backend.sales.matches([expected])).toEqual([true]);
    });

    it.each([
      ['sells', (sale: LoadedSale) => sale.take([sale.order('zoe')])],
      [
        'is paused',
        ({ sale }: LoadedSale) => stage.backend.sales.setState({ sale, state: 'paused', generation: 1 }),
      ],
      ['is frozen', ({ sale }: LoadedSale) => stage.backend.sales.freeze(sale.id, sale.segments, 1)],
    ])('no longer matches when the sale %s', async (_, change) => {
      const { sale, expected } = await aSoldSale();
      expect(await stage.backend.sales.matches([expected])).toEqual([true]);
      await change(sale);
      expect(await stage.backend.sales.matches([expected])).toEqual([false]);
    });
  });

  describe('the change counter', () => {
    it('changes with each publication, change of state and return of units, and not otherwise', async () => {
      const marks = [await stage.backend.sales.changeCounter()];
      const mark = async () => marks.push(await stage.backend.sales.changeCounter());
      const sale = await stage.load();
      await mark();
      const [anna] = await sale.sellEach(1);
      expect(await stage.backend.sales.changeCounter()).toBe(marks.at(-1));
      await sale.compensate(anna!);
      await mark();
      await stage.backend.sales.setState({ sale: sale.sale, state: 'paused', generation: 1 });
      await mark();
      expect(new Set(marks).size).toBe(4);
    });
  });

  describe('a published sale', () => {
    it('can be read with its whole definition', async () => {
      const spec = {
        ...{
          title: 'Zoë & friends “live”',
          stock: 2,
          segments: 2,
          perBuyerLimit: 4,
          endsAt: Date.UTC(2030, 0),
        },
        ...{
          priceMinor: 1990,
          currency: 'EUR',
          requireToken: true,
          metadata: { hall: 7, tags: ['a', 'b'], nested: { ok: true } },
        },
      };
      const { sale } = await stage.load(spec, { generation: 3, state: 'paused' });
      expect(await stage.backend.sales.read('nowhere')).toBeUndefined();
      const record = await stage.backend.sales.read(sale.id);
      expect(record).toEqual({ sale, state: 'paused', generation: 3, epoch: 1, rules: rulesOf(sale) });
    });

    it('can’t be read before it is published', async () => {
      const { id } = aSale();
      await stage.backend.sales.loadSegment({
        saleId: id,
        segment: 0,
        generation: 1,
        left: 1,
        perBuyerLimit: 1,
      });
      expect(await stage.backend.sales.read(id)).toBeUndefined();
      expect(await stage.backend.sales.versions([id])).toEqual([undefined]);
    });

    it('raises its epoch with each publication, over generations', async () => {
      let sale = await stage.load();
      const epochs = [await sale.epoch()];
      for (let i = 0; i < 2; i++) {
        sale = await stage.reload(sale, {});
        epochs.push(await sale.epoch());
      }
      expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
    });

    it('is published once: a second load of the same generation is too late', async () => {
      const sale = await stage.load({ segments: 2 }, { state: 'paused' });
      await expect(publish(sale)).rejects.toThrow(StaleGeneration);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'paused' });
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ state: 'paused', epoch: 1 });
    });

    it('has a version, read together with others in the requested order', async () => {
      const one = await stage.load({}, { state: 'paused' });
      const two = await stage.load({}, { generation: 5 });
      const versions = await stage.backend.sales.versions([two.sale.id, 'nowhere', one.sale.id]);
      expect(versions).toMatchObject([
        { state: 'open', generation: 5, epoch: 1 },
        undefined as never,
        { state: 'paused', generation: 1, epoch: 1 },
      ]);
      expect(await stage.backend.sales.versions([])).toEqual([]);
    });

    it('is refused when a segment was not loaded, or in another generation', async () => {
      const { sale } = await stage.load({ segments: 2 });
      const wider = { sale: { ...sale, segments: 3 }, state: 'open' as const, generation: 1 };
      await expect(stage.backend.sales.publish(wider)).rejects.toThrow(StaleGeneration);
      const later = { sale, state: 'open' as const, generation: 2 };
      await expect(stage.backend.sales.publish(later)).rejects.toThrow(StaleGeneration);
      expect(await stage.backend.sales.read(sale.id)).toMatchObject({ generation: 1, sale: { segments: 2 } });
    });

    it('opens in no segment when one is not loaded', async () => {
      const sale = new LoadedSale(stage.backend, aSale({ segments: 2 }), 1);
      const load = { left: 5, perBuyerLimit: 1, buyers: 'none' as const };
      await stage.backend.sales.loadSegment({ ...sale.ref(0), ...load });
      await expect(publish(sale)).rejects.toThrow(StaleGeneration);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
      await stage.backend.sales.loadSegment({ ...sale.ref(1), ...load });
      await publish(sale);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('is not reopened by a rebuild of an older generation', async () => {
      const old = await stage.load();
      const sale = await stage.reload(old, { state: 'paused' });
      await expect(publish(old)).rejects.toThrow(StaleGeneration);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'paused' });
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ generation: 2, state: 'paused' });
    });
  });

  describe('the state of a sale', () => {
    it('is set in every segment and in the record, and raises the epoch', async () => {
      const sale = await stage.load({ stock: 4, segments: 4 });
      const epoch = await sale.epoch();
      await stage.backend.sales.setState({ sale: sale.sale, state: 'paused', generation: 1 });
      for (let segment = 0; segment < 4; segment++) {
        expect(await sale.take([sale.order('anna')], segment)).toEqual({ status: 'paused' });
      }
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ state: 'paused' });
      expect(await sale.epoch()).toBeGreaterThan(epoch);
    });

    it('comes with the new definition of the sale', async () => {
      const sale = await stage.load();
      const later = { ...sale.sale, title: 'Second night' };
      await stage.backend.sales.setState({ sale: later, state: 'open', generation: 1 });
      expect((await stage.backend.sales.read(later.id))?.sale).toEqual(later);
    });

    it.each([1, 3])('is refused in generation %i of a sale in generation 2', async (generation) => {
      const sale = await stage.load({}, { generation: 2 });
      const record = { sale: sale.sale, state: 'closed' as const, generation };
      await expect(stage.backend.sales.setState(record)).rejects.toThrow(StaleGeneration);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('is set in no segment when one can not be set', async () => {
      const sale = await stage.load({ segments: 2 });
      const wider = { ...sale.sale, segments: 3 };
      const paused = { sale: wider, state: 'paused' as const, generation: 1 };
      await expect(stage.backend.sales.setState(paused)).rejects.toThrow(StaleGeneration);
      await stage.backend.sales.loadSegment({ ...sale.ref(2), left: 0, perBuyerLimit: 1 });
      await expect(stage.backend.sales.setState(paused)).rejects.toThrow(StaleGeneration);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('of an earlier revision comes too late, and changes nothing', async () => {
      const sale = await stage.load({ segments: 2 });
      const set = (state: SaleState, revision: number) =>
        stage.backend.sales.setState({ sale: sale.sale, state, generation: 1, revision });
      expect(await set('paused', 3)).toBe(3);
      const epoch = await sale.epoch();
      expect(await set('open', 2)).toBe(3);
      for (const segment of [0, 1])
        expect(await sale.take([sale.order('anna')], segment)).toEqual({ status: 'paused' });
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ state: 'paused' });
      expect(await sale.epoch()).toBe(epoch);
      expect(await set('open', 3)).toBe(3);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('is set in no segment when one has that of a later revision, and the record keeps it', async () => {
      const sale = await stage.load({ segments: 1 });
      const later = { sale: sale.sale, state: 'paused' as const, generation: 1, revision: 2 };
      await stage.backend.sales.setState(later);
      expect(await stage.backend.sales.setState({ ...later, state: 'closed', revision: 1 })).toBe(2);
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ state: 'paused' });
    });

    it('is set in a new generation whatever its revision', async () => {
      const sale = await stage.load();
      await stage.backend.sales.setState({ sale: sale.sale, state: 'paused', generation: 1, revision: 9 });
      const next = await stage.reload(sale, {});
      const record = { sale: next.sale, state: 'closed' as const, generation: 2, revision: 1 };
      expect(await stage.backend.sales.setState(record)).toBe(1);
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ state: 'closed', generation: 2 });
    });

    it('does not thaw a frozen sale', async () => {
      const sale = await stage.load();
      await sale.freeze();
      const record = { sale: sale.sale, state: 'open' as const, generation: 1 };
      await expect(stage.backend.sales.setState(record)).rejects.toThrow(StaleGeneration);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
    });
  });

  describe('freezing', () => {
    it('leaves units, orders and the record as they are', async () => {
      const sale = await stage.load();
      await sale.sellEach(1);
      await sale.freeze();
      expect(await sale.left()).toEqual([9]);
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ state: 'open' });
    });

    it('can’t be undone: a late publication is refused, because the log is already drained', async () => {
      const sale = await stage.load({ segments: 2 });
      await sale.freeze();
      await expect(publish(sale)).rejects.toThrow(StaleGeneration);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
      const rebuilt = await stage.reload(sale, {});
      expect(kinds(await rebuilt.take([rebuilt.order('anna')]))).toEqual(['taken']);
    });

    it('stops a rebuild that has loaded and not published yet', async () => {
      const sale = await stage.load();
      const next = { ...sale.ref(), generation: 2 };
      await sale.freeze();
      await stage.backend.sales.loadSegment({ ...next, left: 10, perBuyerLimit: 1, buyers: 'none' });
      await stage.backend.sales.freeze(sale.sale.id, 1, 2);
      await expect(
        stage.backend.sales.publish({ sale: sale.sale, state: 'open', generation: 2 }),
      ).rejects.toThrow(StaleGeneration);
      await stage.reload(sale, { generation: 3 });
    });

    it('of an older generation leaves a newer one alone', async () => {
      const sale = await stage.load({}, { generation: 2 });
      await stage.backend.sales.freeze(sale.sale.id, 1, 1);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('refuses a late load of the same generation', async () => {
      const sale = await stage.load({ segments: 2 });
      await sale.freeze();
      await stage.backend.sales.freeze(sale.sale.id, 2, 2);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
      const late = { ...sale.ref(), generation: 2, left: 5, perBuyerLimit: 1 };
      await expect(stage.backend.sales.loadSegment(late)).rejects.toThrow(StaleGeneration);
      await stage.reload(sale, { generation: 3 });
    });

    it('keeps the log of a segment that sells in an older generation, and replaces it the next time', async () => {
      const sale = await stage.load({ segments: 2 });
      const freeze = () => stage.backend.sales.freeze(sale.sale.id, 2, 2);
      const read = async () => (await stage.backend.log.readLog([sale.position()], 10))[0];
      await sale.take([sale.order('anna')]);
      await expect(freeze()).rejects.toThrow(StaleGeneration);
      expect(await sale.take([sale.order('ben')])).toEqual({ status: 'stale' });
      expect(await read()).toMatchObject({ head: { state: 'frozen' }, entries: [{ seq: 1 }] });
      await freeze();
      expect(await read()).toMatchObject({ head: undefined, entries: [] });
      await stage.reload(sale, { generation: 3 });
    });

    it('refuses a late load even if there was no segment yet', async () => {
      await stage.backend.sales.freeze('nowhere', 2, 1);
      const late = { saleId: 'nowhere', segment: 1, generation: 1, left: 5, perBuyerLimit: 1 };
      await expect(stage.backend.sales.loadSegment(late)).rejects.toThrow(StaleGeneration);
      await stage.backend.sales.loadSegment({ ...late, generation: 2 });
    });
  });

  describe('loading a segment', () => {
    it('replaces units, buyers, log and tickets', async () => {
      const old = await stage.load({ stock: 3 });
      await old.sellEach(1);
      await stage.backend.log.advance([old.watermark(1, 1)]);
      await old.take([old.order('anna')], 0, { ticket: 9 });
      const sale = await stage.reload(old, { split: [3] });
      expect(await sale.counters()).toMatchObject([
        { left: 3, seq: 0, committed: 0, taken: 0, orders: 0, supplied: 3 },
      ]);
      const [log] = await stage.backend.log.readLog([sale.position()], 10);
      expect(log).toMatchObject({ head: { seq: 0, tail: '' }, entries: [] });
      expect(kinds(await sale.take([sale.order('anna')], 0, { ticket: 1 }))).toEqual(['taken']);
    });

    it.each([1, 2])('is refused in generation %i when it is there in generation 2', async (generation) => {
      const sale = await stage.load({}, { generation: 2 });
      const load = { ...sale.ref(), generation, left: 99, perBuyerLimit: 1 };
      await expect(stage.backend.sales.loadSegment(load)).rejects.toThrow(StaleGeneration);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it.each(['open', 'paused', 'closed'] as const)(
      'is refused while an older one is %s: its log may hold orders that nobody has salvaged',
      async (state) => {
        const sale = await stage.load();
        const sold = await sale.sellEach(1);
        await stage.backend.sales.setState({ sale: sale.sale, state, generation: 1 });
        const next = { ...sale.ref(), generation: 2, left: 9, perBuyerLimit: 1 };
        await expect(stage.backend.sales.loadSegment(next)).rejects.toThrow(StaleGeneration);
        const [read] = await stage.backend.log.readLog([sale.position()], 10);
        expect(read!.entries.flatMap(({ orders }) => orders)).toMatchObject(sold);
        await sale.freeze();
        await stage.backend.sales.loadSegment(next);
        stage.uncount(sale);
      },
    );

    it('sets the limit per buyer', async () => {
      const sale = await stage.load({ perBuyerLimit: 2 });
      const orders = ['anna', 'anna', 'anna'].map((buyer) => sale.order(buyer));
      expect(kinds(await sale.take(orders))).toEqual(['taken', 'taken', 'limit']);
    });
  });

  describe('archiving', () => {
    const archive = (sale: LoadedSale, generation = sale.generation + 1) =>
      stage.backend.sales.archive({ saleId: sale.sale.id, generation });
    const load = (sale: LoadedSale, generation: number) =>
      stage.backend.sales.loadSegment({
        ...{ ...sale.ref(), generation, left: 10 },
        ...{ perBuyerLimit: 1, buyers: 'none' },
      });

    async function expectGone({ sale, generation }: LoadedSale): Promise<void> {
      const { sales, log } = stage.backend;
      expect(await sales.read(sale.id)).toBeUndefined();
      expect(await sales.versions([sale.id])).toEqual([undefined]);
      const found = await sales.snapshot(sale.id, sale.segments, generation);
      expect(found.map(({ counters }) => counters)).toEqual(found.map(() => undefined));
      const position = { saleId: sale.id, segment: 0, generation, seq: 0, tail: '' };
      const [read] = await log.readLog([position], 10);
      expect(read).toMatchObject({ head: undefined, entries: [] });
    }

    it('removes segments, buyers, logs and the record, whatever their state, and tells every node', async () => {
      const sale = await stage.load({ segments: 3, stock: 9 }, { state: 'closed' });
      await sale.freeze();
      const told: string[] = [];
      const end = await stage.backend.subscribe({ saleChanged: (id) => void told.push(id) });
      const before = await stage.backend.sales.changeCounter();
      stage.uncount(sale);
      await archive(sale);
      await expectGone(sale);
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
      expect(await stage.backend.sales.changeCounter()).not.toBe(before);
      await until(() => told.includes(sale.sale.id), { what: 'the message' });
      await end();
    });

    it('may be repeated, and needs no sale', async () => {
      const sale = await stage.load();
      stage.uncount(sale);
      await archive(sale);
      await archive(sale);
      await expectGone(sale);
      await stage.backend.sales.archive({ saleId: 'nowhere', generation: 1 });
      expect(await stage.backend.sales.read('nowhere')).toBeUndefined();
    });

    it('removes a sale that a publication has left half done', async () => {
      const sale = await stage.load({ segments: 2 });
      stage.uncount(sale);
      await archive(sale);
      await load(sale, 1);
      await archive(sale);
      await expectGone(sale);
    });

    it.each([1, 2])('leaves a sale of the same or a later generation alone: %i', async (generation) => {
      const sale = await stage.load({}, { generation: 2 });
      await archive(sale, generation);
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ generation: 2, state: 'open' });
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('refuses a late publication of its generation or an older one', async () => {
      const sale = await stage.load({}, { generation: 2 });
      stage.uncount(sale);
      await archive(sale);
      for (const generation of [2, 3]) {
        await stage.backend.sales.freeze(sale.sale.id, 1, generation - 1);
        await load(sale, generation);
        const late = { sale: sale.sale, state: 'open' as const, generation };
        await expect(stage.backend.sales.publish(late)).rejects.toThrow(StaleGeneration);
        expect(await stage.backend.sales.read(sale.sale.id)).toBeUndefined();
      }
    });

    it('is over when a later generation is published: a record that does not expire', async () => {
      const sale = await stage.load();
      await archive(sale);
      const again = await stage.reload(sale, { generation: 3 });
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ generation: 3, state: 'open' });
      expect(kinds(await again.take([again.order('anna')]))).toEqual(['taken']);
      await archive(sale);
      expect(await stage.backend.sales.read(sale.sale.id)).toMatchObject({ generation: 3 });
    });
  });

  describe('how far a sale is loaded', () => {
    const loading = async (segments: number) => {
      const sale = new LoadedSale(stage.backend, aSale({ segments }), 1);
      for (let segment = 0; segment < segments; segment++) {
        await stage.backend.sales.loadSegment({ ...sale.ref(segment), left: 5, perBuyerLimit: 1 });
      }
      const upTo = () => stage.backend.sales.loadedUpTo(sale.ref(), segments);
      const load = (segment: number, after: string, to: string) =>
        stage.backend.sales.loadHoldings(sale.ref(segment), { after, upTo: to, holdings: [] });
      return { sale, upTo, load };
    };

    it('is the smallest id of all segments, in byte order', async () => {
      const { upTo, load } = await loading(2);
      expect(await upTo()).toBe('');
      await load(0, '', 'anna');
      expect(await upTo()).toBe('');
      await load(1, '', 'Zoe');
      expect(await upTo()).toBe('Zoe');
      await load(1, 'Zoe', 'ben');
      expect(await upTo()).toBe('anna');
      await load(0, 'anna', AFTER_ALL_IDS);
      expect(await upTo()).toBe('ben');
    });

    it.each([
      ['anna', 'ben'],
      ['Zoe', 'anna'],
      ['ann', 'anna'],
      ['anna', AFTER_ALL_IDS],
    ])('stays at %j behind which buyers are missing; they are loaded first', async (has, after) => {
      const { sale, upTo, load } = await loading(1);
      await load(0, '', has);
      await expect(load(0, after, AFTER_ALL_IDS)).rejects.toThrow(StaleGeneration);
      expect(await upTo()).toBe(has);
      await load(0, has, after);
      await load(0, after, AFTER_ALL_IDS);
      await publish(sale);
    });

    it('does not go back when another process loads again what is there', async () => {
      const { upTo, load } = await loading(1);
      await load(0, '', 'mia');
      await load(0, '', 'ben');
      expect(await upTo()).toBe('mia');
      await load(0, 'ben', 'leo');
      await load(0, 'mia', 'zoe');
      expect(await upTo()).toBe('zoe');
    });

    it('is refused without the buyers before, and then none of these are loaded', async () => {
      const { sale, load } = await loading(1);
      const held = { orderId: '7', quantity: 1, key: '', seq: 0 };
      const part = { after: 'ben', upTo: AFTER_ALL_IDS, holdings: [{ buyerId: 'mia', orders: [held] }] };
      await expect(stage.backend.sales.loadHoldings(sale.ref(), part)).rejects.toThrow(StaleGeneration);
      await load(0, '', AFTER_ALL_IDS);
      await publish(sale);
      expect(await sale.held('mia')).toEqual([]);
    });

    it('is the end of all buyers in each segment before the sale is published', async () => {
      const { sale, load } = await loading(2);
      await expect(publish(sale)).rejects.toThrow(StaleGeneration);
      await load(0, '', AFTER_ALL_IDS);
      await load(1, '', 'zoe');
      await expect(publish(sale)).rejects.toThrow(StaleGeneration);
      expect(await stage.backend.sales.read(sale.sale.id)).toBeUndefined();
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
      await load(1, 'zoe', AFTER_ALL_IDS);
      await publish(sale);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('is undefined if a segment is missing, frozen, published or of another generation', async () => {
      const { sale, upTo, load } = await loading(2);
      const { id } = sale.sale;
      expect(await stage.backend.sales.loadedUpTo(sale.ref(), 3)).toBeUndefined();
      expect(await stage.backend.sales.loadedUpTo({ saleId: id, generation: 2 }, 2)).toBeUndefined();
      for (const segment of [0, 1]) await load(segment, '', AFTER_ALL_IDS);
      await publish(sale);
      expect(await upTo()).toBeUndefined();
      const other = await loading(1);
      await other.sale.freeze();
      expect(await other.upTo()).toBeUndefined();
    });
  });

  describe('segments of older generations', () => {
    it('are found from a number on, with their generations', async () => {
      const sale = await loadSale(stage.backend, aSale({ segments: 3, stock: 9 }), { generation: 2 });
      const { id } = sale.sale;
      const find = (generation: number, from: number) =>
        stage.backend.sales.olderSegments({ saleId: id, generation }, from);
      expect(await find(2, 0)).toEqual([]);
      expect(await find(3, 1)).toEqual([1, 2].map((segment) => ({ saleId: id, segment, generation: 2 })));
      await sale.freeze();
      await stage.backend.sales.freeze(id, 2, 3);
      expect(await find(4, 0)).toEqual(
        [3, 3, 2].map((generation, segment) => ({ saleId: id, segment, generation })),
      );
      expect(await find(3, 0)).toEqual([{ saleId: id, segment: 2, generation: 2 }]);
      expect(await find(4, 3)).toEqual([]);
    });
  });

  describe('removing segments', () => {
    it('removes those of older generations from a number on, with buyers and logs', async () => {
      const old = await loadSale(stage.backend, aSale({ segments: 3, stock: 9 }));
      for (const segment of [0, 1, 2]) await old.take([old.order('anna')], segment);
      await stage.backend.sales.removeSegments({ saleId: old.sale.id, generation: 2 }, 1);
      const { saleId } = old.ref();
      const held = await stage.backend.sales.snapshot(saleId, 3, 1);
      expect(held.map(({ counters }) => counters !== undefined)).toEqual([true, false, false]);
      const logs = await stage.backend.log.readLog([old.position(0, '', 0), old.position(0, '', 1)], 10);
      expect(logs.map(({ entries }) => entries.length)).toEqual([1, 0]);
    });

    it.each([
      { which: 'beyond the last segment', segments: 1, number: 2 },
      { which: 'of a segment', segments: 3, number: 2 },
    ])('removes a draft $which: writing to it fails', async ({ segments, number }) => {
      const sale = await loadSale(stage.backend, aSale({ segments, stock: 3 }));
      const { sales } = stage.backend;
      const anna = { buyerId: 'anna', orders: [{ orderId: '77', quantity: 1, key: '', seq: 0 }] };
      const drafts = [0, number].map((segment) => ({ ...sale.ref(segment), generation: 2 }));
      for (const draft of drafts) await sales.beginDraft({ ...draft, draft: { id: 'mine', writes: 0 } });
      await sales.removeSegments({ saleId: sale.sale.id, generation: 2 }, 1);
      const [kept, removed] = drafts.map((draft) => ({ ...draft, draft: { id: 'mine', writes: 1 } }));
      await sales.draftHoldings(kept!, [anna]);
      await expect(sales.draftHoldings(removed!, [anna])).rejects.toThrow(StaleGeneration);
    });

    it.each([
      { state: 'open', isRemoved: false },
      { state: 'paused', isRemoved: false },
      { state: 'closed', isRemoved: false },
      { state: 'frozen', isRemoved: true },
      { state: 'loaded', isRemoved: true },
    ] as const)(
      'removes idle segments only: one that is $state is removed: $isRemoved',
      async ({ state, isRemoved }) => {
        const sale = await loadSale(stage.backend, aSale({ segments: 3, stock: 9 }));
        const { sales } = stage.backend;
        const { id } = sale.sale;
        if (state === 'frozen' || state === 'loaded') await sale.freeze();
        if (state === 'loaded') {
          for (const segment of [0, 1, 2])
            await sales.loadSegment({ ...sale.ref(segment), generation: 2, left: 3, perBuyerLimit: 1 });
        } else if (state !== 'frozen' && state !== 'open')
          await sales.setState({ sale: sale.sale, state, generation: 1 });
        const before = await sales.olderSegments({ saleId: id, generation: 3 }, 0);
        expect(before.map(({ segment }) => segment).sort()).toEqual([0, 1, 2]);
        const removal = sales.removeSegments({ saleId: id, generation: 3 }, 1, 'idle');
        if (isRemoved) await removal;
        else await expect(removal).rejects.toThrow(StaleGeneration);
        const left = await sales.olderSegments({ saleId: id, generation: 3 }, 0);
        expect(left.map(({ segment }) => segment).sort()).toEqual(isRemoved ? [0] : [0, 1, 2]);
        await sales.removeSegments({ saleId: id, generation: 3 }, 0);
        expect(await sales.olderSegments({ saleId: id, generation: 3 }, 0)).toEqual([]);
      },
    );

    it('does not archive a sale that sells, if only idle ones are removed', async () => {
      const sale = await loadSale(stage.backend, aSale({ segments: 2, stock: 4 }));
      const { sales } = stage.backend;
      const archive = () => sales.archive({ saleId: sale.sale.id, generation: 2 }, 'idle');
      await expect(archive()).rejects.toThrow(StaleGeneration);
      expect(await sales.read(sale.sale.id)).toBeDefined();
      await sale.freeze();
      await archive();
      expect(await sales.read(sale.sale.id)).toBeUndefined();
    });

    it('does not remove those that a later rebuild has loaded', async () => {
      const sale = await stage.load({ segments: 2, stock: 4 }, { generation: 2 });
      await stage.backend.sales.removeSegments({ saleId: sale.sale.id, generation: 2 }, 0);
      expect(await sale.left()).toEqual([2, 2]);
    });
  });

  describe('loaded holdings', () => {
    const held = { orderId: '77', quantity: 2, key: 'click:1', seq: 0 };

    it('count against the limit and answer replays, as entry 0', async () => {
      const holdings = [[{ buyerId: 'anna', orders: [held] }]];
      const sale = await stage.load({ perBuyerLimit: 2 }, { holdings });
      const byKey = sale.order('anna', { quantity: 2, key: 'click:1' });
      const byId = { ...sale.order('anna', { quantity: 2 }), orderId: '77' };
      await expect(sale.take([byKey, byId, sale.order('anna')])).resolves.toMatchObject({
        results: [
          { kind: 'replay', orderId: '77', quantity: 2, seq: 0 },
          { kind: 'replay', orderId: '77', quantity: 2, seq: 0 },
          { kind: 'limit', orderIds: ['77'] },
        ],
      });
    });

    it('may be thousands, and without any order', async () => {
      const orders = [{ ...held, quantity: 1 }];
      const many = Array.from({ length: 5000 }, (_, i) => ({
        buyerId: `buyer-${i}`,
        orders: i % 2 ? orders : [],
      }));
      const sale = await stage.load({}, { holdings: [many] });
      const { holdings } = await stage.backend.sales.recall(
        sale.ref(),
        many.slice(-300).map((holding) => holding.buyerId),
      );
      expect(holdings).toEqual(many.slice(-300));
      expect(kinds(await sale.take([sale.order('buyer-0'), sale.order('buyer-1')]))).toEqual([
        'taken',
        'limit',
      ]);
    });

    it.each([{ generation: 1 }, { generation: 3 }, { segment: 1 }])('are refused at %o', async (other) => {
      const ref = { saleId: aSale().id, segment: 0, generation: 2 };
      await stage.backend.sales.loadSegment({ ...ref, left: 1, perBuyerLimit: 1 });
      const part = allHoldings([{ buyerId: 'a', orders: [held] }]);
      const load = stage.backend.sales.loadHoldings({ ...ref, ...other }, part);
      await expect(load).rejects.toThrow(StaleGeneration);
    });

    it('are refused even without buyers', async () => {
      const sale = await stage.load();
      await expect(stage.backend.sales.loadHoldings(sale.ref(), allHoldings([]))).rejects.toThrow(
        StaleGeneration,
      );
      await stage.backend.sales.loadSegment({ ...sale.ref(1), left: 0, perBuyerLimit: 1 });
      await stage.backend.sales.loadHoldings(sale.ref(1), allHoldings([]));
    });

    it('are refused once the sale is published', async () => {
      const sale = await stage.load();
      const load = stage.backend.sales.loadHoldings(
        sale.ref(),
        allHoldings([{ buyerId: 'anna', orders: [held] }]),
      );
      await expect(load).rejects.toThrow(StaleGeneration);
      expect(await sale.held('anna')).toEqual([]);
    });
  });

  describe('a snapshot', () => {
    it('counts units, entries and orders per segment', async () => {
      const sale = await stage.load({ perBuyerLimit: 3 }, { split: [5, 5] });
      await sale.take([sale.order('anna', { quantity: 3 }), sale.order('ben')], 1);
      await sale.sellEach(1, 1);
      await stage.backend.log.advance([sale.watermark(1, 2, 1)]);
      expect(await stage.backend.sales.snapshot(sale.sale.id, 2, 1)).toMatchObject([
        { segment: 0, counters: { left: 5, seq: 0, committed: 0, taken: 0, orders: 0, supplied: 5 } },
        { segment: 1, counters: { left: 0, seq: 2, committed: 1, taken: 5, orders: 3, supplied: 5 } },
      ]);
    });

    it('shows segments that are missing or in another generation as missing, never as zero', async () => {
      const sale = await stage.load();
      const { id } = sale.sale;
      expect(await stage.backend.sales.snapshot(id, 1, 2)).toEqual([{ segment: 0, counters: undefined }]);
      const [, missing] = await stage.backend.sales.snapshot(id, 2, 1);
      expect(missing).toEqual({ segment: 1, counters: undefined });
    });
  });

  describe('a recall', () => {
    it('returns buyers’ holdings and the cursor, also when the sale is closed', async () => {
      const sale = await stage.load({ perBuyerLimit: 5 });
      const [one, two] = [sale.order('anna', { quantity: 2, key: 'k' }), sale.order('anna')];
      await sale.take([one]);
      await sale.take([two]);
      await stage.backend.log.advance([sale.watermark(1, 1)]);
      await stage.backend.sales.setState({ sale: sale.sale, state: 'closed', generation: 1 });
      expect(await stage.backend.sales.recall(sale.ref(), ['ben', 'anna'])).toEqual({
        committed: 1,
        holdings: [
          { buyerId: 'ben', orders: [] },
          {
            buyerId: 'anna',
            orders: [
              { orderId: one.orderId, quantity: 2, key: 'k', seq: 1 },
              { orderId: two.orderId, quantity: 1, key: '', seq: 2 },
            ],
          },
        ],
      });
    });

    it('without buyers returns the cursor', async () => {
      const sale = await stage.load();
      await sale.sellEach(1);
      await stage.backend.log.advance([sale.watermark(1, 1)]);
      expect(await stage.backend.sales.recall(sale.ref(), [])).toEqual({ committed: 1, holdings: [] });
    });

    it.each([{ generation: 2 }, { segment: 1 }, { saleId: 'nowhere' }])('is refused at %o', async (other) => {
      const sale = await stage.load();
      const recall = stage.backend.sales.recall({ ...sale.ref(), ...other }, ['anna']);
      await expect(recall).rejects.toThrow(StaleGeneration);
    });

    it('is refused while the sale is frozen', async () => {
      const sale = await stage.load();
      await sale.freeze();
      await expect(stage.backend.sales.recall(sale.ref(), ['anna'])).rejects.toThrow(StaleGeneration);
    });
  });
});
