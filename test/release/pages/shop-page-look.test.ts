/** The example of a shop's page in a browser: how it shows each refusal, and each of its states in dark and light, wide and narrow. */
import { mkdirSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error The example is JavaScript.
import { OUTCOMES } from '../../../examples/shop-page/page/outcomes.js';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { kindOf, type ProblemCode } from '../../../src/http/server/replies/problem-kinds.ts';
import { ApiDescription } from '../../fuzz/description.ts';
import { BY } from '../../support/author.ts';
import { openBrowser, violationsOn } from '../../support/pages/console-browser.ts';
import { ExampleShop, type ShopVisit } from '../../support/pages/shop-page.ts';

const buying = ApiDescription.read('public').operations.find(({ id }) => id === 'buy')!;
const REFUSALS = [...buying.codes.values()].flat() as ProblemCode[];
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
const close = (saleId: string) => shop.node.ops.change(saleId, { action: 'close' }, BY);

const refusal = (code: ProblemCode) => {
  const { status, body } = problem(code, kindOf(code).example as never);
  return { status, body };
};

test.each(REFUSALS)('%s', async (code) => {
  const saleId = await sell();
  await using visit = await shop.visit(browser, saleId);
  const keys = await visit.answering(() => refusal(code));
  await visit.buy();
  await visit.told(OUTCOMES[code].title);
  await visit.page.locator('#buy:enabled').waitFor();
  expect(new Set(keys).size, 'one key for one purchase').toBe(1);
  expect(await violationsOn(visit.page)).toEqual([]);
  expect(await visit.page.getByRole('button', { name: 'Try again' }).count()).toBe(
    OUTCOMES[code].again ? 1 : 0,
  );
  await visit.page.unrouteAll({ behavior: 'ignoreErrors' });
  await visit.buy();
  await visit.told('It is yours');
  expect(visit.complaints).toEqual([]);
});

/** With SHOP_PAGE_PICTURES in the environment, pictures of the page are put into that folder. */
const PICTURES = process.env.SHOP_PAGE_PICTURES;

test.each([
  ['light', 1_280],
  ['light', 360],
  ['dark', 1_280],
  ['dark', 360],
] as const)('in %s, %i pixels wide, the page is accessible and fits', async (scheme, width) => {
  const look = async (visit: ShopVisit, what: string) => {
    expect(await violationsOn(visit.page), what).toEqual([]);
    const overflow = await visit.page.evaluate('document.documentElement.scrollWidth - innerWidth');
    expect(overflow, `${what}: pixels beyond the window`).toBeLessThanOrEqual(0);
    if (PICTURES === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    await visit.page.screenshot({ path: `${PICTURES}/${what}-${scheme}-${width}.png`, fullPage: true });
  };
  const soon = await sell({
    title: 'An evening with a title of some length',
    startsAt: new Date(Date.now() + 50 * HOUR_MS).toISOString(),
  });
  await using early = await shop.visit(browser, soon, { width, scheme });
  await early.shows('#window', 'Opens in 2 d');
  await look(early, 'early');
  const saleId = await sell({ stock: 4, perBuyerLimit: 3, payWithinSeconds: 3_600 });
  await using visit = await shop.visit(browser, saleId, { width, scheme });
  await visit.shows('#stock', '4 left');
  await look(visit, 'open');
  for (let i = 0; i < 3; i++) {
    await visit.buy();
    await visit.shows(`#list li:nth-child(${i + 1})`, 'Order');
  }
  await visit.page
    .getByRole('button', { name: /^Pay order/ })
    .first()
    .click();
  await visit.shows('#list .is-paid', 'paid');
  await visit.page
    .getByRole('button', { name: /^Cancel order/ })
    .first()
    .click();
  await visit.shows('#list .badge', 'cancelled');
  await look(visit, 'orders');
  await using late = await shop.visit(browser, saleId, { width, scheme });
  const keys = await late.answering(() => refusal('unknown'));
  await late.buy();
  await late.told('We do not know yet');
  expect(keys.length).toBeGreaterThan(1);
  await look(late, 'unknown');
  await late.page.unrouteAll({ behavior: 'ignoreErrors' });
  await close(saleId);
  await late.shows('#state', 'Over');
  await look(late, 'over');
});
