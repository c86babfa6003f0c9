/** Listeners at a real node: a crowd that buys beside them loses nothing, and they hold nothing up. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { BuyerClient, type SaleUpdate } from '../../../src/client/index.ts';
import { connectionsWithin, openFilesLimit } from '../../../src/node/process/open-files.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { HTTP_SERVERS } from '../../support/http/http-servers.ts';
import { type CrowdSeen, ListeningCrowd } from '../../support/http/listening-crowd.ts';
import { metric } from '../../support/http/metrics.ts';
import { SaleListener } from '../../support/http/sale-listener.ts';
import { type CrowdResult, crowd } from '../../support/nodes/crowd.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { anyStore, expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { cpuSecondsOf, residentBytesOf } from '../../support/servers/process/process-table.ts';
import { inTier, isRelease } from '../../support/tier.ts';

const LISTENERS = inTier({ test: 250, release: 20_000 });
/** Half of a node's connections may be held by listeners. So it takes several nodes if this machine allows few open files. */
const NODES = Math.ceil(LISTENERS / Math.floor(connectionsWithin(openFilesLimit()) / 2));
const OF_NODE = Math.ceil(LISTENERS / NODES);
const BUYERS = inTier({ test: 750, release: 60_000 });
/** Before what is compared, so that the second crowd does not meet a node that is faster by then. */
const WARM_UPS = inTier({ test: 0, release: 1 });
const CLIENTS = 200;
const CONNECTIONS = String(2 * OF_NODE);
const GRACE = { SHUTDOWN_GRACE_MS: '60000' };
const END_LIMIT_MS = 30_000;

const portOf = (node: TestNode) => Number(new URL(node.publicUrl).port);

