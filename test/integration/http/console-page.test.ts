/** The operators' console in a browser: each action changes the shop, each refusal is shown with its reason. */
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { ORDER_STATUSES } from '../../../src/operations/order.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { givePlaces } from '../../../src/queue/places.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { ConsolePage, openBrowser } from '../../support/pages/console-browser.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { QUEUE } from '../../support/shop/queue.ts';
import { query } from '../../support/shop/truth.ts';
import { isRelease } from '../../support/tier.ts';

const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>';

let stores: Awaited<ReturnType<typeof redisAndPostgres>>;
let node: TestNode;
let browser: Browser;
let operator: ConsolePage;

beforeAll(async () => {
  stores = await redisAndPostgres();
  node = await startTestNode({ ...stores, env: { REBALANCE_EVERY_MS: '0' } });
  browser = await openBrowser();
  operator = await ConsolePage.open(browser, node);
  await operator.signIn();
  await operator.page.getByRole('heading', { name: 'Sales', exact: true }).waitFor();
});

afterAll(async () => {
  await browser?.close();
  await node?.stop();
  await node?.[Symbol.asyncDispose]();
});

afterEach(() => expect(operator.complaints).toEqual([]));

const shown = (text: string | RegExp) => operator.page.getByText(text).first().waitFor();

/** Shows a sale, and waits until its numbers are there. */
async function showSale(saleId: string, tab = 'overview'): Promise<void> {
  await operator.goTo(`/sale/${saleId}/${tab}`);
  await shown('for each buyer');
}

/** A sale of 100 units, 10 of which are sold unless `orders` says otherwise. */
async function sold(spec: Record<string, unknown> = {}, orders = 10): Promise<string> {
  const saleId = await makeSale(node, { stock: 100, segments: 4, perBuyerLimit: 2, ...spec });
  for (let i = 0; i < orders; i++) expect((await node.buy(saleId, `buyer-${i}`)).status).toBe(201);
  return saleId;
}

const lastOf = async (saleId: string) => (await node.ops.ledger(saleId)).ledger.at(-1);

describe('signing in', () => {
  test('a wrong token is refused with the reason; the token is in no storage, and a reload asks again', async () => {
    const other = await ConsolePage.open(browser, node);
    const { page } = other;
    await other.signIn('another-token-of-some-length');
    await page.getByText('The node does not accept this token').waitFor();
    expect(await page.getByRole('navigation').count()).toBe(0);
    await other.signIn();
    await page.getByRole('heading', { name: 'Sales', exact: true }).waitFor();
    const kept =
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])';
    expect(await page.evaluate(kept)).not.toContain(node.opsToken);
    expect(await page.context().cookies()).toEqual([]);
    await other.goTo('/nodes');
    await page.reload();
    await page.getByLabel('Ops token').waitFor();
    expect(page.url()).toContain('#/nodes');
    await other.signIn();
    await page.getByRole('heading', { name: 'Nodes' }).waitFor();
    await page.getByText('(this node)').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Ops token').waitFor();
    expect(await page.content()).not.toContain('(this node)');
    expect(other.complaints).toEqual([]);
    await other.close();
  });
});

