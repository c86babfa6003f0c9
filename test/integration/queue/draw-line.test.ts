/** A queue with a draw serves the lobby in the drawn order, which everybody can check. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { DrawCheck } from '../../../src/queue/draw/draw-check.ts';
import { drawLines } from '../../../src/queue/draw/draw-file.ts';
import { draw } from '../../../src/queue/draw/drawn-order.ts';
import { commitmentOf } from '../../../src/queue/draw/seed.ts';
import { readDigests } from '../../../src/queue/drawing.ts';
import { erasePlaces } from '../../../src/queue/erasure.ts';
import { readQueue } from '../../../src/queue/queue-state.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { QUEUE, queued, states } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

const NAMES = Array.from({ length: 40 }, (_, i) => `b${i + 1}`);
let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
  await shop.startSync();
});

afterAll(() => shop[Symbol.asyncDispose]());

const soon = () => new Date(Date.now() + 3_600_000).toISOString();
const open = (saleId: string) =>
  shop.service.change(saleId, { action: 'window', startsAt: Date.now() - 1 }, BY);
const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;

/** A lobby of 40, for 10 units, and its draw. */
async function drawn() {
  const { id } = await shop.sell({ stock: 10, segments: 4, ...QUEUE, queue: 'draw', startsAt: soon() });
  const before = await queueOf(id);
  await queued(shop, id, NAMES);
  const till = await shop.startEngine();
  const head = shop.startHead(till.take);
  expect((await queueOf(id)).draw).toEqual(before.draw);
  await open(id);
  await until(
    async () => Object.values(await states(shop, id)).filter((one) => one === 'offered').length === 10,
    {
      what: '10 offers',
    },
  );
  const { draw: made } = await queueOf(id);
  expect(made.seed).toEqual(before.draw.seed);
  return { id, head, till, made, order: draw({ seed: made.seed, ...made.drawn! }) };
}

test('the first of the drawn order get the offers, and whoever comes later stands behind them all', async () => {
  const { id, head, made, order } = await drawn();
  expect(made.drawn).toMatchObject({ entries: 40 });
  await until(() => head.seen.draws.length === 1, { what: 'the head reports the draw' });
  expect(head.seen).toMatchObject({ failures: [], draws: [{ saleId: id, entries: 40 }] });
  await queued(shop, id, ['late']);
  const inOrder = Array.from({ length: 40 }, (_, i) => NAMES[order.numberAt(i + 1) - 1]!);
  let found = await states(shop, id);
  expect(inOrder.map((name) => found[name])).toEqual([
    ...Array(10).fill('offered'),
    ...Array(30).fill('waiting'),
  ]);
  await shop.service.change(id, { action: 'top-up', units: 30 }, BY);
  await until(
    async () => Object.values(await states(shop, id)).filter((one) => one === 'offered').length === 40,
    {
      what: '40 offers',
    },
  );
  found = await states(shop, id);
  expect(found.late).toBe('waiting');
  await until(async () => (await queueOf(id)).head === 40, { what: 'the head stands behind the lobby' });
});

test('another head goes on in the same order', async () => {
  const { id, head, till, order } = await drawn();
  await head.stop();
  shop.startHead(till.take);
  await shop.service.change(id, { action: 'top-up', units: 5 }, BY);
  await until(
    async () => Object.values(await states(shop, id)).filter((one) => one === 'offered').length === 15,
    {
      what: '15 offers',
    },
  );
  const found = await states(shop, id);
  for (let rank = 1; rank <= 15; rank++) expect(found[NAMES[order.numberAt(rank) - 1]!]).toBe('offered');
});

/** Checks the file of a sale's draw, as whoever has read the commitment does. */
async function checkFile({ id, made, order }: Awaited<ReturnType<typeof drawn>>) {
  const check = new DrawCheck(commitmentOf(made.seed));
  const published = { saleId: id, commitment: commitmentOf(made.seed), seed: made.seed, numbers: order };
  const digestsOf = async (wanted: readonly number[]) => {
    const all = await readDigests(shop.db, id, made.saltKey, 0, 40);
    return wanted.map((number) => all[number - 1]!);
  };
  for await (const line of drawLines({ ...published, entriesHash: made.drawn!.entriesHash }, digestsOf))
    check.line(line);
  return check.end();
}

test('the file of the draw is right, also after a buyer was erased, and its pseudonym too', async () => {
  const found = await drawn();
  const { id } = found;
  const placesOf = (buyerId: string) =>
    rows(shop.db, 'SELECT 1 FROM places WHERE sale_id = ? AND buyer_id = ?', [id, buyerId]);
  for (const [buyerId, pseudonym] of [
    ['b7', 'erased-1'],
    ['erased-1', 'erased-2'],
  ] as const) {
    await shop.db.transaction((trx) => erasePlaces(trx, id, { buyerId, pseudonym }));
    expect(await placesOf(buyerId)).toEqual([]);
    expect(await placesOf(pseudonym)).toHaveLength(1);
    expect(await checkFile(found), `${buyerId} is erased`).toMatchObject({ ok: true, faults: [] });
  }
});

test('a draw can’t be asked for when the window is open, nor taken back when it was made', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await expect(shop.service.change(id, { action: 'queue', queue: 'draw' }, BY)).rejects.toThrow('not valid');
  const { id: other } = await drawn();
  await expect(shop.service.change(other, { action: 'queue', queue: 'fifo' }, BY)).rejects.toThrow(
    'not valid',
  );
});
