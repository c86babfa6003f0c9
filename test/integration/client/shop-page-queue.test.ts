/** The example of a shop's page in a browser, for a sale with a queue: from the lobby to the order, and how a place may end. */
import { execFileSync } from 'node:child_process';
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
import { until } from '../../support/fixtures.ts';
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

/** The terms and values of the part about the draw, and the commands in it. */
async function drawPart({ page }: ShopVisit) {
  const facts = await page.evaluate<[string, string][]>(
    "[...document.querySelectorAll('#draw-facts > div')].map((row) => [...row.children].map((part) => part.textContent))",
  );
  return {
    facts: Object.fromEntries(facts),
    commands: await page.locator('#draw-how code').allTextContents(),
  };
}

test('a draw: its commitment, the buyer’s entry, and after it what proves that entry in the file', async () => {
  const startsAt = new Date(Date.now() + HOUR_MS).toISOString();
  const saleId = await sell({ stock: 1, queue: 'draw', startsAt });
  await using first = await shop.visit(browser, saleId);
  await using second = await shop.visit(browser, saleId, { width: 390 });
  const { commitment } = (await shop.node.opsRequest(`/v1/sales/${saleId}/queue`)).body.draw;
  await first.page.getByText('How the draw can be checked').click();
  expect((await drawPart(first)).facts).toEqual({ Commitment: commitment });
  await look(first, 'draw-without-place');
  for (const visit of [first, second]) {
    await visit.buy();
    await visit.shows('#queue-title', 'You take part in the draw');
  }
  await second.page.getByText('How the draw can be checked').click();
  const salt = expect.stringMatching(/^[0-9a-f]{32}$/);
  const before = (await drawPart(second)).facts;
  expect(before).toEqual({ Commitment: commitment, 'Your number': '2', 'Your salt': salt });
  await look(second, 'draw-lobby');
  await second.page.reload();
  await second.page.getByText('How the draw can be checked').click();
  await second.shows('#draw-how', 'This browser keeps both for you');
  expect((await drawPart(second)).facts).toEqual(before);
  await shop.node.ops.change(saleId, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
  await second.shows('#draw-facts', 'Seed');
  await second.shows('#queue-title', /It is your turn|You are next|It may not be enough/);
  const file = await fetch(`${shop.node.opsUrl}/v1/sales/${saleId}/queue/draw`, {
    headers: { authorization: `Bearer ${shop.node.opsToken}` },
  });
  const [head, ...entries] = (await file.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const own = entries.find(({ number }) => number === 2);
  const { facts, commands } = await drawPart(second);
  expect(facts).toEqual({
    ...before,
    Seed: head.seed,
    Entries: '2',
    'Hash of all entries': head.entriesHash,
    ...(facts['Your place'] !== undefined && { 'Your place': String(own.rank) }),
  });
  const places = async () => {
    const parts = await Promise.all([first, second].map(drawPart));
    return parts.map((part) => part.facts['Your place']);
  };
  await until(async () => (await places()).includes('2'), { what: 'whoever has no offer is told its place' });
  expect(commands[0]).toBe(`stockade queue check FILE --commitment ${commitment}`);
  expect(execFileSync('sh', ['-c', commands[1]!]).toString()).toContain(own.digest);
  await look(second, 'draw-drawn');
  expect([...first.complaints, ...second.complaints]).toEqual([]);
});

test('a queue that is not drawn shows nothing about a draw', async () => {
  await using visit = await shop.visit(browser, await sell());
  await visit.buy();
  await visit.shows('#queue-title', 'It is your turn');
  expect(await visit.page.locator('#draw').isVisible()).toBe(false);
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
  test('while the shop can’t be reached the page says so, and gives no advice about the place', async () => {
    await using visit = await shop.visit(browser, await sell());
    const told = await MadeUp.of(visit);
    told.place = { state: 'hopeless', rank: 140, ahead: 20 };
    await visit.buy();
    // The stream that the page has listened to so far can't be cut.
    await visit.page.reload();
    await visit.shows('#queue-text', 'Stay if you want');
    told.isCut = true;
    await visit.shows('#state', 'Not reachable');
    await visit.shows('#stock', 'The shop can’t be reached');
    await visit.shows('#queue-lost', 'The connection is lost');
    await visit.page.locator('#queue-text').waitFor({ state: 'hidden' });
    await visit.page.locator('#queue-hint').waitFor({ state: 'hidden' });
    await look(visit, 'out-of-reach');
    told.isCut = false;
    await visit.shows('#state', 'Open');
    await visit.shows('#queue-text', 'Stay if you want');
  });

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
    await page.route(/\/v1\/sales\/[^/]+(\/events)?$/, (route: Route) => made.#answerOfSale(route));
    return made;
  }

  /** What the node says, in a stream that ends at once, so that it can be cut. */
  async #answerOfSale(route: Route): Promise<void> {
    if (this.isCut) return route.abort();
    const url = route.request().url();
    if (!url.endsWith('/events')) return route.fallback();
    const answer = await route.fetch({ url: url.slice(0, -'/events'.length) });
    const stream = `retry: 200\nevent: sale\ndata: ${await answer.text()}\n\n`;
    return this.#send(route, 200, 'text/event-stream', stream);
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
