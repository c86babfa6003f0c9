/** The operators' consoles of two nodes of one shop: each shows the other node, and what is done at the other one. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { ConsolePage, openBrowser } from '../../support/pages/console-browser.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await openBrowser();
});

afterAll(() => browser?.close());

test('each console shows the other node, its settings and its end, and a pause at the other node', async () => {
  const stores = await redisAndPostgres();
  await using first = await startTestNode(stores);
  await using second = await startTestNode({ ...stores, env: { RATE_LIMIT_BUYER: '10/60' } });
  const saleId = await makeSale(first, { stock: 100, segments: 4 });
  const [here, there] = [await ConsolePage.open(browser, first), await ConsolePage.open(browser, second)];
  for (const console of [here, there]) {
    await console.signIn();
    await console.goTo('/nodes');
    const row = console.page.locator('tr', { hasText: 'other RATE_LIMIT_BUYER' });
    await row.waitFor();
    // The other one, beside "this node".
    expect(await row.count()).toBe(1);
    expect(await console.page.getByText('(this node)').count()).toBe(1);
  }

  await there.goTo(`/sale/${saleId}`);
  await there.page.getByRole('button', { name: 'Pause' }).waitFor();
  await here.goTo(`/sale/${saleId}`);
  await here.page.getByRole('button', { name: 'Pause' }).click();
  await here.page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
  await there.page.getByRole('button', { name: 'Resume' }).waitFor();
  expect(await second.buy(saleId, 'ada')).toMatchObject({ status: 403, code: 'paused' });

  await here.goTo('/nodes');
  await here.page.locator('tr', { hasText: 'other RATE_LIMIT_BUYER' }).waitFor();
  await there.close();
  await second.stop();
  await here.page.locator('tr', { hasText: 'other RATE_LIMIT_BUYER' }).waitFor({ state: 'detached' });
  expect(await here.page.getByText('(this node)').count()).toBe(1);
  expect([...here.complaints, ...there.complaints]).toEqual([]);
  await here.close();
});
