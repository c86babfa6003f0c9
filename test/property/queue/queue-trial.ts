/** One run of a queue on real stores. After each step it is compared with the model. */
import { expect } from 'vitest';
import { unitsLeft } from '../../../src/engine/sale/units-left.ts';
import { rows } from '../../../src/postgres/database.ts';
import { offerUnits } from '../../../src/queue/head/round.ts';
import { FifoLine } from '../../../src/queue/line.ts';
import type { PlaceState } from '../../../src/queue/place.ts';
import { EVERYBODY } from '../../../src/queue/presence.ts';
import { readQueue } from '../../../src/queue/queue-state.ts';
import { readKnownSale } from '../../../src/sales/sale-rows.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { SeenHead } from '../../support/shop/seen-events.ts';
import type { Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { QueueModel, type QueueSale } from './queue-model.ts';

interface RawPlace {
  number: number;
  buyer_id: string;
  quantity: number;
  state: PlaceState;
  order_id: string | null;
  units: number | null;
}

export class QueueTrial {
  readonly shop: Shop;
  readonly saleId: string;
  readonly model: QueueModel;
  readonly #till: Till;

  private constructor(shop: Shop, till: Till, saleId: string, sale: QueueSale) {
    this.shop = shop;
    this.#till = till;
    this.saleId = saleId;
    this.model = new QueueModel(sale);
  }

  static async begin(shop: Shop, till: Till, sale: QueueSale): Promise<QueueTrial> {
    const { stock, segments, limit: perBuyerLimit, fit } = sale;
    const queue = { queue: 'fifo', presenceSeconds: 0, offerSeconds: 3_600, fit };
    const { id } = await shop.sell({ stock, segments, perBuyerLimit, ...queue });
    return new QueueTrial(shop, till, id, sale);
  }

  /** Rounds as the head makes them, until nothing changes. */
  async offer(): Promise<void> {
    const { db, backend } = this.shop;
    const { saleId, model } = this;
    const events = new SeenHead();
    while (model.round()) {
      const { sale, generation } = await readKnownSale(db, saleId);
      const units = unitsLeft(await backend.sales.snapshot(saleId, sale.segments, generation));
      const all = {
        present: EVERYBODY,
        head: 0,
        reach: 0,
        last: model.places.length,
        begun: new Set<number>(),
      };
      const queue = (await readQueue(db, saleId))!;
      const round = { saleId, queue, line: new FifoLine(saleId), fit: model.fit, ...all };
      await offerUnits(
        { db, buy: this.#till.take, events, begin: async () => true },
        { ...round, free: { units: units!, offers: 1_000 } },
      );
      // On a busy machine a commit may take longer than a round waits for it.
      await until(() => this.#areDecided(round.begun), { what: 'the late commits' });
      for (const { number, order_id: orderId } of await this.#read())
        this.model.places[number - 1]!.orderId = orderId ?? undefined;
    }
    expect(events.delays.filter((outcome) => outcome !== 'unknown')).toEqual([]);
  }

  async #areDecided(begun: ReadonlySet<number>): Promise<boolean> {
    const places = await this.#read();
    return places.every(({ number, state }) => state !== 'waiting' || !begun.has(number));
  }

  async check(): Promise<void> {
    const found = await this.#read();
    expect(
      found.map(({ number, buyer_id: buyerId, quantity, state, units }) => [
        ...[number, buyerId, quantity, state],
        units ?? 0,
      ]),
    ).toEqual(
      this.model.places.map(({ buyerId, quantity, state, units }, i) => [
        ...[i + 1, buyerId, quantity, state],
        units,
      ]),
    );
    const stock = 'SELECT stock::integer FROM sales WHERE id = ?';
    const [row] = await rows<{ stock: number }>(this.shop.db, stock, [this.saleId]);
    expect(row!.stock, 'units in stock').toBe(this.model.free);
  }

  #read(): Promise<RawPlace[]> {
    return rows<RawPlace>(
      this.shop.db,
      `SELECT p.number::integer, p.buyer_id, p.quantity, p.state, p.order_id::text, o.quantity AS units
       FROM places p LEFT JOIN orders o ON o.order_id = p.order_id WHERE p.sale_id = ? ORDER BY p.number`,
      [this.saleId],
    );
  }

  async end(): Promise<void> {
    expect(await this.shop.service.verify(this.saleId)).toMatchObject({ ok: true, findings: [] });
    if (this.model.state !== 'closed') await this.shop.service.change(this.saleId, { action: 'close' }, BY);
  }
}