describe('a sale', () => {
  test('that is sold out: all segments are empty, and the bars are explained', async () => {
    const saleId = await sold({ stock: 10 });
    await showSale(saleId);
    await shown(
      /^4 segments, all of them empty\. A bar is what its segment has had, its filled part what is left\.$/,
    );
  });

  test('that does not exist is not one that may be shown later', async () => {
    await operator.goTo('/sale/nope/overview');
    await shown('The sale can’t be shown: there is no sale nope.');
  });

  test('with a queue says that people left the queue, not that units are left', async () => {
    const saleId = await makeSale(node, { stock: 3, ...QUEUE });
    await showSale(saleId, 'queue');
    await shown('Left the queue');
  });

  test('with a queue says that units lie free because the next place waits for more', async () => {
    const saleId = await makeSale(node, { stock: 2, perBuyerLimit: 3, ...QUEUE, fit: 'wait' });
    const headers = { 'content-type': 'application/json', 'x-buyer-id': 'gus' };
    const place = { method: 'POST', headers, body: '{"quantity":3}' };
    expect((await fetch(`${node.publicUrl}/v1/sales/${saleId}/place`, place)).status).toBe(200);
    await showSale(saleId, 'queue');
    await shown('The next place, 1, wants 3 units. Free: 2 units, so it waits for more (fit wait).');
  });

  test('whose units are all offered says that, how many wait, and how often buyers ask for their places', async () => {
    const saleId = await makeSale(node, { stock: 2, ...QUEUE });
    const path = `/v1/sales/${saleId}/place`;
    for (const buyer of ['anna', 'bert', 'carl'])
      await node.request(path, { method: 'POST', headers: { 'x-buyer-id': buyer } });
    const offered = async () => (await node.ops.show(saleId)).offeredUnits === 2;
    await until(offered, { what: 'two offers' });
    await showSale(saleId);
    await operator.page.locator('.head .state', { hasText: 'in offers' }).waitFor();
    const stat = (label: string, value: string) =>
      operator.page.locator('.stat', { hasText: label }).getByText(value, { exact: true }).waitFor();
    await stat('In offers', '2');
    await stat('Waiting, at most', '1');
    await stat('Sold', '0');
    await operator.page
      .locator('.figure', { hasText: 'Queue, polls/s' })
      .getByText(/joins\/s/)
      .waitFor();
    await operator.goTo('/sales');
    const row = operator.page.getByRole('row').filter({ hasText: saleId });
    await row.getByText('in offers', { exact: true }).waitFor();
    await row.getByText('up to 1 wait').waitFor();
    await row.getByText('0 of 2, 2 in offers').waitFor();
    expect(await operator.violations()).toEqual([]);
    await showSale(saleId);
    const said = await operator.confirm('Top up', 'Add the units', { Units: '1' });
    expect(said).toContain('The new ones are offered to those who wait.');
    await operator.done();
  });

  test('without a queue says so, and how it gets one', async () => {
    const saleId = await makeSale(node);
    await showSale(saleId, 'queue');
    await shown(
      `sale ${saleId} has no queue: turn it on with \`stockade sale queue ${saleId} --queue fifo\``,
    );
  });

  test('without a queue that is closed says that it can get none', async () => {
    const saleId = await makeSale(node);
    await node.ops.change(saleId, { action: 'close' }, { actor: 'ben', reason: '' });
    await showSale(saleId, 'queue');
    await shown(`sale ${saleId} has no queue, and can get none: it is closed`);
  });

  test('says how many buyers are to be erased once it is closed', async () => {
    const saleId = await makeSale(node);
    await node.buy(saleId, 'anna');
    await until(async () => (await node.ops.show(saleId)).committedOrders === 1, { what: 'the commit' });
    const erasure = { method: 'POST', body: JSON.stringify({ buyerId: 'anna' }) } as const;
    expect(await node.opsRequest('/v1/erasures', erasure)).toMatchObject({ status: 202 });
    await showSale(saleId, 'overview');
    await shown('To be erased');
  });

  test('whose ledger is shown in words, with room for them in a narrow window', async () => {
    const saleId = await makeSale(node, { perBuyerLimit: 2 });
    await node.ops.change(saleId, { action: 'edit', perBuyerLimit: 4 }, { actor: 'ben', reason: '' });
    const { page } = operator;
    await page.setViewportSize({ width: 360, height: 900 });
    await showSale(saleId, 'ledger');
    const details = page.getByRole('cell', { name: 'perBuyerLimit 4, was 2', exact: true });
    await details.waitFor();
    expect((await details.boundingBox())!.width).toBeGreaterThan(200);
    await page.setViewportSize({ width: 1_280, height: 900 });
  });

  test('with a long title takes three lines of a narrow list, and its page has the whole title', async () => {
    const title = 'A title of many words '.repeat(9).trim();
    const saleId = await makeSale(node, { title });
    const narrow = await ConsolePage.open(browser, node, { width: 360 });
    await narrow.signIn();
    const link = narrow.page.locator(`.sales a[href="#/sale/${saleId}/overview"]`);
    await link.waitFor();
    // A line is 22.5 pixels high; without a limit this title takes a dozen lines.
    expect((await link.boundingBox())?.height).toBeLessThan(4 * 24);
    await link.click();
    await narrow.page.getByRole('heading', { name: title }).waitFor();
    expect(narrow.complaints).toEqual([]);
    await narrow.close();
  });
});

