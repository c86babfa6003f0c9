/** The example of a shop's page in a browser: live stock, every outcome of a purchase, and the buyer's orders. */
import type { Browser, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
// @ts-expect-error The example is JavaScript.
import { OUTCOMES, STATUSES } from '../../../examples/shop-page/page/outcomes.js';
import type { ProblemCode } from '../../../src/http/server/replies/problem-kinds.ts';
import { ApiDescription, type Schema } from '../../fuzz/description.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { openBrowser, violationsOn } from '../../support/pages/console-browser.ts';
import { ExampleShop } from '../../support/pages/shop-page.ts';
import { isRelease } from '../../support/tier.ts';

const api = ApiDescription.read('public');
const codesOf = (operation: string) =>
  [...api.operations.find(({ id }) => id === operation)!.codes.values()].flat() as ProblemCode[];
const REFUSALS = codesOf('buy');
const HOUR_MS = 3_600_000;

let shop: ExampleShop;
let browser: Browser;

beforeAll(async () => {
  [shop, browser] = await Promise.all([
    ExampleShop.open({ CHALLENGE: 'pow', CHALLENGE_BITS: '8' }),
    openBrowser(),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await shop?.node.stop();
  await shop?.[Symbol.asyncDispose]();
});

const sell = (spec: Record<string, unknown> = {}) => shop.sell(spec);
const change = (saleId: string, action: 'pause' | 'resume' | 'close') =>
  shop.node.ops.change(saleId, { action }, BY);
const left = async (saleId: string) => (await shop.node.ops.show(saleId)).remaining;

test('the page has words for every outcome of a purchase, and every status of an order', () => {
  const codes = [...REFUSALS, ...codesOf('getPurchaseToken'), 'committed', 'accepted'];
  expect(Object.keys(OUTCOMES).sort()).toEqual([...new Set(codes)].sort());
  for (const { tone, title, text } of Object.values<Record<string, unknown>>(OUTCOMES)) {
    expect(['good', 'info', 'warn', 'bad']).toContain(tone);
    expect(title && text).toBeTruthy();
  }
  const { properties } = api.resolve<Schema>({ $ref: '#/components/schemas/Order' });
  const statuses = properties!.status!.enum as string[];
  expect(Object.keys(STATUSES).sort()).toEqual([...statuses].sort());
});

describe('with a real node', () => {
  test('what is left follows the purchases of others; buying, the limit, paying, cancelling', async () => {
    const saleId = await sell({ perBuyerLimit: 2, payWithinSeconds: 3_600 });
    await using visit = await shop.visit(browser, saleId);
    await visit.shows('h1', 'Front row');
    await visit.shows('#price', '49');
    await visit.shows('#stock', '10 left');
    await using other = await shop.visit(browser, saleId);
    await other.page.locator('#quantity').selectOption('2');
    await other.buy();
    await other.told('It is yours');
    await visit.shows('#stock', '8 left');
    await visit.buy();
    await visit.told('It is yours');
    await visit.shows('#list .badge', 'to be paid');
    expect(await violationsOn(visit.page)).toEqual([]);
    await visit.shows('[data-until]', /Pay within (59|60) min|Pay within 1 h/);
    await visit.page.getByRole('button', { name: /^Pay order/ }).click();
    await visit.shows('#said', 'is paid');
    await visit.shows('#list .is-paid', 'paid');
    await visit.buy();
    await visit.told('It is yours');
    await visit.buy();
    await visit.told('You have all that one buyer may have');
    await visit.page.getByRole('button', { name: /^Cancel order/ }).click();
    await visit.shows('#said', 'is cancelled');
    await visit.shows('#list .badge', 'cancelled');
    await until(async () => (await left(saleId)) === 7, { what: 'the unit is for sale again' });
    await visit.shows('#stock', '7 left');
    await visit.page.reload();
    await visit.shows('#list .badge', 'cancelled');
    expect([...visit.complaints, ...other.complaints]).toEqual([]);
  });

  if (isRelease) {
    test('the button becomes usable when the node says that the sale is open', async () => {
      const saleId = await sell({ startsAt: new Date(Date.now() + 4_000).toISOString() });
      await using visit = await shop.visit(browser, saleId);
      await visit.buy();
      await visit.told('It is yours');
    });
  }

  if (isRelease) {
    test('a sale that asks for a token: the page solves the challenge, and buys', async () => {
      const saleId = await sell({ requireToken: true });
      await using visit = await shop.visit(browser, saleId);
      await visit.buy();
      await visit.told('It is yours');
      expect(visit.complaints).toEqual([]);
    });
  }

  test('a lost answer is asked for again with the same key, and the unit is bought once', async () => {
    const saleId = await sell();
    await using visit = await shop.visit(browser, saleId);
    const keys: (string | undefined)[] = [];
    await visit.page.route('**/v1/sales/*/orders', async (route: Route) => {
      if (route.request().method() !== 'POST') return route.fallback();
      keys.push(route.request().headers()['idempotency-key']);
      if (keys.length > 2) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await visit.buy();
    await visit.told('It is yours');
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(await left(saleId)).toBe(9);
  });

  if (isRelease) {
    test('a reload in the middle of a purchase asks with the same key how it ended', async () => {
      const saleId = await sell();
      await using visit = await shop.visit(browser, saleId);
      const keys: (string | undefined)[] = [];
      let isReloaded = false;
      visit.page.on('framenavigated', () => {
        isReloaded = true;
      });
      await visit.page.route('**/v1/sales/*/orders', async (route: Route) => {
        if (route.request().method() !== 'POST') return route.fallback();
        keys.push(route.request().headers()['idempotency-key']);
        if (isReloaded) return route.continue();
        // The node sells, and the page never hears of it.
        if (keys.length === 1) await route.fetch();
      });
      await visit.buy();
      await until(async () => (await left(saleId)) === 9, { what: 'it is bought' });
      await visit.page.reload();
      await visit.told('It is yours');
      expect(await left(saleId)).toBe(9);
      expect(new Set(keys).size).toBe(1);
    });
  }

  // The test above has the page’s words for each outcome, and the client’s tests meet each outcome at a node.
  if (isRelease) {
    test('too many, and then sold out; a unit that comes back is shown', async () => {
      const saleId = await sell({ stock: 3, perBuyerLimit: 2 });
      await using first = await shop.visit(browser, saleId);
      await using second = await shop.visit(browser, saleId);
      await using third = await shop.visit(browser, saleId);
      for (const visit of [first, second]) await visit.page.locator('#quantity').selectOption('2');
      await first.buy();
      await first.told('It is yours');
      await second.buy();
      await second.told('Not enough left');
      await second.shows('#outcome p', 'Only 1 left');
      await second.page.locator('#quantity').selectOption('1');
      await second.buy();
      await second.told('It is yours');
      await third.shows('#state', 'Sold out');
      await third.buy();
      await third.told('Sold out');
      await second.page.getByRole('button', { name: /^Cancel order/ }).click();
      await third.shows('#state', 'Open');
      await third.shows('#stock', '1 left');
      await third.buy();
      await third.told('It is yours');
    });

    test('before the sale, while it is paused, and after it', async () => {
      const soon = await sell({ startsAt: new Date(Date.now() + HOUR_MS).toISOString() });
      await using early = await shop.visit(browser, soon);
      await early.shows('#state', 'Not open yet');
      await early.shows('#window', /Opens in (59|60) min|Opens in 1 h/);
      expect(await early.page.locator('#buy').isDisabled()).toBe(true);
      const saleId = await sell({ endsAt: new Date(Date.now() + HOUR_MS).toISOString() });
      await using visit = await shop.visit(browser, saleId);
      await visit.shows('#window', /Ends in (59|60) min|Ends in 1 h/);
      await change(saleId, 'pause');
      await visit.shows('#state', 'Paused');
      expect(await visit.page.locator('#buy').isDisabled()).toBe(true);
      await change(saleId, 'resume');
      await visit.shows('#state', 'Open');
      await change(saleId, 'close');
      await visit.shows('#state', 'Over');
      await visit.shows('#live', 'not live');
      expect([...early.complaints, ...visit.complaints]).toEqual([]);
    });

    test('an order that is not paid in time', async () => {
      const saleId = await sell({ payWithinSeconds: 1 });
      await using visit = await shop.visit(browser, saleId);
      await visit.buy();
      await visit.told('It is yours');
      await visit.shows('#list .badge', 'not paid in time');
      expect(await visit.page.getByRole('button', { name: /^Pay order/ }).count()).toBe(0);
    });

    test('an order that is paid late and replaced', async () => {
      const saleId = await sell({ payWithinSeconds: 3 });
      await using visit = await shop.visit(browser, saleId);
      await visit.page.route('**/orders/*/pay', async (route: Route) => {
        const orderId = /orders\/(\d+)/.exec(route.request().url())![1]!;
        const expired = async () =>
          (await shop.node.opsRequest(`/v1/orders/${orderId}`)).body.status === 'expired';
        await until(expired, { what: 'the time to pay is over' });
        await route.continue();
      });
      await visit.buy();
      await visit.page.getByRole('button', { name: /^Pay order/ }).click();
      await visit.shows(
        '#said',
        /^Order (\d+) was paid late\. Order (?!\1)\d+ takes its place and is paid\./,
      );
    });

    test('there is no such sale', async () => {
      await using visit = await shop.visit(browser, 'none');
      await visit.told('There is no such sale');
      expect(await visit.page.locator('#buy').isDisabled()).toBe(true);
    });
  }
});

if (isRelease) {
  describe('with answers that are hard to get from a node', () => {
    test('accepted: the order is shown until it is confirmed', async () => {
      const saleId = await sell();
      await using visit = await shop.visit(browser, saleId);
      const placed = { orderId: '662207995405477814', status: 'accepted', saleId, quantity: 1 };
      await visit.answering(() => ({ status: 202, body: JSON.stringify(placed) }));
      await visit.buy();
      await visit.told('Your order is accepted');
    });

    test('a broken connection', async () => {
      const saleId = await sell();
      await using visit = await shop.visit(browser, saleId);
      const keys = await visit.answering(() => 'cut');
      await visit.buy();
      await visit.told('We do not know yet whether you got it');
      expect(new Set(keys).size).toBe(1);
      await visit.page.unrouteAll({ behavior: 'ignoreErrors' });
      await visit.page.getByRole('button', { name: 'Try again' }).click();
      await visit.told('It is yours');
    });
  });

  test.each([
    ['EUR', '€49.00'],
    ['JPY', '¥4,900'],
    ['KWD', 'KWD\u00a04.900'],
  ])('a price of 4900 in %s is %s', async (currency, price) => {
    await using visit = await shop.visit(browser, await sell({ currency }));
    await visit.shows('#price', price);
  });
}

if (isRelease) {
  test('a payment or a cancellation whose answer is lost: the buyer is told, and may ask again', async () => {
    const saleId = await sell({ perBuyerLimit: 2, payWithinSeconds: 3_600 });
    await using visit = await shop.visit(browser, saleId);
    await visit.buy();
    await visit.page.route('**/orders/*/pay', (route: Route) => route.abort());
    await visit.page.route('**/v1/orders/*/cancel', (route: Route) => route.abort());
    await visit.page.getByRole('button', { name: /^Pay order/ }).click();
    await visit.shows('#said', /^No answer came: order \d+ may be paid\. .*try again/);
    await visit.page.getByRole('button', { name: /^Cancel order/ }).click();
    await visit.shows('#said', /^No answer came: order \d+ may be cancelled\. .*try again/);
    await visit.page.unrouteAll({ behavior: 'ignoreErrors' });
    await visit.page.getByRole('button', { name: /^Pay order/ }).click();
    await visit.shows('#said', 'is paid');
    expect(visit.complaints).toEqual([]);
  });

  test('a page that was loaded while the node was away shows the buyer’s orders once it is back', async () => {
    const saleId = await sell({ payWithinSeconds: 3_600 });
    await using visit = await shop.visit(browser, saleId);
    await visit.buy();
    await visit.shows('#list .badge', 'to be paid');
    await visit.page.route('**/v1/sales/**', (route: Route) => route.abort());
    // Final, so that the page does not ask again by itself.
    await visit.page.route('**/v1/sales/*/orders', (route: Route) =>
      route.fulfill({
        status: 429,
        body: JSON.stringify({ code: 'rate_limited', title: 'Too many requests', status: 429 }),
        headers: {
          'access-control-allow-origin': shop.origin,
          'access-control-allow-credentials': 'true',
        },
      }),
    );
    const refused = visit.page.waitForResponse((answer) => answer.status() === 429);
    await visit.page.reload();
    await refused;
    await visit.shows('#live', 'connecting again');
    await visit.page.unrouteAll({ behavior: 'ignoreErrors' });
    await visit.shows('#list .badge', 'to be paid');
  });

  test('a page that there is no room to listen for reads the sale, and buys', async () => {
    const saleId = await sell();
    await using visit = await shop.visit(browser, saleId);
    const full = JSON.stringify({ code: 'busy', title: 'Too many listen', status: 503 });
    await visit.page.route('**/v1/sales/*/events', (route: Route) =>
      route.fulfill({ status: 503, body: full, headers: { 'access-control-allow-origin': '*' } }),
    );
    await visit.page.reload();
    await visit.shows('#stock', '10 left');
    await visit.buy();
    await visit.told('It is yours');
    await visit.shows('#stock', '9 left');
  });
}

test('the page can be used with the keyboard alone, and says what happens to a screen reader', async () => {
  const saleId = await sell({ payWithinSeconds: 3_600 });
  await using visit = await shop.visit(browser, saleId);
  await visit.page.locator('#buy:enabled').waitFor();
  const focused = () => visit.page.evaluate('document.activeElement.textContent') as Promise<string>;
  await visit.page.keyboard.press('Tab');
  expect(await focused()).toBe('Buy');
  await visit.page.keyboard.press('Enter');
  await visit.told('It is yours');
  await visit.page.locator('#buy:enabled').focus();
  await visit.page.keyboard.press('Tab');
  expect(await focused()).toBe('Pay');
  await visit.page.keyboard.press('Tab');
  expect(await focused()).toBe('Cancel');
  await visit.page.keyboard.press('Space');
  await visit.shows('#said', 'is cancelled');
  for (const id of ['state', 'outcome', 'said'])
    expect(await visit.page.locator(`#${id}`).getAttribute('role')).toBe('status');
});
