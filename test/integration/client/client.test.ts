/** The client against a real node: outcomes of both ports, and connections that are cut in between. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BuyerClient, OperatorClient } from '../../../src/client/index.ts';
import { until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { anyStore } from '../../support/nodes/stores.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';

let node: TestNode;
let operator: OperatorClient;

beforeAll(async () => {
  node = await startTestNode(await anyStore());
  operator = new OperatorClient({ url: node.opsUrl, token: node.opsToken, operator: 'ann' });
});
afterAll(() => node[Symbol.asyncDispose]());

const buyer = (name: string, url = node.publicUrl) =>
  new BuyerClient({ url, headers: { 'X-Buyer-Id': name } });

test('a sale from its creation to its verification', async () => {
  const created = await operator.createSale({ id: 'web', stock: 2, title: 'Front row' });
  expect(created).toMatchObject({ code: 'done', sale: { id: 'web', remaining: 2 } });
  const again = await operator.createSale({ id: 'web', stock: 2 });
  expect(again).toMatchObject({ code: 'sale_exists', status: 409 });

  const bought = await buyer('bob').purchase({ saleId: 'web' });
  if (bought.code !== 'committed') throw new Error(`bought nothing: ${bought.code}`);
  const repeated = await buyer('bob').purchase({ saleId: 'web', key: bought.key });
  expect(repeated).toEqual(bought);
  const more = await buyer('bob').purchase({ saleId: 'web' });
  expect(more).toMatchObject({ code: 'limit_reached', limit: 1, orderIds: [bought.orderId] });
  const noted = { saleId: 'web', reference: 'cart-1' };
  expect(await buyer('cy').purchase(noted)).toMatchObject({ code: 'operators_only' });
  expect(await buyer('cy').purchase({ saleId: 'none' })).toMatchObject({ code: 'unknown_sale' });
  expect(await buyer('cy').sale('web')).toMatchObject({ code: 'found', sale: { remaining: 1 } });
  expect(await buyer('cy').order(bought.orderId)).toMatchObject({ code: 'forbidden' });
  expect(await buyer('bob').order(bought.orderId)).toMatchObject({
    code: 'found',
    order: { status: 'unpaid' },
  });
  expect(await buyer('bob').pay(bought.orderId, 'card')).toMatchObject({ code: 'operators_only' });

  expect(await operator.pay(bought.orderId, 'card')).toMatchObject({
    code: 'done',
    order: { status: 'paid' },
  });
  expect(await operator.cancel(bought.orderId)).toMatchObject({ code: 'wrong_status', orderStatus: 'paid' });
  expect(await operator.refund(bought.orderId, 'moved')).toMatchObject({ order: { status: 'refunded' } });
  expect(await operator.changeSale('web', { action: 'top-up', units: 3 })).toMatchObject({ code: 'done' });
  await until(
    async () => {
      expect(await operator.sale('web')).toMatchObject({ sale: { remaining: 5 } });
      return true;
    },
    { what: 'the unit is back' },
  );
  const withdrawn = await operator.changeSale('web', { action: 'withdraw', units: 100 });
  expect(withdrawn).toMatchObject({ code: 'insufficient_stock', remaining: 5 });
  expect(await operator.ledger('web')).toMatchObject({ ledger: [{ actor: 'ann' }, { action: 'top-up' }] });
  const first = await operator.ledger('web', { limit: 1 });
  if (first.code !== 'found') throw new Error(`no ledger: ${first.code}`);
  expect(first).toMatchObject({ ledger: [{ action: 'create' }], next: first.ledger[0]!.id });
  const second = await operator.ledger('web', { after: first.next, signal: AbortSignal.timeout(60_000) });
  expect(second).toMatchObject({ ledger: [{ action: 'top-up' }] });
  expect(second).not.toHaveProperty('next');
  expect(await operator.verify('web')).toMatchObject({ code: 'found', report: { ok: true } });
  expect(await operator.rebalance('web', true)).toMatchObject({ code: 'found', dryRun: true });
  expect(await operator.recovery('web')).toMatchObject({ code: 'found', recovery: { state: 'none' } });
});

test('a queue: its places, and what operators do with its offers', async () => {
  const startsAt = new Date(Date.now() + 3_600_000).toISOString();
  await operator.createSale({ id: 'line', stock: 2, queue: 'draw', presenceSeconds: 0, startsAt });
  expect(await operator.changeQueue('line', { action: 'pause' })).toMatchObject({
    code: 'found',
    queue: { stopped: true },
  });
  expect(await buyer('ann').takePlace('line')).toMatchObject({ code: 'found', place: { number: 1 } });
  expect(await operator.drawFile('line')).toMatchObject({ code: 'wrong_state' });
  expect(await operator.queue('line', true)).toMatchObject({
    code: 'found',
    queue: { order: 'draw', phase: 'before', places: 1, counts: { waiting: 1 } },
  });
  const now = { action: 'window', startsAt: '2026-01-01T00:00:00Z' } as const;
  expect(await operator.changeSale('line', now)).toMatchObject({ code: 'done' });
  expect(await operator.changeQueue('line', { action: 'hand-out', offers: 1 })).toMatchObject({
    queue: { allowed: 1 },
  });
  const page = () => operator.places('line', { state: 'offered', limit: 1 });
  await until(async () => ((await page()) as { readonly places: readonly unknown[] }).places.length === 1, {
    what: 'the offer',
  });
  expect(await operator.places('line', { buyer: 'ann' })).toMatchObject({
    code: 'found',
    places: [{ number: 1, buyerId: 'ann', state: 'offered' }],
  });
  const file = await operator.drawFile('line');
  if (file.code !== 'found') throw new Error(`no file: ${file.code}`);
  expect(
    file.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { version: 1, sale: 'line', entries: 1 },
    { rank: 1, number: 1 },
  ]);
  expect(await operator.queue('web')).toMatchObject({ code: 'wrong_state' });
});

test('a place: it is taken, read, offered and left', async () => {
  await operator.createSale({ id: 'places', stock: 1, queue: 'fifo', presenceSeconds: 0 });
  const [ann, bob] = [buyer('ann'), buyer('bob')];
  expect(await ann.place('places')).toMatchObject({ code: 'no_place', status: 404 });
  expect(await ann.leave('places')).toMatchObject({ code: 'no_place', status: 404 });
  expect(await ann.place('none')).toMatchObject({ code: 'unknown_sale' });
  expect(await ann.takePlace('places')).toMatchObject({ code: 'found', place: { number: 1 } });
  const taken = await bob.takePlace('places');
  if (taken.code !== 'found') throw new Error(`no place: ${taken.code}`);
  const { placeToken } = taken.place;
  const waiting = { code: 'found', place: { saleId: 'places', number: 2, state: 'waiting', quantity: 1 } };
  for (const token of [undefined, placeToken])
    expect(await bob.place('places', token)).toMatchObject(waiting);
  // The token of another buyer's place names nothing.
  expect(await buyer('cy').place('places', placeToken)).toMatchObject({ code: 'no_place' });

  const offered = (of: BuyerClient, token?: string) =>
    until(
      async () => {
        const found = await of.place('places', token);
        return found.code === 'found' && found.place.offer;
      },
      { what: 'an offer' },
    );
  await offered(ann);
  const left = { code: 'found', place: { number: 1, state: 'left', reason: 'asked' } };
  expect(await ann.leave('places')).toMatchObject(left);
  expect(await ann.place('places')).toMatchObject(left);
  const offer = await offered(bob, placeToken);
  if (!offer) throw new Error('no offer');
  const bought = { saleId: 'places', quantity: offer.quantity, purchaseToken: offer.token };
  expect(await bob.purchase(bought)).toMatchObject({ code: 'committed', orderId: offer.orderId });
  expect(await bob.place('places', placeToken)).toMatchObject({ place: { number: 2, state: 'bought' } });
});

test('a buyer is erased', async () => {
  await operator.createSale({ id: 'left', stock: 5 });
  const bought = await buyer('dora').purchase({ saleId: 'left' });
  if (bought.code !== 'committed') throw new Error(`bought nothing: ${bought.code}`);
  const wish = { buyerId: 'dora', saleId: 'left', reason: 'asked by letter' };
  const later = await operator.eraseBuyer(wish);
  expect(later).toMatchObject({ code: 'found', erased: [], waiting: [{ saleId: 'left', until: 'closed' }] });
  expect(await buyer('dora').order(bought.orderId)).toMatchObject({ code: 'found' });
  const now = await operator.eraseBuyer({ ...wish, running: true });
  expect(now).toMatchObject({ code: 'found', erased: [{ saleId: 'left', orders: 1 }], waiting: [] });
  expect(await buyer('dora').order(bought.orderId)).toMatchObject({ code: 'forbidden' });
  const shown = await operator.order(bought.orderId);
  expect(shown).toMatchObject({ order: { buyerId: expect.stringMatching(/^erased-/), status: 'unpaid' } });
  expect(await operator.ledger('left')).toMatchObject({
    ledger: [{}, { action: 'erase', actor: 'ann', reason: 'asked by letter', applied: true }],
  });
  expect(await operator.verify('left')).toMatchObject({ report: { ok: true } });
});

test('an erasure that is not valid is refused, and the answer does not repeat the id', async () => {
  const wrong = [
    { buyerId: 'dora smith' },
    { buyerId: 'dora-smith', reason: 'letter of dora-smith' },
    { buyerId: 'dora-smith', runing: true },
  ];
  for (const wish of wrong) {
    const refused = await operator.eraseBuyer(wish as never);
    expect(refused).toMatchObject({ code: 'invalid_request', faults: [{}] });
    expect(JSON.stringify(refused)).not.toMatch(/smith/);
  }
  const unknown = await operator.eraseBuyer({ buyerId: 'dora', saleId: 'none' });
  expect(unknown).toMatchObject({ code: 'unknown_sale', status: 404 });
});

test('the state of a node', async () => {
  expect(await operator.healthz()).toEqual({ code: 'found', status: 'ok' });
  expect(await operator.readyz()).toMatchObject({ code: 'found', status: 'ready' });
  expect(await operator.metrics()).toMatchObject({ text: expect.stringContaining('stockade_') });
  expect(await operator.sales()).toMatchObject({ code: 'found', sales: expect.any(Array) });
  expect(await operator.sales({ since: '2999-01-01T00:00:00+01:00' })).toEqual({ code: 'found', sales: [] });
  expect(await operator.sales({ until: '2999-01-01' })).toMatchObject({ code: 'invalid_request' });
  expect(await operator.refundsDue('web')).toMatchObject({ code: 'found', orders: [] });
  expect(await operator.refundsDue('web', { limit: 1_001 })).toMatchObject({ code: 'invalid_request' });
  expect(await operator.deadLetters()).toEqual({ code: 'found', total: 0, dead: [] });
  expect(await operator.deadLetters({ after: 'x' })).toMatchObject({ code: 'invalid_request' });
  const stranger = new OperatorClient({ url: node.opsUrl, token: 'not-the-token' });
  expect(await stranger.sales()).toMatchObject({ code: 'unauthenticated', reason: 'invalid' });
});

test('a client of operators that is given the public port is told so', async () => {
  await operator.createSale({ id: 'wrong-port', stock: 1 });
  const lost = new OperatorClient({ url: node.publicUrl, token: node.opsToken });
  const detail = expect.stringMatching(/public port, for buyers.*ops port/);
  expect(await lost.sales()).toMatchObject({ code: 'not_found', detail });
  expect(await lost.changeSale('wrong-port', { action: 'pause' })).toMatchObject({
    ...{ code: 'method_not_allowed', detail },
  });
  // Buyers see less of a sale than operators do.
  await expect(lost.sale('wrong-port')).rejects.toThrow("is this the address of Stockade's port?");
});

test('buyers have one order each although their connections were cut', async () => {
  await operator.createSale({ id: 'cut', stock: 100, perBuyerLimit: 5 });
  const proxy = await TcpProxy.start(Number(new URL(node.publicUrl).port));
  const cutting = setInterval(() => proxy.cutAll(), 40);
  const names = Array.from({ length: 20 }, (_, i) => `cut-${i}`);
  const through = proxy.through(node.publicUrl);
  const outcomes = await Promise.all(names.map((name) => buyer(name, through).purchase({ saleId: 'cut' })));
  clearInterval(cutting);
  await proxy.stop();
  // Unknown purchases are repeated with their keys, without faults.
  for (const [i, { key }] of outcomes.entries()) {
    const settled = await buyer(names[i]!).purchase({ saleId: 'cut', key });
    expect(settled).toMatchObject({ code: 'committed', key });
  }
  expect(await operator.sale('cut')).toMatchObject({ sale: { remaining: 80, committedOrders: 20 } });
});