describe('an action', () => {
  test('pause and resume: with the reason and the operator in the ledger', async () => {
    const saleId = await sold();
    await showSale(saleId);
    const said = await operator.confirm('Pause', 'Pause the sale', {
      'Reason (for the ledger)': 'a wrong price',
    });
    expect(said).toContain('90 units left now');
    await operator.done();
    expect(await node.ops.show(saleId)).toMatchObject({ state: 'paused' });
    expect(await lastOf(saleId)).toMatchObject({ action: 'pause', actor: 'ann', reason: 'a wrong price' });
    await operator.confirm('Resume', 'Resume the sale');
    await operator.done();
    expect(await node.ops.show(saleId)).toMatchObject({ state: 'open' });
  });

  test('top up and withdraw: with the numbers before and after, or the reason of the refusal', async () => {
    const saleId = await sold();
    await showSale(saleId);
    const added = await operator.confirm('Top up', 'Add the units', { Units: '10' });
    expect(added).toContain('Left: 90 now, 100 after. In all: 100 now, 110 after.');
    await operator.done();
    expect(await node.ops.show(saleId)).toMatchObject({ remaining: 100, movedUnits: 10 });
    await shown('of 110');
    const notSent = await operator.confirm('Withdraw', 'Withdraw the units', { Units: '-1' });
    expect(notSent).toContain('100 units left now.');
    await operator.page.keyboard.press('Escape');
    const tooMany = await operator.confirm('Withdraw', 'Withdraw the units', { Units: '500' });
    expect(tooMany).toContain('the node will refuse it');
    expect(await operator.refusal()).toContain(`Sale ${saleId} has 100 unsold units`);
    expect(await node.ops.show(saleId)).toMatchObject({ remaining: 100 });
    const taken = await operator.inDialog('Withdraw the units', { Units: '20' });
    expect(taken).toContain('Left: 100 now, 80 after.');
    await operator.done();
    expect(await node.ops.show(saleId)).toMatchObject({ remaining: 80, movedUnits: -10 });
  });

  // `console.test.ts` and the tests of the ops port have what these ask of the node.
  if (isRelease) {
    test('resize', async () => {
      const saleId = await sold();
      await showSale(saleId);
      const said = await operator.confirm('Resize', 'Resize the sale', { Segments: '6' });
      expect(said).toContain('4 segments now, 6 after');
      await operator.done();
      expect(await node.ops.show(saleId)).toMatchObject({ segments: 6, remaining: 90 });
      await shown(/^6 segments: /);
    });

    test('rebalance: as planned by a dry run', async () => {
      const saleId = await makeSale(node, { stock: 40, segments: 2 });
      const buyers = Array.from({ length: 100 }, (_, i) => `buyer-${i}`);
      const neighbours = buyers.filter((buyer) => homeSegment(buyer, 2) === 0).slice(0, 10);
      for (const buyer of neighbours) await node.buy(saleId, buyer);
      await showSale(saleId);
      const said = await operator.confirm('Rebalance', 'Move the units');
      expect(said).toContain('5 units in 1 move between segments');
      expect(said).toContain('10 to 20 now, 15 to 15 after');
      await operator.done();
      expect(await node.ops.rebalance(saleId, { dryRun: true })).toMatchObject({
        before: [15, 15],
        moves: [],
      });
    });
  }

  test('verify and repair: the fault is explained, and repaired after the id was typed', async () => {
    const saleId = await sold();
    await showSale(saleId, 'verify');
    await operator.page.getByRole('button', { name: 'Verify now' }).click();
    await operator.page.locator('.verdict.good').waitFor();
    await using keys = new RedisKeys(stores);
    await keys.redis.hincrby(keys.of(saleId, 1).segment, 'left', 5);
    await operator.page.getByRole('button', { name: 'Verify now' }).click();
    await operator.page.locator('.verdict.bad').waitFor();
    await operator.page.getByRole('cell', { name: 'foreign redis' }).waitFor();
    const said = await operator.confirm('Repair …', 'Repair the sale', { 'This can’t be undone': 'another' });
    expect(said).toContain('foreign_redis (5 units)');
    expect(await operator.refusal()).toBe(`Type ${saleId} exactly.`);
    await operator.inDialog('Repair the sale', { 'This can’t be undone': saleId });
    await operator.done();
    await operator.page.locator('.verdict.good').waitFor();
    expect(await node.ops.verify(saleId)).toMatchObject({ ok: true });
  });

  if (isRelease) {
    test('the offers of a queue: stop, hand out, pace, resume', async () => {
      const saleId = await makeSale(node, { stock: 3, ...QUEUE });
      const queue = async () => (await node.opsRequest(`/v1/sales/${saleId}/queue`)).body;
      await showSale(saleId, 'queue');
      const stopped = await operator.confirm('Stop the offers', 'Stop the offers', {
        'Reason (for the ledger)': 'slow payments',
      });
      expect(stopped).toContain('Waiting: 0 places.');
      await operator.done();
      expect(await queue()).toMatchObject({ stopped: true });
      expect(await lastOf(saleId)).toMatchObject({ action: 'queue', actor: 'ann', reason: 'slow payments' });
      const db = openDatabase({ url: stores.databaseUrl, maxConnections: 1 });
      await givePlaces(db, saleId, [
        { buyerId: 'eve', quantity: 1 },
        { buyerId: 'fay', quantity: 1 },
      ]);
      await db.destroy();
      const handed = await operator.confirm('Hand out offers', 'Hand them out', { Offers: '1' });
      expect(handed).toContain('Waiting: 2 places.');
      await operator.done();
      await until(async () => (await queue()).counts.offered === 1, { what: 'one offer' });
      await operator.confirm('Set the pace', 'Set the pace', { 'Offers in a minute at most': '60' });
      await operator.done();
      await operator.confirm('Resume the offers', 'Resume the offers');
      await operator.done();
      expect(await queue()).toMatchObject({ stopped: false, perMinute: 60 });
      await shown('Free units go to the next places.');
    });

    test('the settings of a queue', async () => {
      const saleId = await makeSale(node, { stock: 3, ...QUEUE });
      const { page } = operator;
      await showSale(saleId, 'queue');
      await page.getByRole('button', { name: 'Change the settings' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('wants more units than are free').selectOption('pass');
      const said = await operator.inDialog('Change the settings', {
        'Seconds to accept an offer': '300',
        'Reason (for the ledger)': 'slow banks',
      });
      expect(said).toContain('Offers that buyers have keep their time.');
      await operator.done();
      expect(await node.ops.show(saleId)).toMatchObject({
        ...{ queue: 'fifo', offerSeconds: 300, presenceSeconds: 0, maxWaiting: 1_000_000, fit: 'pass' },
      });
      expect(await lastOf(saleId)).toMatchObject({ action: 'queue', actor: 'ann', reason: 'slow banks' });
      await shown('300 s');
    });

    test('the places of a queue, by state and by buyer', async () => {
      const saleId = await makeSale(node, { stock: 1, ...QUEUE });
      const { page } = operator;
      const db = openDatabase({ url: stores.databaseUrl, maxConnections: 1 });
      const names = Array.from({ length: 60 }, (_, i) => ({ buyerId: `p${i}`, quantity: 1 }));
      await givePlaces(db, saleId, names);
      await db.destroy();
      await until(async () => (await node.opsRequest(`/v1/sales/${saleId}/queue`)).body.head === 1, {
        what: 'one offer',
      });
      await showSale(saleId, 'queue');
      const buyersShown = async () =>
        (await page.locator('table tbody tr td:nth-child(2)').allInnerTexts()).slice(0, 2);
      await page.getByRole('cell', { name: 'p1', exact: true }).waitFor();
      expect(await buyersShown()).toEqual(['p1', 'p2']);
      await page.getByRole('link', { name: 'Next places' }).click();
      await page.getByRole('cell', { name: 'p59', exact: true }).waitFor();
      await page.getByLabel('State').selectOption('offered');
      await page.getByRole('button', { name: 'Show', exact: true }).click();
      await page.getByRole('cell', { name: 'p0', exact: true }).waitFor();
      expect(await buyersShown()).toEqual(['p0']);
      await page.getByLabel('Or all places of a buyer').fill('p31');
      await page.getByRole('button', { name: 'Show', exact: true }).click();
      await page.getByRole('columnheader', { name: 'Waiting before it' }).waitFor();
      await page.getByRole('cell', { name: '30', exact: true }).waitFor();
    });

    test('recover: the sale is built again', async () => {
      const saleId = await sold();
      await showSale(saleId);
      const said = await operator.confirm('Recover', 'Rebuild the sale', { 'This can’t be undone': saleId });
      expect(said).toContain('10 orders are loaded into new segments: generation 1 becomes 2');
      await operator.done();
      await until(async () => (await node.ops.show(saleId)).generation === 2, { what: 'the rebuild' });
      await shown(/^Rebuilt as generation 2 .*no order is lost/);
    });
  }

  test('without a network: a change may have been made, and a verification changes nothing', async () => {
    const saleId = await sold();
    const { page } = operator;
    await showSale(saleId, 'verify');
    await page.route('**/v1/**', (route) => route.abort());
    await page.getByRole('button', { name: 'Verify now' }).click();
    await page.getByText('The node does not answer', { exact: true }).waitFor();
    await operator.confirm('Pause', 'Pause the sale');
    expect(await operator.refusal()).toBe(
      'The node does not answer. The change may have been made: check that before you repeat it',
    );
    await page.keyboard.press('Escape');
    await page.unroute('**/v1/**');
  });

  test('that the node refuses is shown with the reason', async () => {
    const saleId = await sold();
    await showSale(saleId);
    await operator.page.getByRole('button', { name: 'Pause', exact: true }).click();
    await node.ops.change(saleId, { action: 'close' }, { actor: 'ben', reason: '' });
    await operator.inDialog('Pause the sale');
    expect(await operator.refusal()).toContain("can't be paused");
    await operator.page.keyboard.press('Escape');
    await operator.done();
  });

  if (isRelease) {
    test('that is pressed twice opens one dialog', async () => {
      const saleId = await makeSale(node, { stock: 3, ...QUEUE });
      for (const [tab, name] of [
        ['overview', 'Top up'],
        ['queue', 'Set the pace'],
      ] as const) {
        await showSale(saleId, tab);
        await operator.page.getByRole('button', { name, exact: true }).dblclick();
        await operator.page.getByRole('dialog').waitFor();
        // Every request of the clicks is answered by then, and a second dialog would be there.
        await operator.page.evaluate(`fetch('v1/sales/${saleId}', { cache: 'no-store' })`);
        expect(await operator.page.getByRole('dialog').count()).toBe(1);
        await operator.page.keyboard.press('Escape');
        await operator.done();
      }
    });

    test('asks what its button said, whatever the sale has become since', async () => {
      const saleId = await sold();
      await showSale(saleId);
      const { page } = operator;
      // The other operator is faster than the next picture.
      await page.route(`**/v1/sales/${saleId}`, async (route) => {
        if (route.request().method() === 'GET')
          await node.ops.change(saleId, { action: 'pause' }, { actor: 'ben', reason: '' });
        await route.continue();
      });
      const said = await operator.confirm('Pause', 'Pause the sale');
      expect(said).toContain('It is paused already.');
      await operator.done();
      await page.unroute(`**/v1/sales/${saleId}`);
      expect(await node.ops.show(saleId)).toMatchObject({ state: 'paused' });
    });

    test('of a closed sale is offered only if the node would do it', async () => {
      const saleId = await sold();
      await node.ops.change(saleId, { action: 'close' }, { actor: 'ben', reason: '' });
      await showSale(saleId);
      const buttons = operator.page.getByRole('group', { name: 'Actions' }).getByRole('button');
      expect(await buttons.allInnerTexts()).toEqual(['Withdraw', 'Rebalance', 'Recover']);
    });

    test('says what a top-up does to a sale that does not sell', async () => {
      const saleId = await sold({ startsAt: new Date(Date.now() + 3_600_000).toISOString() }, 0);
      await showSale(saleId);
      const said = await operator.confirm('Top up', 'Add the units', { Units: '1' });
      expect(said).toContain('The sale is not started and does not sell');
      await operator.done();
    });

    test('whose numbers can’t be read says so, and shows no old ones', async () => {
      const saleId = await sold();
      await showSale(saleId);
      const { page } = operator;
      const problem = JSON.stringify({ code: 'unavailable', title: 'Not now' });
      await page.route(`**/v1/sales/${saleId}`, (route) =>
        route.request().method() === 'GET' ? route.fulfill({ status: 503, body: problem }) : route.continue(),
      );
      const said = await operator.confirm('Withdraw', 'Withdraw the units', { Units: '5' });
      await page.unroute(`**/v1/sales/${saleId}`);
      expect(said).toContain('The units left can’t be counted now.');
      expect(said).not.toContain('90');
      expect(said).not.toContain('more than what is left');
      await operator.done();
      expect(await node.ops.show(saleId)).toMatchObject({ remaining: 85 });
    });

    test('that the node refuses gives each reason once', async () => {
      const saleId = await sold();
      await showSale(saleId);
      await operator.confirm('Top up', 'Add the units', { Units: '3000000000' });
      expect(await operator.refusal()).toBe(
        'The request is not valid. The change is not valid: units must be at most 2147483648',
      );
      await operator.page.keyboard.press('Escape');
      await operator.done();
    });

    test('that the node refuses after its dialog was closed is shown all the same', async () => {
      const saleId = await sold();
      await showSale(saleId);
      const { page } = operator;
      const { open: answer, opened: closed } = gate();
      await page.route(`**/v1/sales/${saleId}`, async (route) => {
        if (route.request().method() === 'PATCH') await closed;
        await route.continue();
      });
      await operator.confirm('Withdraw', 'Withdraw the units', { Units: '500' });
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
      await operator.done();
      answer();
      await page.getByRole('status').getByText(`sale ${saleId} has 90 unsold units`).waitFor();
      await page.unroute(`**/v1/sales/${saleId}`);
    });

    test('asks nothing any more after the operator was signed out', async () => {
      const saleId = await sold();
      const other = await ConsolePage.open(browser, node);
      await other.signIn();
      await other.page.getByRole('heading', { name: 'Sales', exact: true }).waitFor();
      await other.goTo(`/sale/${saleId}/overview`);
      await other.page.getByText('for each buyer').waitFor();
      const problem = JSON.stringify({ code: 'unauthenticated', title: 'Another token' });
      await other.page.route(`**/v1/sales/${saleId}`, (route) =>
        route.fulfill({ status: 401, body: problem }),
      );
      await other.page.getByRole('button', { name: 'Top up' }).click();
      await other.page
        .getByText(/^Signed out: the node does not accept this token any more\. Sign in/)
        .waitFor();
      expect(await other.page.getByRole('dialog').count()).toBe(0);
      await other.close();
    });

    test('send dead events again, one or all', async () => {
      const dead = `INSERT INTO webhook_pages (outbox_id, before, kind, order_ids, happened_at, attempts, failed_with, dead_at)
      SELECT i, 0, 'order.paid', '{1}', now(), 12, 'the webhook answered 500', now() FROM generate_series(1, 3) i`;
      await query(asAdmin(stores.databaseUrl), dead);
      const [first] = (await node.opsRequest('/v1/events/dead')).body.dead;
      await operator.goTo('/events');
      await shown('the webhook answered 500');
      const one = await operator.confirm(`Send ${first.id} again`, 'Send it again');
      expect(one).toContain('order.paid of 1 order will be sent to the webhook');
      await operator.done();
      await until(async () => (await node.opsRequest('/v1/events/dead')).body.total === 2, {
        what: 'one is sent',
      });
      await shown(/^2 pages of events were/);
      const said = await operator.confirm('Send all again', 'Send them again');
      expect(said).toContain('2 pages of events');
      await operator.done();
      expect((await node.opsRequest('/v1/events/dead')).body).toEqual({ total: 0, dead: [] });
    });
  }
});

describe('what it shows', () => {
  test('is live again as soon as the browser is online, whatever the pause before the next attempt', async () => {
    const other = await ConsolePage.open(browser, node);
    const { page } = other;
    await page.clock.install();
    await other.signIn();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.route('**/v1/console/events*', (route) => route.abort());
    await other.goTo('/nodes');
    await page.getByText('Not live: The node does not answer').waitFor();
    // No timer runs from now on.
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.unroute('**/v1/console/events*');
    await page.evaluate("dispatchEvent(new Event('online'))");
    await page.getByText('Live', { exact: true }).waitFor();
    expect(other.complaints).toEqual([]);
    await other.close();
  });

  if (isRelease) {
    test('is not called live when no picture comes, although nobody has closed the stream', async () => {
      const other = await ConsolePage.open(browser, node);
      const { page } = other;
      // A stream that is opened and then silent, as behind a tunnel whose other end is gone.
      await page.addInitScript(`
      const real = window.fetch;
      let opened = 0;
      window.fetch = async (path, options) =>
        String(path).includes('console/events') && ++opened === 2
          ? new Response(new ReadableStream({}))
          : real(path, options);
    `);
      await page.reload();
      await other.signIn();
      await page.getByText('Not live: No picture has come for 5 s').waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      expect(other.complaints).toEqual([]);
      await other.close();
    });

    test('a link in a dialog leads to the view that it names', async () => {
      const saleId = await sold();
      await showSale(saleId, 'orders');
      const { page } = operator;
      await page.locator('tbody tr button').first().click();
      await page.getByRole('dialog').getByRole('link', { name: saleId }).click();
      await operator.done();
      await shown(/^4 segments: /);
    });
  }

  if (isRelease) {
    test('is live: a purchase changes the numbers without a reload', async () => {
      const saleId = await sold();
      await showSale(saleId);
      await shown('90');
      const bars = operator.page.getByRole('img', { name: /^4 segments: / });
      const before = await bars.getAttribute('aria-label');
      for (let i = 10; i < 60; i++) await node.buy(saleId, `buyer-${i}`);
      // Not another number that happens to be 40, such as the units that were sold in the last second.
      const left = operator.page.locator('.stat', { hasText: 'of 100' });
      await left.locator('.value', { hasText: /^40$/ }).waitFor();
      expect(await bars.getAttribute('aria-label')).not.toBe(before);
      await operator.goTo('/sales');
      await shown('40 of 100');
    });

    test('orders are found by buyer, status, reference and id; the ledger and refunds due are listed', async () => {
      const saleId = await sold();
      await showSale(saleId, 'orders');
      const { page } = operator;
      const statuses = page.getByLabel('Status').locator('option');
      expect(await statuses.allInnerTexts()).toEqual(['any', ...ORDER_STATUSES]);
      await page.getByLabel('Buyer', { exact: true }).fill('buyer-7');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('cell', { name: 'buyer-7', exact: true }).waitFor();
      expect(await page.locator('tbody tr').count()).toBe(1);
      expect(page.url()).toContain('buyer=buyer-7');
      const orderId = await page.locator('tbody tr button').innerText();
      await node.ops.changeOrder(orderId, { kind: 'pay', payType: 'card' }, { actor: 'till', reason: '' });
      await page.getByLabel('Buyer', { exact: true }).fill('');
      await page.getByLabel('Status').selectOption('paid');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('cell', { name: 'paid', exact: true }).waitFor();
      expect(await page.locator('tbody tr').count()).toBe(1);
      await node.ops.editOrder(orderId, { reference: ' cart 4711 ' }, { actor: 'desk', reason: '' });
      await page.getByLabel('Status').selectOption('');
      await page.getByLabel('Reference').fill(' cart 4711 ');
      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('cell', { name: 'cart 4711', exact: true }).waitFor();
      expect(await page.locator('tbody tr').count()).toBe(1);
      expect(page.url()).toContain('reference=+cart+4711+');
      await page.getByLabel('Or order id').fill(orderId);
      await page.getByRole('button', { name: 'Search' }).click();
      await page.getByRole('dialog').getByRole('cell', { name: 'till' }).waitFor();
      await page.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('link', { name: 'Ledger' }).click();
      await page.getByRole('cell', { name: 'create' }).waitFor();
      const due = `UPDATE orders SET status = 'expired', refund_due_at = now() WHERE order_id = $1`;
      await query(asAdmin(stores.databaseUrl), due, [orderId]);
      await operator.goTo('/refunds');
      await page.getByRole('button', { name: orderId }).waitFor();
    });
  }

  test('texts of others are only text', async () => {
    const saleId = await sold({ title: HOSTILE });
    await node.ops.change(saleId, { action: 'pause' }, { actor: 'ben', reason: HOSTILE });
    await operator.goTo('/sales');
    await shown(HOSTILE);
    for (const tab of ['overview', 'orders', 'ledger', 'verify']) {
      await showSale(saleId, tab);
      await operator.page.getByRole('heading', { name: HOSTILE }).waitFor();
    }
    await showSale(saleId, 'ledger');
    await operator.page.getByRole('cell', { name: HOSTILE, exact: true }).waitFor();
    await operator.page.getByRole('button', { name: 'Resume' }).click();
    await operator.page.getByRole('dialog').waitFor();
    expect(await operator.page.locator('img[src=x], main script').count()).toBe(0);
    expect(await operator.page.title()).not.toMatch(/^[12]$/);
    await operator.page.keyboard.press('Escape');
  });

  if (isRelease) {
    test('long ids, references and large numbers stay inside their card', async () => {
      const saleId = await sold({ stock: 2_000_000_000 }, 0);
      const { body } = await node.buy(saleId, 'B'.repeat(128));
      await node.ops.editOrder(body.orderId, { reference: 'r'.repeat(200) }, { actor: 'desk', reason: '' });
      const places = [
        { hash: `/sale/${saleId}/orders`, width: 1_280, text: 'r'.repeat(200) },
        { hash: '/nodes', width: 360, text: '(this node)' },
        { hash: '/sales', width: 360, text: '1,999,999,999 of' },
      ];
      const widerThanTheirCard = `[...document.querySelectorAll('td, .note')].flatMap((each) => {
      const text = document.createRange();
      text.selectNodeContents(each);
      const { right } = (each.closest('.sheet, .figure, main') ?? document.body).getBoundingClientRect();
      return text.getBoundingClientRect().right > right || each.scrollWidth > each.clientWidth ? [each.textContent] : [];
    })`;
      for (const { hash, width, text } of places) {
        await operator.page.setViewportSize({ width, height: 900 });
        await operator.goTo(hash);
        await shown(text);
        expect(await operator.page.evaluate(widerThanTheirCard)).toEqual([]);
      }
      await operator.page.setViewportSize({ width: 1_280, height: 900 });
    });
  }

  test('works by keyboard: from the list to a sale, and into a dialog and back', async () => {
    const saleId = await sold();
    const { page } = operator;
    await operator.goTo('/sales');
    await page.getByLabel('Sale id').focus();
    await page.keyboard.type(saleId);
    await page.keyboard.press('Enter');
    await shown('for each buyer');
    const focused = () => page.evaluate('document.activeElement.textContent');
    await until(
      async () => {
        await page.keyboard.press('Tab');
        return (await focused()) === 'Pause';
      },
      { what: 'the focus is on Pause' },
    );
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await operator.done();
    expect(await focused()).toBe('Pause');
  });

  test('has nothing that an accessibility check complains about', async () => {
    await operator.goTo('/sales');
    await shown('of 100');
    expect(await operator.violations()).toEqual([]);
  });
});
