/** A node learns of what has become of its sales, also where the messages are lost, and asks no more than it must. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { Board } from '../../../src/engine/board/board.ts';
import type { Backend } from '../../../src/engine/contract.ts';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { SaleDirectory } from '../../../src/node/sale-directory.ts';
import { BY } from '../../support/author.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { redisUrl, until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { Shop } from '../../support/shop/shop.ts';

/** A directory that hears no messages. */
function deafTo(backend: Backend, shop: Shop): SaleDirectory {
  const silent = { ...backend, subscribe: async () => async () => {} };
  return new SaleDirectory(silent, new Board(8), (id) => shop.isSale(id));
}

test('changes are learned even if their messages are lost; sales without changes are not read', async () => {
  await using shop = await Shop.open();
  const [sale, other] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
  const asked: string[] = [];
  let marks = 0;
  const watched = intercept(shop.backend, (call, [saleIds]) => {
    if (call === 'sales.changeCounter') marks++;
    if (call === 'sales.versions') asked.push(...(saleIds as string[]));
  });
  const directory = deafTo(watched, shop);
  await directory.start();
  try {
    for (const { id } of [sale, other]) await directory.lookup(id);
    await until(() => marks > 1, { what: 'a poll behind the first' });
    await shop.service.change(sale.id, { action: 'pause' }, BY);
    await until(() => directory.views.get(sale.id)?.record.state === 'paused', {
      what: 'the pause is known',
    });
    expect(asked).toContain(other.id);
    const seen = marks;
    await until(() => marks > seen + 1, { what: 'the poll under way is over' });
    asked.length = 0;
    await until(() => marks > seen + 4, { what: 'three more polls' });
    expect(asked).toEqual([]);
  } finally {
    await directory.stop();
  }
});

test('a sale whose creation was announced in vain is found as soon as the count of changes has moved', async () => {
  await using shop = await Shop.open();
  // What the directory remembers does not get old.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  onTestFinished(() => clock.mockRestore());
  let counted = 0;
  const watched = intercept(shop.backend, (call) => {
    if (call === 'sales.changeCounter') counted++;
  });
  const { open: hasAsked, opened: asked } = gate();
  const { open: answer, opened: answered } = gate();
  const silent = { ...watched, subscribe: async () => async () => {} };
  const directory = new SaleDirectory(silent, new Board(8), async (id) => {
    if (id !== 'slow') return false;
    // Postgres has looked before the sale was created, and its answer is late.
    hasAsked();
    await answered;
    return false;
  });
  await directory.start();
  try {
    expect(await directory.lookup('quick')).toBeUndefined();
    const late = directory.lookup('slow');
    await asked;
    for (const id of ['quick', 'slow']) await shop.sell({ id, stock: 10 });
    const seen = counted;
    // The first may have begun before the creation, and the second is over when the third begins.
    await until(() => counted >= seen + 3, { what: 'polls that have read the count' });
    answer();
    expect(await late).toBeUndefined();
    expect((await directory.lookup('quick'))?.record.sale.id).toBe('quick');
    await until(async () => (await directory.lookup('slow')) !== undefined, {
      what: 'the sale is found, and not remembered as unknown',
    });
  } finally {
    await directory.stop();
  }
});

test('purchases in a sale that the node does not know wait for one lookup; made-up ids are busy if too many wait', async () => {
  await using shop = await Shop.open();
  const { id } = await shop.sell({ stock: 10 });
  let reads = 0;
  const { open: free, opened: held } = gate();
  const watched = intercept(shop.backend, (call, [saleId]) => {
    if (call !== 'sales.read') return;
    if (saleId === id) reads++;
    return held;
  });
  const directory = deafTo(watched, shop);
  const crowd = Array.from({ length: 3_000 }, () => directory.lookup(id));
  // 16 are asked for, with that of the crowd; 1,000 wait.
  const madeUp = Array.from({ length: 1_016 }, (_, i) => directory.lookup(`made-up-${i}`));
  const last = madeUp.pop()!;
  await expect(last).rejects.toThrow('1000 lookups of sales are already waiting');
  free();
  const found = await Promise.all(crowd);
  expect(new Set(found.map((view) => view?.record.sale.id))).toEqual(new Set([id]));
  expect(reads).toBe(1);
  expect(new Set(await Promise.all(madeUp))).toEqual(new Set([undefined]));
});

test('after the connection for takes was lost, a node calls no sale sold out before it has asked Redis', async () => {
  const url = new URL(redisUrl());
  await using proxy = await TcpProxy.start(Number(url.port));
  url.port = String(proxy.port);
  await using shop = await Shop.open({ redis: url.href });
  const { id } = await shop.sell({ stock: 1, segments: 1 });
  const board = new Board(8);
  const directory = new SaleDirectory(shop.backend, board, (id) => shop.isSale(id));
  await directory.start();
  try {
    const { slot, record } = (await directory.lookup(id))!;
    board.close(slot, record.epoch, monotonicMs());
    expect(board.isClosed(slot)).toBe(true);
    proxy.cutAll();
    await until(() => !board.isClosed(slot), { what: 'the sale is open again' });
    expect(board.epoch(slot)).toBe(record.epoch);
  } finally {
    await directory.stop();
  }
});
