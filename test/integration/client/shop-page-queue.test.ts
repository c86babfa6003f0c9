/** The example of a shop's page in a browser, for a sale with a queue: from the lobby to the order, and how a place may end. */
import { mkdirSync } from 'node:fs';
import type { Browser, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error The example is JavaScript.
import { OUTCOMES } from '../../../examples/shop-page/page/outcomes.js';
// @ts-expect-error The example is JavaScript.
import { estimateWords, PLACE_REFUSALS } from '../../../examples/shop-page/page/queue-words.js';
import type { Place } from '../../../src/client/index.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { kindOf } from '../../../src/http/server/replies/problem-kinds.ts';
import { ApiDescription } from '../../fuzz/description.ts';
import { BY } from '../../support/author.ts';
import { openBrowser, violationsOn } from '../../support/pages/console-browser.ts';
import { ExampleShop, type ShopVisit } from '../../support/pages/shop-page.ts';
import { isRelease } from '../../support/tier.ts';

const HOUR_MS = 3_600_000;

let shop: ExampleShop;
let browser: Browser;

beforeAll(async () => {
  [shop, browser] = await Promise.all([ExampleShop.open(), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await shop?.node.stop();
  await shop?.[Symbol.asyncDispose]();
});

const sell = (spec: Record<string, unknown> = {}) =>
  shop.sell({
    stock: 1,
    queue: 'fifo',
    presenceSeconds: 60,
    ...spec,
  });

/** With SHOP_PAGE_PICTURES in the environment, pictures of the page are put into that folder. */
const PICTURES = process.env.SHOP_PAGE_PICTURES;

/** The states that are looked at in `npm test`. */
const LOOKED_AT = ['lobby', 'offer'];

/** The page is accessible as it is now, and not wider than its window. */
async function look({ page }: ShopVisit, what: string) {
  if (!isRelease && !LOOKED_AT.includes(what)) return;
  if (PICTURES !== undefined) {
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/queue-${what}.png`, fullPage: true });
  }
  expect(await violationsOn(page), what).toEqual([]);
  const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect(overflow, `${what}: pixels beyond the window`).toBeLessThanOrEqual(0);
}

const press = ({ page }: ShopVisit, name: string) => page.getByRole('button', { name, exact: true }).click();

function codesOf(...names: string[]): string[] {
  const { operations } = ApiDescription.read('public');
  return operations.filter(({ id }) => names.includes(id)).flatMap(({ codes }) => [...codes.values()].flat());
}

test('a first visit makes one buyer, and no request of it is refused', async () => {
  await using visit = await shop.visit(browser, await sell());
  await visit.page.locator('#buy:enabled').waitFor();
  expect(visit.answers.filter((answer) => answer.startsWith('POST /session'))).toEqual(['POST /session 200']);
  expect(visit.answers.filter((answer) => / [45]\d\d$/.test(answer))).toEqual([]);
});

test('the page has words for every refusal of a place, and for estimates', () => {
  const known = [...Object.keys(PLACE_REFUSALS), ...Object.keys(OUTCOMES)];
  const codes = codesOf('takePlace', 'readPlace', 'leavePlace', 'followPlace');
  expect(codes.length).toBeGreaterThan(0);
  expect(codes.filter((code) => !known.includes(code))).toEqual([]);
  expect(estimateWords(0, 0)).toBe('about 10 seconds, give or take 10');
  expect(estimateWords(95, 12)).toBe('about 100 seconds, give or take 10');
  expect(estimateWords(180, 41)).toBe('about 3 minutes, give or take 1');
  expect(estimateWords(9_000, 1_500)).toBe('about 3 hours, give or take 1');
  expect(estimateWords(300, undefined)).toBe('about 5 minutes');
});

test('the lobby, a place that stays over a reload, an offer that goes on, and the purchase', async () => {
  const startsAt = new Date(Date.now() + HOUR_MS).toISOString();
  const saleId = await sell({ startsAt, offerSeconds: 300, payWithinSeconds: 3_600 });
  await using first = await shop.visit(browser, saleId);
  await using second = await shop.visit(browser, saleId, { width: 360, scheme: 'dark' });
  await first.shows('#window', /Opens in (59|60) min|Opens in 1 h/);
  await first.buy();
  await first.shows('#queue-title', 'You have place 1');
  await first.shows('#queue-text', 'You are the first');
  await second.page.locator('#buy:enabled').waitFor();
  await second.page.keyboard.press('Tab');
  await second.page.keyboard.press('Enter');
  await second.shows('#queue-title', 'You have place 2');
  await second.shows('#queue-figure', '1 person is ahead of you');
  expect(await second.page.evaluate('document.activeElement.id')).toBe('queue-title');
  await look(second, 'lobby');
  await second.page.reload();
  await second.shows('#queue-title', 'You have place 2');
  await shop.node.ops.change(saleId, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
  await first.shows('#queue-title', 'It is your turn');
  await first.shows('#queue-figure', /[45] min.* left to buy/);
  await first.shows('#spoken', 'It is your turn');
  expect(await first.page.title()).toBe('Your turn! Front row');
  await look(first, 'offer');
  await press(first, 'No, give it back');
  await look(first, 'sure');
  await press(first, 'Give it back');
  await first.shows('#queue-title', 'You have left the queue');
  await second.shows('#queue-title', 'It is your turn');
  await look(second, 'offer-dark');
  await second.page.reload();
  await press(second, 'Buy 1 unit');
  await second.told('It is yours');
  expect(await second.page.locator('#spoken').textContent(), 'nothing is said of a turn that is over').toBe(
    '',
  );
  await second.shows('#list .badge', 'to be paid');
  for (const part of ['#queue', '#form']) await second.page.locator(part).waitFor({ state: 'hidden' });
  await look(second, 'bought');
  await first.buy();
  await first.shows('#queue-hint', 'Keep this page open');
  await shop.node.ops.change(saleId, { action: 'close' }, BY);
  await first.shows('#queue-title', 'The sale ended before it was your turn');
  await look(first, 'closed');
  expect([...first.complaints, ...second.complaints]).toEqual([]);
});

function offered(ms: number): Partial<Place> {
  const expiresAt = new Date(Date.now() + ms).toISOString();
  return { state: 'offered', quantity: 2, offer: { token: 'o', orderId: '1', quantity: 1, expiresAt } };
}

const ENDS: readonly [Partial<Place>, string][] = [
  [{ state: 'lapsed' }, 'Your time to buy is over'],
  [{ state: 'left', reason: 'absent' }, 'Your turn came while you were away'],
  [{ state: 'left', reason: 'limit' }, 'You have all that one buyer may have'],
  [{ state: 'closed' }, 'The queue has been removed'],
];

// The test above has the page’s words for each refusal.
if (isRelease) {
  test('a place that shrinks, all ways in which it may end, and a connection that is lost', async () => {
    const saleId = await sell({ perBuyerLimit: 4 });
    await using visit = await shop.visit(browser, saleId, { width: 360 });
    const { page } = visit;
    const told = await MadeUp.of(visit);
    told.isFull = true;
    await visit.buy();
    await visit.told('The queue is full');
    await look(visit, 'full');
    told.isFull = false;
    told.place = { state: 'waiting', rank: 140, ahead: 130, estimateSeconds: 180, estimateErrorSeconds: 41 };
    await press(visit, 'Try again');
    await visit.shows('#queue-figure', '130 people are ahead of you');
    await visit.shows('#queue-text', 'in about 3 minutes, give or take 1');
    await visit.shows('#spoken', '130 people are ahead of you');
    told.place = { ...told.place, ahead: 125 };
    await visit.shows('#queue-number', '125');
    expect(await page.locator('#spoken').textContent(), 'it does not chatter').toContain('130 people');
    told.place = { ...told.place, ahead: 40, estimateSeconds: 60, estimateErrorSeconds: 12 };
    await visit.shows('#spoken', '40 people are ahead of you');
    await look(visit, 'waiting');
    told.isCut = true;
    await visit.shows('#spoken', 'The connection is lost');
    await look(visit, 'lost');
    told.isCut = false;
    await page.locator('#queue-lost').waitFor({ state: 'hidden' });
    told.place = { state: 'hopeless', rank: 140, ahead: 20 };
    await visit.shows('#queue-title', 'It may not be enough for you');
    await look(visit, 'hopeless');
    await press(visit, 'Leave the queue');
    told.place = offered(HOUR_MS);
    await visit.shows('#queue-text', 'You asked for 2. 1 unit could be set aside');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    told.place = offered(9_000);
    await visit.shows('#spoken', 'seconds left to buy');
    await look(visit, 'less');
    for (const [place, title] of ENDS) {
      told.place = place;
      await visit.shows('#queue-title', title);
      await look(visit, `${place.state}-${place.reason ?? ''}`);
      told.newPlace = { state: 'waiting', rank: 9, ahead: 0 };
      await visit.buy();
      await visit.shows('#queue-title', 'You are next');
    }
    expect(visit.complaints).toEqual([]);
  });
}

/** Answers each request for the place, and each listener, instead of the node. */
class MadeUp {
  place: Partial<Place> = {};
  /** What it becomes when the buyer asks for a new one. Until then the page must not see it. */
  newPlace: Partial<Place> | undefined;
  isFull = false;
  isCut = false;

  static async of({ page }: ShopVisit): Promise<MadeUp> {
    const made = new MadeUp();
    await page.route(/\/place(\/events)?$/, (route: Route) => made.#answer(route));
    return made;
  }

  #answer(route: Route): Promise<void> {
    const request = route.request();
    if (request.method() === 'OPTIONS') return route.fallback();
    if (this.isCut) return route.abort();
    if (request.method() === 'POST') {
      this.place = this.newPlace ?? this.place;
      this.newPlace = undefined;
    }
    const place = { saleId: 'x', number: 1, quantity: 1, placeToken: 'p', ...this.place };
    const refusal = problem('queue_full', kindOf('queue_full').example as never);
    if (this.isFull) return this.#send(route, refusal.status, 'application/problem+json', refusal.body);
    const json = JSON.stringify(place);
    if (!request.url().endsWith('/events')) return this.#send(route, 200, 'application/json', json);
    // The stream ends at once, so the next one tells what is true then.
    const stream = `retry: 200\nevent: place\ndata: ${json}\n\n`;
    return this.#send(route, 200, 'text/event-stream', stream);
  }

  #send(route: Route, status: number, type: string, body: string): Promise<void> {
    const headers = {
      'content-type': type,
      'access-control-allow-origin': shop.origin,
      'access-control-allow-credentials': 'true',
    };
    return route.fulfill({ status, body, headers });
  }
}
