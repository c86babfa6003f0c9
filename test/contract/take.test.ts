import { describe, expect, it } from 'vitest';
import { NotExecuted } from '../../src/engine/errors.ts';
import { MAX_BATCH_ORDERS } from '../../src/engine/limits.ts';
import { LockedBackend } from '../../src/engine/locked/locked-backend.ts';
import { rulesOf } from '../../src/engine/sale/rules.ts';
import { monotonicMs } from '../../src/lib/monotonic.ts';
import { kinds, type LoadedSale, refilled, served } from '../support/shop/sales.ts';
import { MAX_LOG_ORDERS, onEachBackend } from './backends.ts';

onEachBackend((stage) => {
  describe('a take', () => {
    it('sells units and says how many are left', async () => {
      const sale = await stage.load({ stock: 5, perBuyerLimit: 3 });
      const reply = served(await sale.take([sale.order('anna', { quantity: 3 }), sale.order('ben')]));
      expect(reply).toEqual({
        status: 'served',
        results: [{ kind: 'taken' }, { kind: 'taken' }],
        seq: 1,
        committed: 0,
        left: 1,
        orders: 2,
        returned: 0,
      });
    });

    it('reports that it is sent, once, alone or after a refill', async () => {
      const sale = await stage.load({ stock: 2 });
      const { takes } = stage.backend;
      let sent = 0;
      const batch = (buyerId: string) => ({ ...sale.batch([sale.order(buyerId)]), sending: () => sent++ });
      expect(kinds(await takes.take(batch('anna')))).toEqual(['taken']);
      expect(sent).toBe(1);
      const reply = refilled(await takes.refillAndTake(batch('ben'), sale.sale.segments));
      expect(kinds(reply.take)).toEqual(['taken']);
      expect(sent).toBe(2);
    });

    it('numbers the batches that took something, and returns the cursor', async () => {
      const sale = await stage.load({ stock: 1 });
      const [anna] = await sale.sellEach(1);
      expect(served(await sale.take([sale.order('ben')]))).toMatchObject({ seq: 2, committed: 0 });
      await stage.backend.log.advance([sale.watermark(1, 1)]);
      // Neither the sold-out answer nor a replay has used the number 2.
      expect(served(await sale.take([anna!]))).toMatchObject({ seq: 2, committed: 1 });
    });

    it('of no orders takes nothing', async () => {
      const sale = await stage.load({ stock: 2 });
      const [anna] = await sale.sellEach(1);
      const newest = { seq: 1, tail: anna!.orderId, orders: 1 };
      const reply = served(await sale.take([], 0, { newest }));
      expect(reply).toEqual({
        status: 'served',
        results: [],
        seq: 2,
        committed: 0,
        left: 1,
        orders: 1,
        returned: 0,
      });
      expect(kinds(await sale.take([sale.order('ben')], 0, { newest }))).toEqual(['taken']);
    });

    it('does nothing for orders admitted under other rules than the segment’s; without rules it serves them', async () => {
      const sale = await stage.load({ stock: 4 });
      const { rules } = (await stage.backend.sales.read(sale.sale.id))!;
      expect(rules).toBe(rulesOf(sale.sale));
      const batch = (buyerId: string, of: string) => ({ ...sale.batch([sale.order(buyerId)]), rules: of });
      const { takes } = stage.backend;
      expect(kinds(await takes.take(batch('anna', rules!)))).toEqual(['taken']);
      expect(await takes.take(batch('ben', `${rules}:token`))).toEqual({ status: 'outdated' });
      const refill = refilled(await takes.refillAndTake(batch('ben', 'older'), sale.sale.segments));
      expect(refill.take).toEqual({ status: 'outdated' });
      expect(kinds(await takes.take(batch('cleo', '')))).toEqual(['taken']);
      expect(await sale.left()).toEqual([2]);
      const changed = { ...sale.sale, requireToken: true };
      await stage.backend.sales.setState({ sale: changed, state: 'open', generation: sale.generation });
      expect(await takes.take(batch('dora', rules!))).toEqual({ status: 'outdated' });
      expect(kinds(await takes.take(batch('dora', rulesOf(changed))))).toEqual(['taken']);
      expect((await stage.backend.sales.read(sale.sale.id))!.sale).toEqual(changed);
    });

    it('uses a raised limit once every segment has it, and counts the buyer’s earlier orders', async () => {
      const sale = await stage.load({ segments: 2, stock: 20 }, {});
      const anna = sale.order('anna');
      expect(kinds(await sale.take([anna]))).toEqual(['taken']);
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['limit']);
      const raised = { ...sale.sale, perBuyerLimit: 3 };
      await stage.backend.sales.setState({ sale: raised, state: 'open', generation: sale.generation });
      const { takes } = stage.backend;
      expect(await takes.take({ ...sale.batch([sale.order('anna')]), rules: rulesOf(sale.sale) })).toEqual({
        status: 'outdated',
      });
      const more = [sale.order('anna', { quantity: 2 }), sale.order('anna'), anna];
      expect(kinds(await sale.take(more))).toEqual(['taken', 'limit', 'replay']);
      const inOther = [sale.order('zoe', { quantity: 3 }), sale.order('zoe')];
      expect(kinds(await sale.take(inOther, 1))).toEqual(['taken', 'limit']);
    });

    it('changes no other segment', async () => {
      const sale = await stage.load({}, { split: [1, 1] });
      expect(kinds(await sale.take([sale.order('anna'), sale.order('ben')], 0))).toEqual(['taken', 'short']);
      expect(kinds(await sale.take([sale.order('ben')], 1))).toEqual(['taken']);
    });

    it('sells the last unit to the first order, and is short for all later ones', async () => {
      const sale = await stage.load({ stock: 2 });
      expect(kinds(await sale.take(sale.crowd(4)))).toEqual(['taken', 'taken', 'short', 'short']);
      expect(await sale.left()).toEqual([0]);
    });

    it('takes all of an order or nothing, and serves a smaller order after it', async () => {
      const sale = await stage.load({ stock: 4, perBuyerLimit: 3 });
      const orders = [3, 2, 1].map((quantity, i) => sale.order(`buyer-${i}`, { quantity }));
      expect(kinds(await sale.take(orders))).toEqual(['taken', 'short', 'taken']);
      expect(await sale.held('buyer-1')).toEqual([]);
    });

    it('serves what looks alike: ids, quantities and keys of the same digits', async () => {
      const sale = await stage.load({ stock: 9, perBuyerLimit: 2 });
      const orders = [
        sale.order('1'),
        sale.order('1', { key: '1' }),
        sale.order('2', { quantity: 2 }),
        sale.order('11', { key: '1' }),
        sale.order('3', { key: '11' }),
        sale.order('12'),
      ];
      expect(kinds(await sale.take(orders))).toEqual(['taken', 'taken', 'taken', 'taken', 'taken', 'taken']);
      expect(await sale.left()).toEqual([2]);
      for (const { buyerId, orderId, quantity, key } of orders) {
        expect(await sale.held(buyerId), buyerId).toContainEqual({ orderId, quantity, key, seq: 1 });
      }
      expect(kinds(await sale.take(orders))).toEqual(orders.map(() => 'replay'));
    });

    it('serves a batch of the largest size', async () => {
      const sale = await stage.load({ stock: 300 });
      const reply = await sale.take(sale.crowd(MAX_BATCH_ORDERS));
      expect(new Set(kinds(reply))).toEqual(new Set(['taken']));
      expect(await sale.left()).toEqual([300 - MAX_BATCH_ORDERS]);
    });
  });

  describe('the same order again', () => {
    it('is a replay that names its log entry', async () => {
      const sale = await stage.load({ perBuyerLimit: 2 });
      await sale.sellEach(1);
      const anna = sale.order('anna', { quantity: 2 });
      await sale.take([anna]);
      const reply = served(await sale.take([anna]));
      expect(reply.results).toEqual([{ kind: 'replay', orderId: anna.orderId, quantity: 2, seq: 2 }]);
      expect(reply.left).toBe(7);
    });

    it('is a replay within one batch as well', async () => {
      const sale = await stage.load({ perBuyerLimit: 5 });
      const anna = sale.order('anna');
      const reply = served(await sale.take([anna, anna]));
      expect(reply.results[1]).toEqual({
        kind: 'replay',
        orderId: anna.orderId,
        quantity: 1,
        seq: reply.seq,
      });
      expect(await sale.held('anna')).toHaveLength(1);
    });

    it('is a replay by its key, under the id that it was first given', async () => {
      const sale = await stage.load({ perBuyerLimit: 5 });
      const first = sale.order('anna', { key: 'click-1' });
      await sale.take([first]);
      const again = served(await sale.take([sale.order('anna', { key: 'click-1' })]));
      expect(again.results).toEqual([{ kind: 'replay', orderId: first.orderId, quantity: 1, seq: 1 }]);
    });

    it('is a replay when nothing is left and the limit is reached', async () => {
      const sale = await stage.load({ stock: 1 });
      const [only] = await sale.sellEach(1);
      expect(kinds(await sale.take([only!]))).toEqual(['replay']);
    });

    it('is a replay of an order of the same batch, whether or not the buyer has others', async () => {
      const sale = await stage.load({ stock: 6, perBuyerLimit: 3 });
      await sale.take([sale.order('anna')]);
      for (const buyerId of ['anna', 'ben']) {
        const clicks = [1, 2].map(() => sale.order(buyerId, { key: 'click-1' }));
        expect(kinds(await sale.take(clicks)), buyerId).toEqual(['taken', 'replay']);
      }
      expect(await sale.left()).toEqual([3]);
    });

    it('is a mismatch with another quantity, by id and by key', async () => {
      const sale = await stage.load({ perBuyerLimit: 5 });
      const first = sale.order('anna', { quantity: 2, key: 'click-1' });
      await sale.take([first]);
      const other = sale.order('anna', { quantity: 1, key: 'click-1' });
      const reply = served(await sale.take([{ ...first, quantity: 3 }, other]));
      const mismatch = { kind: 'mismatch', orderId: first.orderId, quantity: 2 };
      expect(reply.results).toEqual([mismatch, mismatch]);
    });

    it('is another order when it has no key, or another buyer uses the key', async () => {
      const sale = await stage.load({ perBuyerLimit: 5 });
      await sale.take([sale.order('anna', { key: 'click-1' }), sale.order('ben')]);
      const reply = await sale.take([sale.order('ben', { key: 'click-1' }), sale.order('ben')]);
      expect(kinds(reply)).toEqual(['taken', 'taken']);
    });

    it.each(['7:1:1:x', ':::', '1:2:3', '%d+', '"}{"', '!~'])('is known by a key like %s', async (key) => {
      const sale = await stage.load({ perBuyerLimit: 5 });
      const orders = [
        sale.order('anna', { key }),
        sale.order('anna', { key: `${key}:` }),
        sale.order('anna'),
      ];
      expect(kinds(await sale.take(orders))).toEqual(['taken', 'taken', 'taken']);
      expect(kinds(await sale.take(orders))).toEqual(['replay', 'replay', 'replay']);
      expect((await sale.held('anna')).map((order) => order.key)).toEqual([key, `${key}:`, '']);
    });
  });

  describe('the limit per buyer', () => {
    it('names the buyer’s first 20 orders', async () => {
      const sale = await stage.load({ stock: 30, segments: 1, perBuyerLimit: 21 });
      const orders = Array.from({ length: 21 }, () => sale.order('anna'));
      await sale.take(orders);
      const { results } = served(await sale.take([sale.order('anna')]));
      expect(results).toEqual([
        { kind: 'limit', orderIds: orders.slice(0, 20).map(({ orderId }) => orderId) },
      ]);
    });

    it('refuses another order and names those that the buyer has', async () => {
      const sale = await stage.load();
      const anna = sale.order('anna');
      await sale.take([anna]);
      const reply = served(await sale.take([sale.order('anna')]));
      expect(reply.results).toEqual([{ kind: 'limit', orderIds: [anna.orderId] }]);
    });

    it('holds between two orders of one batch', async () => {
      const sale = await stage.load();
      const [first, second] = [sale.order('anna'), sale.order('anna')];
      const reply = served(await sale.take([first, second]));
      expect(reply.results).toEqual([{ kind: 'taken' }, { kind: 'limit', orderIds: [first.orderId] }]);
    });

    it('is counted in units over several orders', async () => {
      const sale = await stage.load({ perBuyerLimit: 3 });
      const two = sale.order('anna', { quantity: 2 });
      await sale.take([two]);
      expect(kinds(await sale.take([sale.order('anna', { quantity: 2 })]))).toEqual(['limit']);
      const one = sale.order('anna');
      expect(kinds(await sale.take([one]))).toEqual(['taken']);
      const reply = served(await sale.take([sale.order('anna')]));
      expect(reply.results).toEqual([{ kind: 'limit', orderIds: [two.orderId, one.orderId] }]);
      expect(await sale.left()).toEqual([7]);
    });

    it('refuses a single order above it', async () => {
      const sale = await stage.load({ perBuyerLimit: 2 });
      const reply = served(await sale.take([sale.order('anna', { quantity: 3 })]));
      expect(reply.results).toEqual([{ kind: 'limit', orderIds: [] }]);
    });

    it('is reported rather than a shortage', async () => {
      const sale = await stage.load({ stock: 1 });
      await sale.take([sale.order('anna')]);
      expect(kinds(await sale.take([sale.order('anna'), sale.order('ben')]))).toEqual(['limit', 'short']);
    });

    it('is not reduced by an order that was short', async () => {
      const sale = await stage.load({ stock: 1, perBuyerLimit: 2 });
      const reply = await sale.take([sale.order('anna', { quantity: 2 }), sale.order('anna')]);
      expect(kinds(reply)).toEqual(['short', 'taken']);
    });
  });

  describe('a ticket', () => {
    it.each([
      ['equal to', 5],
      ['older than', 4],
    ])('that is %s the last one of its lane is superseded and changes nothing', async (_, ticket) => {
      const sale = await stage.load();
      await sale.take([sale.order('anna')], 0, { lane: 7, ticket: 5 });
      const before = await sale.counters();
      const late = sale.order('ben');
      expect(await sale.take([late], 0, { lane: 7, ticket })).toEqual({ status: 'superseded' });
      expect(await sale.counters()).toEqual(before);
      expect(await sale.held('ben')).toEqual([]);
    });

    it('counts for its own lane only', async () => {
      const sale = await stage.load();
      await sale.take([sale.order('anna')], 0, { lane: 7, ticket: 5 });
      expect(kinds(await sale.take([sale.order('ben')], 0, { lane: 8, ticket: 1 }))).toEqual(['taken']);
      expect(kinds(await sale.take([sale.order('cleo')], 0, { lane: 77, ticket: 1 }))).toEqual(['taken']);
    });

    it('counts for its own segment only', async () => {
      const sale = await stage.load({ stock: 4, segments: 2 });
      await sale.take([sale.order('anna')], 0, { ticket: 5 });
      expect(kinds(await sale.take([sale.order('ben')], 1, { ticket: 1 }))).toEqual(['taken']);
    });

    it('is remembered when its batch took nothing', async () => {
      const sale = await stage.load({ stock: 0 });
      await sale.take([sale.order('anna')], 0, { ticket: 5 });
      expect(await sale.take([sale.order('anna')], 0, { ticket: 5 })).toEqual({ status: 'superseded' });
    });

    describe('of a batch that was refused is remembered, and supersedes older ones:', () => {
      const setState = ({ sale }: LoadedSale, state: 'open' | 'paused') =>
        stage.backend.sales.setState({ sale, state, generation: 1 });
      const fillLog = (sale: LoadedSale) => sale.take(sale.crowd(MAX_LOG_ORDERS), 0, { lane: 8 });
      const emptyLog = (sale: LoadedSale) => stage.backend.log.advance([sale.watermark(1, MAX_LOG_ORDERS)]);
      const nothing = async () => {};
      type Step = (sale: LoadedSale) => Promise<unknown>;

      it.each<[string, Step, Step]>([
        ['paused', (sale) => setState(sale, 'paused'), (sale) => setState(sale, 'open')],
        ['busy', fillLog, emptyLog],
        ['outdated', nothing, nothing],
      ])('%s', async (status, hinder, ease) => {
        const sale = await stage.load({ stock: 300 });
        await hinder(sale);
        const rules = status === 'outdated' ? 'older' : '';
        expect(await sale.take([sale.order('anna')], 0, { ticket: 5, rules })).toEqual({ status });
        await ease(sale);
        expect(await sale.take([sale.order('anna')], 0, { ticket: 4 })).toEqual({ status: 'superseded' });
        expect(kinds(await sale.take([sale.order('anna')], 0, { ticket: 6 }))).toEqual(['taken']);
      });
    });

    it('is compared as a number', async () => {
      const sale = await stage.load();
      await sale.take([sale.order('anna')], 0, { ticket: 9 });
      expect(kinds(await sale.take([sale.order('ben')], 0, { ticket: 10 }))).toEqual(['taken']);
      const far = 2 ** 52;
      await sale.take([sale.order('cleo')], 0, { ticket: far });
      expect(await sale.take([sale.order('dan')], 0, { ticket: far - 1 })).toEqual({ status: 'superseded' });
      expect(kinds(await sale.take([sale.order('dan')], 0, { ticket: far + 1 }))).toEqual(['taken']);
    });
  });

  describe('a take with deadlines', () => {
    const before = (ms: number) => ({ deadline: monotonicMs() - ms });

    it('is made before the earliest of them', async () => {
      const sale = await stage.load();
      const orders = [
        { ...sale.order('anna'), deadline: monotonicMs() + 60_000 },
        { ...sale.order('ben'), deadline: monotonicMs() + 90_000 },
        sale.order('cleo'),
      ];
      expect(kinds(await sale.take(orders))).toEqual(['taken', 'taken', 'taken']);
    });

    // Under locks, the order is left out, because a lock may be waited for.
    it('is not made when one is over, or without that order; the others are served afterwards', async () => {
      const sale = await stage.load();
      const [anna, ben] = [{ ...sale.order('anna'), ...before(5) }, sale.order('ben')];
      const reply = await sale.take([ben, anna]);
      if (stage.backend instanceof LockedBackend) expect(kinds(reply)).toEqual(['taken', 'unsent']);
      else {
        expect(reply).toEqual({ status: 'late' });
        expect(await sale.held('ben')).toEqual([]);
        expect(kinds(await sale.take([ben]))).toEqual(['taken']);
      }
      expect(await sale.held('anna')).toEqual([]);
    });

    it('is not made after a refill either', async () => {
      const sale = await stage.load({ segments: 2 }, { split: [0, 10] });
      const batch = sale.batch([{ ...sale.order('anna'), ...before(5) }]);
      const reply = stage.backend.takes.refillAndTake(batch, 2);
      if (stage.backend instanceof LockedBackend) await expect(reply).rejects.toThrow(NotExecuted);
      else expect(refilled(await reply).take).toEqual({ status: 'late' });
      expect(await sale.held('anna')).toEqual([]);
    });
  });

  describe('a segment answers stale', () => {
    it('when it is missing', async () => {
      const sale = await stage.load();
      expect(await sale.take([sale.order('anna')], 1)).toEqual({ status: 'stale' });
      const nowhere = { ...sale.batch([sale.order('anna')]), saleId: 'nowhere' };
      expect(await stage.backend.takes.take(nowhere)).toEqual({ status: 'stale' });
    });

    it.each([1, 3])('to generation %i when it is in generation 2', async (generation) => {
      const sale = await stage.load({}, { generation: 2 });
      expect(await sale.take([sale.order('anna')], 0, { generation })).toEqual({ status: 'stale' });
      expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
    });

    it('while it is frozen, also when the sale was paused', async () => {
      const sale = await stage.load({}, { state: 'paused' });
      await sale.freeze();
      expect(await sale.take([sale.order('anna')])).toEqual({ status: 'stale' });
    });

    it('until the sale is published', async () => {
      const sale = await stage.load();
      const load = { ...sale.ref(), segment: 1, left: 0, perBuyerLimit: 1 };
      await stage.backend.sales.loadSegment(load);
      expect(await sale.take([sale.order('anna')], 1)).toEqual({ status: 'stale' });
    });
  });

  it.each(['paused', 'closed'] as const)('a sale that is %s sells nothing', async (state) => {
    const loaded = await stage.load();
    await stage.backend.sales.setState({ sale: loaded.sale, state, generation: 1 });
    expect(await loaded.take([loaded.order('anna')])).toEqual({ status: state });
  });

  it('a paused sale sells again when it is opened', async () => {
    const loaded = await stage.load({}, { state: 'paused' });
    expect(await loaded.take([loaded.order('anna')])).toEqual({ status: 'paused' });
    await stage.backend.sales.setState({ sale: loaded.sale, state: 'open', generation: 1 });
    expect(kinds(await loaded.take([loaded.order('anna')]))).toEqual(['taken']);
  });

  describe('a log at its bound', () => {
    it('makes takes busy, and the next one is served when Postgres has caught up', async () => {
      const sale = await stage.load({ stock: 300 });
      await sale.take(sale.crowd(MAX_LOG_ORDERS - 1));
      const two = sale.crowd(2);
      expect(await sale.take(two)).toEqual({ status: 'busy' });
      await stage.backend.log.advance([sale.watermark(1, MAX_LOG_ORDERS - 1)]);
      expect(kinds(await sale.take(two))).toEqual(['taken', 'taken']);
    });

    it('can be filled exactly', async () => {
      const sale = await stage.load({ stock: 300 });
      expect(served(await sale.take(sale.crowd(MAX_LOG_ORDERS))).left).toBe(300 - MAX_LOG_ORDERS);
      expect(await sale.take(sale.crowd(1))).toEqual({ status: 'busy' });
    });

    it('counts orders and not batches, and no order that was short', async () => {
      const sale = await stage.load({ stock: 1 });
      for (let i = 0; i < 3; i++) await sale.take(sale.crowd(MAX_LOG_ORDERS / 2));
      expect(kinds(await sale.take(sale.crowd(1)))).toEqual(['short']);
    });
  });
});
