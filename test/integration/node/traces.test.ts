/** Traces of purchases, from a node and a sync to a stand-in for a collector. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { embedded, expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { SyncProgram } from '../../support/nodes/sync-program.ts';
import { inTier, isRelease } from '../../support/tier.ts';
import { until } from '../../support/until.ts';
import { OtlpCollector, type SeenSpan } from '../../support/watching/otlp-collector.ts';

const ALL = { OTEL_TRACES_SAMPLER: 'always_on' };
const REQUEST = 'POST /v1/sales/{saleId}/orders';
const CLIENT_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CLIENT_SPAN = '00f067aa0ba902b7';
/** Threads convert their clocks to the time of day, whose unit is a millisecond. */
const CLOCKS_MS = 2;

/** A collector, and a node that traces every request to it. For tests that need no other settings; each has its own sale. */
let shared: { collector: OtlpCollector; node: TestNode };

beforeAll(async () => {
  const collector = await OtlpCollector.start();
  const env = { ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, PUBLIC_ORDER_NOTES: '1' };
  shared = { collector, node: await startTestNode({ ...(await redisAndPostgres()), env }) };
});

afterAll(async () => {
  await shared?.node[Symbol.asyncDispose]();
  await shared?.collector[Symbol.asyncDispose]();
});

async function aCollector(options?: { hangs: boolean }): Promise<OtlpCollector> {
  const collector = await OtlpCollector.start(options);
  onTestFinished(() => collector[Symbol.asyncDispose]());
  return collector;
}

async function aNode(env: Record<string, string>): Promise<TestNode> {
  const node = await startTestNode({ ...(await redisAndPostgres()), env });
  onTestFinished(() => node[Symbol.asyncDispose]());
  return node;
}

/** The spans of the trace that an answer names, once all of `names` have arrived. */
async function traceOf(
  collector: OtlpCollector,
  { headers }: { headers: Readonly<Record<string, string>> },
  names: readonly string[],
): Promise<SeenSpan[]> {
  const traceId = headers.traceresponse?.split('-')[1];
  const ofTrace = () => collector.spans.filter((span) => span.traceId === traceId);
  await until(() => names.every((name) => ofTrace().some((span) => span.name === name)), {
    what: `the spans ${names.join(', ')} of ${traceId}`,
  });
  return ofTrace();
}

/** The only span with this name. */
function only(spans: readonly SeenSpan[], name: string): SeenSpan {
  const found = spans.filter((span) => span.name === name);
  expect(found, name).toHaveLength(1);
  return found[0]!;
}

async function spanCounts(node: TestNode): Promise<Record<string, number>> {
  const text = String((await node.opsRequest('/metrics')).body);
  const lines = text.matchAll(/^stockade_trace_spans_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]));
}

test('a purchase is one trace, from its request to the commit', async () => {
  const { collector, node } = shared;
  const { exported = 0 } = await spanCounts(node);
  const saleId = await makeSale(node);
  const answer = await node.buy(saleId, 'a-buyer-with-a-name', { key: 'a-key-of-the-buyer' });
  expect(answer.status).toBe(201);

  const spans = await traceOf(collector, answer, [REQUEST, 'commit']);
  expect(spans.map(({ name }) => name).sort()).toEqual([REQUEST, 'await commit', 'commit', 'queue', 'take']);
  const request = only(spans, REQUEST);
  expect(request).toMatchObject({
    service: 'stockade',
    parentSpanId: '',
    isFailure: false,
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': 201,
      'stockade.outcome': 'committed',
      'stockade.sale': saleId,
      'stockade.order': answer.body.orderId,
    },
  });
  expect(answer.headers.traceresponse).toBe(`00-${request.traceId}-${request.spanId}-01`);

  const [queue, take, wait, commit] = ['queue', 'take', 'await commit', 'commit'].map((name) =>
    only(spans, name),
  ) as [SeenSpan, SeenSpan, SeenSpan, SeenSpan];
  for (const part of [queue, take, wait, commit]) {
    expect(part.parentSpanId, part.name).toBe(request.spanId);
    expect(part.toMs, part.name).toBeGreaterThanOrEqual(part.fromMs);
  }
  expect(queue.fromMs).toBeGreaterThanOrEqual(request.fromMs);
  expect(take.fromMs).toBe(queue.toMs);
  expect(wait.fromMs).toBe(take.toMs);
  expect(request.toMs).toBeGreaterThanOrEqual(wait.toMs);
  expect(commit.fromMs).toBeGreaterThan(take.fromMs - CLOCKS_MS);
  expect(commit.toMs).toBeLessThan(wait.toMs + CLOCKS_MS);
  expect(take.attributes).toMatchObject({ 'stockade.batch.orders': 1 });
  expect(commit.attributes).toMatchObject({
    'stockade.order': answer.body.orderId,
    'stockade.batch.orders': 1,
  });

  const text = collector.texts.join('\n');
  expect(text).not.toContain('a-buyer-with-a-name');
  expect(text).not.toContain('a-key-of-the-buyer');
  // The node counts spans when it hears that the collector has them.
  await until(async () => (await spanCounts(node)).exported! >= exported + 5, {
    what: 'the spans are counted',
  });
  expect(await spanCounts(node)).toEqual({ exported: exported + 5, failed: 0, dropped: 0 });
});

test('an order that is traced is stored as it is without a trace', async () => {
  const { collector, node } = shared;
  const saleId = await makeSale(node);
  const plain = await node.buy(saleId, 'alice');
  const noted = await node.buy(saleId, 'bob', {}, { reference: 'basket 7', metadata: { gift: true } });
  await traceOf(collector, noted, ['commit']);

  const stored = async (orderId: string) => (await node.opsRequest(`/v1/orders/${orderId}`)).body;
  const order = await stored(plain.body.orderId);
  expect([order.reference ?? null, order.metadata ?? {}]).toEqual([null, {}]);
  expect(await stored(noted.body.orderId)).toMatchObject({ reference: 'basket 7', metadata: { gift: true } });
  await expectSold(node, saleId, 2);
});

