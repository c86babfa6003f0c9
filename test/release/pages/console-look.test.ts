/** The operators' console with a thousand sales, and every view of it in dark and light, wide and as narrow as a phone. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { ConsolePage, openBrowser } from '../../support/pages/console-browser.ts';

const SALES = 1_000;
const PARALLEL = 10;
/** A page of 50 sales needs some 1,500. */
const MAX_ELEMENTS = 3_000;

let node: TestNode;
let browser: Browser;
let saleId: string;

beforeAll(async () => {
  node = await startTestNode(await redisAndPostgres());
  browser = await openBrowser();
  for (let made = 0; made < SALES; made += PARALLEL)
    await Promise.all(Array.from({ length: PARALLEL }, () => makeSale(node, { segments: 1 })));
  saleId = await makeSale(node, {
    title: 'Front row, with a title of some length',
    stock: 100,
    segments: 512,
  });
  for (let i = 0; i < 20; i++) await node.buy(saleId, `buyer-${i}`);
});

afterAll(async () => {
  await browser?.close();
  await node?.stop();
  await node?.[Symbol.asyncDispose]();
});

test('a thousand sales are shown page by page, and the page stays small', async () => {
  const operator = await ConsolePage.open(browser, node);
  const { page } = operator;
  await operator.signIn();
  const elements = () => page.evaluate('document.querySelectorAll("*").length');
  await page.getByText('50 sales on this page').waitFor();
  await page.getByText('1,001 open').waitFor();
  const seen = new Set<string>();
  for (let shown = 1; ; shown++) {
    expect(await page.locator('.sales tbody tr').count()).toBe(shown === 21 ? 1 : 50);
    expect(await elements()).toBeLessThan(MAX_ELEMENTS);
    // Without a title, the link is the id.
    for (const id of await page.locator('.sales tbody a').allTextContents()) seen.add(id);
    if (shown === 21) break;
    const first = await page.locator('.sales tbody a').first().getAttribute('href');
    await page.getByRole('link', { name: 'Older sales' }).click();
    await page.locator(`.sales tbody tr:first-child a:not([href="${first}"])`).waitFor();
  }
  expect(seen.size).toBe(SALES + 1);
  expect(operator.complaints).toEqual([]);
  await operator.close();
});

describe.each(['light', 'dark'] as const)('in %s', (scheme) => {
  test.each([1_280, 360])('%i pixels wide, each view is accessible and fits', async (width) => {
    const operator = await ConsolePage.open(browser, node, { width, scheme });
    const { page } = operator;
    const look = async (what: string) => {
      expect(await operator.violations(), what).toEqual([]);
      expect(await operator.overflow(), `${what}: pixels beyond the window`).toBeLessThanOrEqual(0);
    };
    await page.getByLabel('Ops token').waitFor();
    await look('login');
    await operator.signIn('another-token-of-some-length');
    await page.getByText('does not accept').waitFor();
    await look('a refused login');
    await operator.signIn();
    await page.getByText('50 sales on this page').waitFor();
    await look('sales');
    await operator.goTo(`/sale/${saleId}/overview`);
    await page.getByText(/^512 segments: /).waitFor();
    await page.getByText('The same as a table').click();
    await look('a sale');
    for (const [button, title] of [
      ['Withdraw', /^Withdraw units/],
      ['Rebalance', /^Rebalance/],
      ['Recover', /^Rebuild/],
    ] as const) {
      await page.getByRole('button', { name: button, exact: true }).click();
      await page.getByRole('heading', { name: title }).waitFor();
      await look(`the dialog ${button}`);
      await page.keyboard.press('Escape');
      await operator.done();
    }
    await operator.goTo(`/sale/${saleId}/orders`);
    await page.getByRole('cell', { name: 'buyer-7', exact: true }).waitFor();
    await look('orders');
    await operator.goTo(`/sale/${saleId}/ledger`);
    await page.getByRole('cell', { name: 'create' }).waitFor();
    await look('ledger');
    await operator.goTo(`/sale/${saleId}/verify`);
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.locator('.verdict').waitFor();
    await look('verify');
    for (const view of ['refunds', 'events', 'nodes']) {
      await operator.goTo(`/${view}`);
      await page.getByText(/No refund is due|No dead events|this node\)/).waitFor();
      await look(view);
    }
    expect(operator.complaints).toEqual([]);
    await operator.close();
  });
});