async function expectQuickStop(node: TestNode): Promise<void> {
  const began = Date.now();
  await node.stop();
  expect(Date.now() - began, 'milliseconds to the end').toBeLessThan(END_LIMIT_MS);
  expect(await node.log(), 'requests under way, without streams').toMatch(/"underWay":0,.*"msg":"stopping"/);
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

/** What a crowd's purchases at all nodes cost, as one line. */
async function bought(
  nodes: readonly TestNode[],
  saleId: string,
  listeners: number,
): Promise<{ result: CrowdResult; line: string }> {
  const cpuOfAll = () => sum(nodes.map(({ pid }) => cpuSecondsOf(pid)));
  const [cpu, began] = [cpuOfAll(), performance.now()];
  const buyers = Array.from({ length: BUYERS }, (_, i) => `buyer-${i}`);
  const urls = nodes.map(({ publicUrl }) => publicUrl);
  const result = await crowd({ url: urls, saleId, clients: CLIENTS, buyers });
  const seconds = (performance.now() - began) / 1_000;
  const sorted = result.answers.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(1);
  const cpuSeconds = cpuOfAll() - cpu;
  const megabytes = sum(nodes.map(({ pid }) => residentBytesOf(pid))) / 2 ** 20;
  const line =
    `${listeners} listeners: ${Math.round(BUYERS / seconds)} purchases/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
    `${((cpuSeconds / BUYERS) * 1e6).toFixed(1)} µs of processor time for each, ${Math.round((100 * cpuSeconds) / seconds)} % of a core, ` +
    `${Math.round(megabytes)} MB resident in ${nodes.length} nodes`;
  return { result, line };
}

test(`beside ${LISTENERS} listeners a crowd gets all that it buys, and each listener hears the end of it`, async () => {
  const stores = await redisAndPostgres();
  const env = { ...GRACE, WORKERS: '1', MAX_CONNECTIONS: CONNECTIONS };
  const nodes: TestNode[] = [];
  for (let i = 0; i < NODES; i++) {
    const node = await startTestNode({ ...stores, env });
    onTestFinished(() => node[Symbol.asyncDispose]());
    nodes.push(node);
  }
  const [first] = nodes as [TestNode];
  for (let i = 0; i < WARM_UPS; i++)
    await bought(nodes, await makeSale(first, { stock: BUYERS, segments: 8 }), 0);
  const alone = await bought(nodes, await makeSale(first, { stock: BUYERS, segments: 8 }), 0);
  const saleId = await makeSale(first, { stock: BUYERS, segments: 8 });
  const crowds = nodes.map(({ publicUrl }) => new ListeningCrowd(publicUrl, saleId, OF_NODE));
  onTestFinished(() => {
    for (const one of crowds) one[Symbol.dispose]();
  });
  const all = (what: string, condition: (seen: CrowdSeen) => boolean) =>
    until(async () => (await Promise.all(crowds.map((one) => one.seen()))).every(condition), {
      ...{ what, timeoutMs: 100_000 },
    });
  const each = (name: string) => Promise.all(nodes.map((node) => metric(node, name)));
  await all('all listen', ({ left }) => left[BUYERS] === OF_NODE);
  expect(await each('stockade_listeners')).toEqual(nodes.map(() => OF_NODE));
  using refused = new SaleListener(portOf(first), saleId);
  await until(() => refused.status === 503, { what: 'one more is refused' });
  expect(await metric(first, 'stockade_listeners_refused_total')).toBe(1);

  const beside = await bought(nodes, saleId, NODES * OF_NODE);
  console.log(`${alone.line}\n${beside.line}`);
  expect(beside.result.codes).toEqual({ committed: BUYERS });
  await expectSold(first, saleId, BUYERS);
  await all('all know that nothing is left', ({ left }) => left[0] === OF_NODE);
  await all('none was closed or refused', ({ closed, refused }) => closed === 0 && refused === 0);
  expect(await each('stockade_connections_refused_total')).toEqual(nodes.map(() => 0));

  await first.ops.change(saleId, { action: 'close' }, BY);
  await all('all know that it is over', ({ ended }) => ended === OF_NODE);
  await until(async () => sum(await each('stockade_listeners')) === 0, { what: 'nobody listens' });
  await Promise.all(nodes.map(expectQuickStop));
});

describe('a listener', () => {
  if (isRelease) {
    test('the client follows a sale over a restart, to its end', async () => {
      await using node = await startTestNode({ ...(await anyStore()), env: GRACE });
      const saleId = await makeSale(node, { stock: 10 });
      const updates: SaleUpdate[] = [];
      // The restarted node has another port.
      const moving = (url: string | URL | Request, init?: RequestInit) =>
        fetch(String(url).replace('http://moving', node.publicUrl), init);
      const client = new BuyerClient({ url: 'http://moving', fetch: moving as typeof fetch });
      const followed = (async () => {
        for await (const update of client.followSale(saleId)) updates.push(update);
      })();
      const told = (what: string, of: object) =>
        until(
          () => {
            expect(updates.at(-1)).toMatchObject(of);
            return true;
          },
          { what },
        );
      await told('the state', { code: 'found', sale: { id: saleId, state: 'open', remaining: 10 } });
      await node.buy(saleId, 'ann');
      await told('the purchase', { code: 'found', sale: { remaining: 9, soldOut: false } });
      await expectQuickStop(node);
      await told('the stop', { code: 'interrupted' });
      await node.start();
      await told('the state again', { code: 'found', sale: { remaining: 9 } });
      await node.ops.change(saleId, { action: 'pause' }, BY);
      await told('the pause', { code: 'found', sale: { state: 'paused' } });
      await node.ops.change(saleId, { action: 'close' }, BY);
      await followed;
      expect(updates.slice(-2)).toMatchObject([
        { code: 'found', sale: { state: 'ended' } },
        { code: 'ended', reason: 'closed' },
      ]);
    });
  }

  test.each(inTier({ test: HTTP_SERVERS.slice(0, 1), release: HTTP_SERVERS }))(
    'over %s, a stream with nothing to tell outlives the limit of silence',
    async (kind) => {
      await using node = await startTestNode({ ...(await anyStore()), env: { HTTP_SERVER: kind } });
      const saleId = await makeSale(node, { stock: 10 });
      using listener = new SaleListener(portOf(node), saleId);
      await until(() => listener.comments >= 4, {
        what: 'four comments, several seconds apart',
        timeoutMs: 60_000,
      });
      expect(listener).toMatchObject({ seen: 1, isClosed: false });
      await node.buy(saleId, 'ann');
      await until(() => listener.last?.data.remaining === 9, { what: 'the purchase' });
      await expectQuickStop(node);
    },
  );
});