test('a refusal is a trace too', async () => {
  const { collector, node } = shared;
  const answer = await node.buy('no-such-sale', 'alice');
  const spans = await traceOf(collector, answer, [REQUEST]);
  expect(only(spans, REQUEST)).toMatchObject({
    isFailure: false,
    attributes: { 'http.response.status_code': 404, 'stockade.outcome': 'unknown_sale' },
  });
});

describe('the traceparent of a client', () => {
  test('that traces is continued, and one that does not is not', async () => {
    const collector = await aCollector();
    // The share of the node itself is 0, so that only clients decide.
    const node = await aNode({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER_ARG: '0',
    });
    const saleId = await makeSale(node);
    const buy = (buyerId: string, traceparent?: string) =>
      node.buy(saleId, buyerId, traceparent === undefined ? {} : { headers: { traceparent } });

    const traced = await buy('alice', `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01`);
    const spans = await traceOf(collector, traced, [REQUEST, 'commit']);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([CLIENT_TRACE]));
    expect(only(spans, REQUEST).parentSpanId).toBe(CLIENT_SPAN);

    for (const untraced of [undefined, `00-${CLIENT_TRACE}-${CLIENT_SPAN}-00`, 'nonsense', '00-0-0-01']) {
      const answer = await buy(`with ${untraced}`.replaceAll(' ', '-'), untraced);
      expect(answer.status).toBe(201);
      expect(answer.headers, `for ${untraced}`).not.toHaveProperty('traceresponse');
    }
    await node.stop();
    expect(collector.spans).toHaveLength(spans.length);
  });
});

if (isRelease) {
  test('a sync in another process joins the trace', async () => {
    const collector = await aCollector();
    const stores = await redisAndPostgres();
    const traced = { ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const node = await startTestNode({ ...stores, env: { ...traced, SYNC: 'off' } });
    onTestFinished(() => node[Symbol.asyncDispose]());
    await using _sync = await SyncProgram.start({
      ...{ REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl, KEY_PREFIX: stores.keyPrefix },
      ...{ OPS_TOKEN: node.opsToken, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
      OTEL_SERVICE_NAME: 'stockade-sync',
    });
    const answer = await node.buy(await makeSale(node), 'alice');
    expect(answer.status).toBe(201);

    const spans = await traceOf(collector, answer, [REQUEST, 'commit']);
    const commit = only(spans, 'commit');
    expect(commit.service).toBe('stockade-sync');
    expect(commit.parentSpanId).toBe(only(spans, REQUEST).spanId);
  });
}

if (isRelease) {
  test('nothing is traced unless a collector is named', async () => {
    const collector = await aCollector();
    const off = [ALL, { ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_EXPORTER: 'none' }];
    for (const env of off) {
      const node = await aNode(env);
      const traceparent = `00-${CLIENT_TRACE}-${CLIENT_SPAN}-01`;
      const answer = await node.buy(await makeSale(node), 'alice', { headers: { traceparent } });
      expect(answer.status).toBe(201);
      expect(answer.headers).not.toHaveProperty('traceresponse');
      expect(await spanCounts(node)).toEqual({ exported: 0, failed: 0, dropped: 0 });
      await node.stop();
    }
    expect(collector.requests).toBe(0);
  });
}

describe('purchases are answered as ever', () => {
  /** Each has four spans in the worker, so that before a release a thread has more than it keeps. */
  const MANY = inTier({ test: 100, release: 2_500 });

  test('while the collector takes requests and does not answer; spans are bounded and counted', async () => {
    const collector = await aCollector({ hangs: true });
    const node = await aNode({ ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    const saleId = await makeSale(node, { stock: MANY });
    const buyers = Array.from({ length: MANY }, (_, i) => `buyer-${i}`);
    const answers = await Promise.all(buyers.map((buyer) => node.buy(saleId, buyer)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    // A busy machine may answer all of them before the first batch is sent.
    await until(() => collector.requests > 0, { what: 'spans are sent' });
    const counts = await spanCounts(node);
    expect(counts.exported).toBe(0);
    if (isRelease) expect(counts.dropped).toBeGreaterThan(0);
    else expect(counts.dropped).toBe(0);
    await expectSold(node, saleId, MANY);
    // It does not wait for the collector either.
    await node.stop();
  });

  if (isRelease) {
    test('while there is no collector', async () => {
      const node = await aNode({
        ...ALL,
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
        OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      });
      const saleId = await makeSale(node);
      expect((await node.buy(saleId, 'alice')).status).toBe(201);
      await until(async () => ((await spanCounts(node)).failed ?? 0) >= 5, { what: 'failed spans' });
      expect(await node.log()).toMatch(/traces can’t be sent to the collector/);
      expect((await node.buy(saleId, 'bob')).status).toBe(201);
      await expectSold(node, saleId, 2);
    });
  }
});

// The same spans, from the same code, on another store.
if (isRelease) {
  test('in one process, without Redis, a purchase is the same trace', async () => {
    const collector = await aCollector();
    const node = await startTestNode({
      ...(await embedded()),
      env: { ...ALL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    });
    onTestFinished(() => node[Symbol.asyncDispose]());
    const answer = await node.buy(await makeSale(node), 'alice');
    const spans = await traceOf(collector, answer, [REQUEST, 'commit']);
    expect(spans.map(({ name }) => name).sort()).toEqual([
      REQUEST,
      'await commit',
      'commit',
      'queue',
      'take',
    ]);
  });
}
