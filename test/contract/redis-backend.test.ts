/** Cases of the Redis backend alone: lost replies, a server that hangs or is full, keys that other programs wrote. */
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Sale } from '../../src/engine/contract.ts';
import { BackendCorrupt, NotExecuted, OutcomeUnknown, StaleGeneration } from '../../src/engine/errors.ts';
import { DRAFT_KEPT_MS, TOMBSTONE_KEPT_MS } from '../../src/engine/limits.ts';
import { Keys } from '../../src/engine/redis/protocol/keys.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { freshPrefix, redisUrl, until } from '../support/fixtures.ts';
import { isSettled } from '../support/locks/locks.ts';
import { asRedisAdmin } from '../support/postgres/least-rights.ts';
import { TcpProxy } from '../support/servers/network/tcp-proxy.ts';
import { RedisServer } from '../support/servers/redis-server.ts';
import {
  aSale,
  kinds,
  type LoadedSale,
  type LoadOptions,
  loadSale,
  refilled,
  served,
} from '../support/shop/sales.ts';

/** A limit that is never reached, except where a test is about it. */
const PATIENT_MS = 5_000;
/** A limit that one take reaches, but no take does whose server answers. */
const SHORT_MS = 1_000;
const LIMIT_MS = 10_000;
/** Redis' PTTL of a key that does not expire. */
const FOR_EVER = -1;

let teardown: (() => unknown)[] = [];
let loaded: LoadedSale[] = [];

beforeEach(() => {
  teardown = [];
  loaded = [];
});

afterEach(async () => {
  try {
    for (const sale of loaded) await sale.expectConserved();
  } finally {
    for (const release of teardown.reverse()) await release();
  }
});

async function open(
  url: string,
  { keyPrefix = freshPrefix(), takeTimeoutMs = PATIENT_MS } = {},
): Promise<RedisBackend> {
  const backend = await RedisBackend.open({ url, keyPrefix, takeTimeoutMs, maxLogOrders: 1000 });
  teardown.push(() => backend.close());
  return backend;
}

async function load(
  backend: RedisBackend,
  spec: Partial<Sale> = {},
  options: LoadOptions = {},
): Promise<LoadedSale> {
  const sale = await loadSale(backend, aSale(spec), options);
  loaded.push(sale);
  return sale;
}

/** A client of the same server, which can do what other programs might. */
function outsider(url: string): Redis {
  const client = new Redis(asRedisAdmin(url));
  teardown.push(() => client.disconnect());
  return client;
}

async function startProxy(): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(Number(new URL(redisUrl()).port));
  teardown.push(() => proxy.stop());
  return proxy;
}

async function startServer(): Promise<RedisServer> {
  const server = await RedisServer.start();
  teardown.push(() => server[Symbol.asyncDispose]());
  return server;
}

/** Matches requests that carry this word, the first `times` of them. */
function requestsWith(word: string, times = Number.POSITIVE_INFINITY): (request: Buffer) => boolean {
  let matched = 0;
  return (request) => request.includes(word) && matched++ < times;
}

/** Does not wait for the old connection to close, which may never happen. */
const recovered = (backend: RedisBackend) =>
  until(() => backend.takes.ready, { what: 'the take connection is back', timeoutMs: 15_000 });

/** Expects that the answer comes without a request to Redis. */
async function expectRefusedAtOnce(ask: () => Promise<unknown>): Promise<void> {
  const refused = expect(ask()).rejects.toThrow(NotExecuted);
  expect(await isSettled(refused)).toBe(true);
  await refused;
}

describe('scripts that Redis has forgotten', () => {
  it('are sent again, and the take happens once', async () => {
    const sale = await load(await open(redisUrl()));
    await sale.sellEach(1);
    await outsider(redisUrl()).script('FLUSH');
    await sale.sellEach(1);
    expect(await sale.left()).toEqual([8]);
  });

  it('affect no take in flight', async () => {
    const sale = await load(await open(redisUrl()), { stock: 400, segments: 4 });
    const admin = outsider(redisUrl());
    const takes = sale.crowd(200).map(async (order, i) => {
      if (i % 20 === 0) await admin.script('FLUSH');
      // A lane each: batches of one lane are never in flight together.
      return kinds(await sale.take([order], i % 4, { lane: i }))[0];
    });
    expect(new Set(await Promise.all(takes))).toEqual(new Set(['taken']));
    expect((await sale.counters()).map((counters) => counters.orders)).toEqual([50, 50, 50, 50]);
  });
});

describe('a lost reply', () => {
  const setUp = async (spec?: Partial<Sale>, options?: LoadOptions) => {
    const proxy = await startProxy();
    const backend = await open(proxy.through(redisUrl()));
    return { proxy, backend, sale: await load(backend, spec, options) };
  };

  it('makes the outcome unknown; the take happened once, and a repeat returns its result', async () => {
    const { proxy, backend, sale } = await setUp();
    const orders = [sale.order('anna'), sale.order('ben', { key: 'click-1' })];
    const loss = proxy.loseReplies(requestsWith('anna'));
    await expect(sale.take(orders)).rejects.toThrow(OutcomeUnknown);
    await loss.lost;
    await recovered(backend);
    expect(await sale.counters()).toMatchObject([{ left: 8, seq: 1, orders: 2 }]);
    const again = served(await sale.take(orders));
    expect(again.results).toMatchObject(orders.map(({ orderId }) => ({ kind: 'replay', orderId, seq: 1 })));
    expect(await sale.left()).toEqual([8]);
  });

  it('of a refill makes the outcome unknown as well, and it happened once', async () => {
    const { proxy, backend, sale } = await setUp({ stock: 5, segments: 2 }, { split: [0, 5] });
    const anna = sale.order('anna');
    const loss = proxy.loseReplies(requestsWith('anna'));
    await expect(sale.refillAndTake([anna])).rejects.toThrow(OutcomeUnknown);
    await loss.lost;
    await recovered(backend);
    expect(await sale.left()).toEqual([2, 2]);
    expect(kinds(refilled(await sale.refillAndTake([anna])).take)).toEqual(['replay']);
  });

  it('looks like a lost request, which a repeat takes', async () => {
    const { proxy, backend, sale } = await setUp();
    const anna = sale.order('anna');
    const loss = proxy.loseRequests(requestsWith('anna'));
    await expect(sale.take([anna])).rejects.toThrow(OutcomeUnknown);
    await loss.lost;
    await recovered(backend);
    expect(kinds(await sale.take([anna]))).toEqual(['taken']);
  });

  it('does not lose work that is retried automatically', async () => {
    const { proxy, sale } = await setUp();
    const [anna] = await sale.sellEach(1);
    const loss = proxy.loseReplies(requestsWith(anna!.buyerId));
    await sale.backend.log.compensate({ ...sale.ref(), ...anna!, units: 1 });
    sale.returned += 1;
    await loss.lost;
    expect(await sale.left()).toEqual([10]);
  });
});

describe('a batch that arrives late', () => {
  it('is superseded by the newer ticket of its repeat', async () => {
    const proxy = await startProxy();
    const backend = await open(proxy.through(redisUrl()), { takeTimeoutMs: SHORT_MS });
    const sale = await load(backend);
    const anna = sale.order('anna');
    const hold = proxy.hold(requestsWith('anna', 1));
    await expect(sale.take([anna])).rejects.toThrow(OutcomeUnknown);
    await hold.held;
    // The network drops the old connection without a message; a new one is made nevertheless.
    await recovered(backend);
    expect(kinds(await sale.take([anna]))).toEqual(['taken']);
    // If a segment executed the late batch now, it would find units, and a buyer that may still buy.
    await sale.compensate(anna);
    await proxy.release();
    expect(await sale.held('anna')).toEqual([]);
    expect(await sale.counters()).toMatchObject([{ left: 10, orders: 1 }]);
  });
});

describe('a connection that is accepted and never answers', () => {
  it('is replaced by another at the time limit', async () => {
    const proxy = await startProxy();
    const backend = await open(proxy.through(redisUrl()), { takeTimeoutMs: SHORT_MS });
    const sale = await load(backend);
    const anna = sale.order('anna');
    const [isTake, isGreeting] = [requestsWith('anna', 1), requestsWith('info', 1)];
    proxy.hold((request) => isTake(request) || isGreeting(request));
    await expect(sale.take([anna])).rejects.toThrow(OutcomeUnknown);
    await until(() => proxy.counts.held === 2, { what: 'the next connection hangs in its greeting' });
    await expect(sale.take([anna])).rejects.toThrow(NotExecuted);
    await recovered(backend);
    expect(kinds(await sale.take([anna]))).toEqual(['taken']);
    await proxy.release();
  });
});

describe('a Redis that hangs', () => {
  it('makes the outcome unknown in time, refuses at once meanwhile, and serves when it is back', async () => {
    const server = await startServer();
    const backend = await open(server.url, { takeTimeoutMs: SHORT_MS });
    const sale = await load(backend);
    await sale.sellEach(1);
    await server.pause();
    const [anna, ben] = [sale.order('anna'), sale.order('ben')];
    const begun = performance.now();
    await expect(sale.take([anna])).rejects.toThrow(OutcomeUnknown);
    expect(performance.now() - begun).toBeLessThan(LIMIT_MS);

    await until(() => !backend.takes.ready, { what: 'the dead connection is dropped' });
    await expectRefusedAtOnce(() => sale.take([ben]));

    server.resume();
    await backend.takes.whenReady(10_000);
    expect(kinds(await sale.take([anna, ben]))).toContain('taken');
    expect(await sale.counters()).toMatchObject([{ left: 7, orders: 3 }]);
  });

  it('delays a caller no longer than the caller’s limit', async () => {
    const server = await startServer();
    const backend = await open(server.url);
    await server.kill();
    await until(() => !backend.takes.ready, { what: 'the end is noticed' });
    const begun = performance.now();
    await backend.takes.whenReady(20);
    expect(performance.now() - begun).toBeLessThan(LIMIT_MS);
    expect(backend.takes.ready).toBe(false);
  });
});

describe('a Redis that can’t be reached', () => {
  it('is refused at once, and nothing was done', async () => {
    const server = await startServer();
    const backend = await open(server.url);
    const sale = await loadSale(backend, aSale());
    await server.kill();
    await until(() => !backend.takes.ready, { what: 'the end is noticed' });
    await expectRefusedAtOnce(() => sale.take(sale.crowd(1)));
    await expectRefusedAtOnce(() => sale.refillAndTake(sale.crowd(1)));
    // Hints are best effort, so a lost one does no harm.
    backend.takes.hint({ saleId: 'anything', segments: [0], awaited: true });
  });

  it('comes back empty and answers stale, not zero', async () => {
    const server = await startServer();
    const backend = await open(server.url);
    const sale = await loadSale(backend, aSale());
    await server.restart();
    await recovered(backend);
    expect(await sale.take(sale.crowd(1))).toEqual({ status: 'stale' });
    expect(await sale.refillAndTake(sale.crowd(1))).toEqual({ status: 'stale' });
    expect(await backend.sales.read(sale.sale.id)).toBeUndefined();
  });

  it('can not be opened', async () => {
    const server = await startServer();
    await server.kill();
    await expect(open(server.url)).rejects.toThrow(/ECONNREFUSED|closed/);
  });
});

describe('a Redis that is full', () => {
  it('refuses takes before anything is written, and serves when there is room', async () => {
    const server = await startServer();
    const backend = await open(server.url);
    const sale = await load(backend, { stock: 2, segments: 2 }, { split: [0, 2] });
    const admin = outsider(server.url);
    const before = await contentOf(admin);
    await admin.config('SET', 'maxmemory', '1');
    const anna = sale.order('anna');
    await expect(sale.take([anna], 1)).rejects.toThrow(NotExecuted);
    await expect(sale.refillAndTake([anna])).rejects.toThrow(NotExecuted);
    expect(await contentOf(admin)).toEqual(before);
    await admin.config('SET', 'maxmemory', '0');
    expect(kinds(refilled(await sale.refillAndTake([anna])).take)).toEqual(['taken']);
  });
});

describe('keys that another program has overwritten', () => {
  const setUp = async () => {
    const prefix = freshPrefix();
    const backend = await open(redisUrl(), { keyPrefix: prefix });
    const sale = await loadSale(backend, aSale({ stock: 6, segments: 2 }));
    const anna = sale.order('anna');
    await sale.take([anna]);
    const key = (part: string, segment = 0) => `${prefix}{${sale.sale.id}:${segment}}:${part}`;
    return { backend, sale, anna, prefix, admin: outsider(redisUrl()), key };
  };

  it.each(['segment', 'buyers', 'log'])(
    'fail a take when %s is of another type, and nothing is written',
    async (part) => {
      const { sale, anna, prefix, admin, key } = await setUp();
      await admin.set(key(part), 'not what it was');
      const before = await contentOf(admin, prefix);
      await expect(sale.take([sale.order('ben')])).rejects.toThrow(BackendCorrupt);
      await expect(sale.refillAndTake([sale.order('ben')])).rejects.toThrow(BackendCorrupt);
      if (part !== 'log') await expect(sale.compensate(anna)).rejects.toThrow(/WRONGTYPE/);
      if (part !== 'buyers')
        await expect(sale.backend.log.advance([sale.watermark(1, 1)])).rejects.toThrow(/WRONGTYPE/);
      expect(await contentOf(admin, prefix)).toEqual(before);
    },
  );

  it.each(
    ['left', 'limit', 'seq', 'committed', 'committedOrders', 'orders', 'taken'].flatMap((field) =>
      ['', 'many', 'nan', 'inf', '-1', '1.5'].map((value) => [field, value] as const),
    ),
  )('fail a take when %s is "%s", and nothing is written', async (field, value) => {
    const { sale, anna, prefix, admin, key } = await setUp();
    await admin.hset(key('segment'), field, value);
    const before = await contentOf(admin, prefix);
    await expect(sale.take([sale.order('ben')])).rejects.toThrow(BackendCorrupt);
    await expect(sale.take([anna])).rejects.toThrow(BackendCorrupt);
    expect(await contentOf(admin, prefix)).toEqual(before);
  });

  it.each(['state', 'left', 'limit', 'seq', 'tail', 'committed', 'committedOrders', 'orders', 'taken'])(
    'fail a take when %s is missing',
    async (field) => {
      const { sale, prefix, admin, key } = await setUp();
      await admin.hdel(key('segment'), field);
      const before = await contentOf(admin, prefix);
      await expect(sale.take([sale.order('ben')])).rejects.toThrow(BackendCorrupt);
      expect(await contentOf(admin, prefix)).toEqual(before);
    },
  );

  it.each(['many', '1.5', '1e3', ''])(
    'fail a refill before any unit moves when a donor has "%s" units',
    async (left) => {
      const { sale, prefix, admin, key } = await setUp();
      await admin.hset(key('segment', 1), 'left', left);
      const before = await contentOf(admin, prefix);
      const all = sale.crowd(6);
      await expect(sale.refillAndTake(all)).rejects.toThrow(BackendCorrupt);
      expect(await contentOf(admin, prefix)).toEqual(before);
    },
  );

  it('are not corrected to fewer than zero units', async () => {
    const keyPrefix = freshPrefix();
    const backend = await open(redisUrl(), { keyPrefix });
    const sale = await load(backend, { stock: 10, segments: 1 });
    await sale.sellEach(2);
    const redis = outsider(redisUrl());
    const { segment } = new Keys(keyPrefix).segment(sale.ref());
    await redis.hset(segment, 'supplied', 1);
    expect(await backend.audits.correct(sale.ref(), 'left', 1 - 8 - 2)).toBe(false);
    expect(await redis.hget(segment, 'left')).toBe('8');
    expect(await backend.audits.correct(sale.ref(), 'supplied', 1 - 8 - 2)).toBe(true);
  });

  it('are corrected to zero units', async () => {
    const keyPrefix = freshPrefix();
    const backend = await open(redisUrl(), { keyPrefix });
    const sale = await load(backend, { stock: 2, segments: 1 });
    await sale.sellEach(2);
    const redis = outsider(redisUrl());
    const { segment } = new Keys(keyPrefix).segment(sale.ref());
    await redis.hset(segment, 'left', 1);
    expect(await backend.audits.correct(sale.ref(), 'left', 2 - 1 - 2)).toBe(true);
    expect(await redis.hget(segment, 'left')).toBe('0');
  });

  it('fail a compensation before the record is touched', async () => {
    const { sale, anna, admin, key } = await setUp();
    await admin.hset(key('segment'), 'left', 'many');
    await expect(sale.compensate(anna)).rejects.toThrow(/CORRUPT/);
    expect(await sale.held('anna')).toHaveLength(1);
  });

  it('are never counted as zero in a snapshot, a log or a recall', async () => {
    const { sale, admin, key } = await setUp();
    await admin.hdel(key('segment'), 'left', 'seq', 'committed');
    await expect(sale.counters()).rejects.toThrow(BackendCorrupt);
    const [read] = await sale.backend.log.readLog([sale.position()], 10);
    expect(read).toMatchObject({ head: undefined, entries: [], fault: expect.stringContaining('null') });
    await expect(sale.held('anna')).rejects.toThrow(/CORRUPT/);
  });

  it('also mean a log that is newer than its segment: the take is refused and nothing is written', async () => {
    const { sale, prefix, admin, key } = await setUp();
    await admin.xadd(key('log'), '1-7', 'p', '', 'n', '1', 'o', '5 ben 1 ');
    const before = await contentOf(admin, prefix);
    await expect(sale.take([sale.order('ben')])).rejects.toThrow(BackendCorrupt);
    expect(await contentOf(admin, prefix)).toEqual(before);
  });

  it('are not read as this generation when the log has entries of another', async () => {
    const { sale, anna, admin, key } = await setUp();
    await admin.xadd(key('log'), '2-1', 'p', '', 'n', '1', 'o', '5 ben 1 ');
    const [log] = await sale.backend.log.readLog([sale.position()], 10);
    expect(log!.entries.map((entry) => entry.orders)).toEqual([[anna]]);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'are not made by an order of %d units',
    async (quantity) => {
      const { sale, prefix, admin } = await setUp();
      const before = await contentOf(admin, prefix);
      const orders = [sale.order('ben'), sale.order('cleo', { quantity })];
      await expect(sale.take(orders)).rejects.toThrow(NotExecuted);
      expect(await contentOf(admin, prefix)).toEqual(before);
    },
  );
});

describe('the keys', () => {
  it('of a segment share a hash tag of their own, and the sale has another', async () => {
    const prefix = freshPrefix();
    const sale = await load(await open(redisUrl(), { keyPrefix: prefix }), { segments: 2 });
    await sale.sellEach(1, 0);
    await sale.sellEach(1, 1);
    const { id } = sale.sale;
    const segments = [0, 1].flatMap((i) =>
      ['buyers', 'log', 'segment'].map((part) => `${prefix}{${id}:${i}}:${part}`),
    );
    expect(await outsider(redisUrl()).keys(`${prefix}*`)).toEqual(
      expect.arrayContaining([...segments, `${prefix}{${id}}:sale`]),
    );
  });

  it('of a draft expires, and stays once it is loaded', async () => {
    const keyPrefix = freshPrefix();
    const backend = await open(redisUrl(), { keyPrefix });
    const sale = await loadSale(backend, aSale({ segments: 1 }));
    const redis = outsider(redisUrl());
    const { draft, buyers } = new Keys(keyPrefix).segment(sale.ref());
    const ref = { ...sale.ref(), generation: 2, draft: { id: 'mine', writes: 0 } };
    await backend.sales.beginDraft(ref);
    const order = { orderId: '1', quantity: 1, key: '', seq: 0 };
    const written = { ...ref, draft: { id: 'mine', writes: 1 } };
    await backend.sales.draftHoldings(written, [{ buyerId: 'anna', orders: [order] }]);
    const keptMs = await redis.pttl(draft);
    expect(keptMs).toBeGreaterThan(DRAFT_KEPT_MS / 2);
    expect(keptMs).toBeLessThanOrEqual(DRAFT_KEPT_MS);
    await sale.freeze();
    await backend.sales.loadSegment({ ...ref, left: 5, perBuyerLimit: 1, buyers: written.draft });
    expect(await redis.pttl(buyers)).toBe(FOR_EVER);
  });

  it('of an archived sale is one, which is no record for any reader, and expires', async () => {
    const keyPrefix = freshPrefix();
    const backend = await open(redisUrl(), { keyPrefix });
    const { sale } = await loadSale(backend, aSale({ segments: 70 }));
    const redis = outsider(redisUrl());
    await backend.sales.archive({ saleId: sale.id, generation: 2 });
    const key = new Keys(keyPrefix).sale(sale.id);
    expect((await redis.keys(`${keyPrefix}*`)).sort()).toEqual([`${keyPrefix}changes`, key].sort());
    expect(await redis.hgetall(key)).toEqual({ generation: '2' });
    const keptMs = await redis.pttl(key);
    expect(keptMs).toBeGreaterThan(TOMBSTONE_KEPT_MS / 2);
    expect(keptMs).toBeLessThanOrEqual(TOMBSTONE_KEPT_MS);
    // A process has given a unit back, and raises the epoch only now.
    await backend.sales.reopen(sale.id);
    expect(await backend.sales.read(sale.id)).toBeUndefined();
    expect(await backend.sales.versions([sale.id])).toEqual([undefined]);
    await loadSale(backend, sale, { generation: 3 });
    expect(await redis.pttl(key)).toBe(FOR_EVER);
    expect(await backend.sales.read(sale.id)).toMatchObject({ generation: 3, epoch: 1 });
  });

  it('say that messages may have been lost when their connection was cut', async () => {
    const proxy = await startProxy();
    const backend = await open(proxy.through(redisUrl()));
    let interruptions = 0;
    await backend.subscribe({ hint: () => {}, resubscribed: () => interruptions++ });
    expect(interruptions).toBe(0);
    proxy.cutAll();
    await until(() => interruptions > 0, { what: 'the subscription is back' });
  });

  it('of two installations on one Redis are separate, and so are their messages', async () => {
    const [one, two] = [await open(redisUrl()), await open(redisUrl())];
    const spec = { id: 'the-same' };
    const first = await load(one, { ...spec, stock: 1 });
    const second = await load(two, { ...spec, stock: 5 });
    const heard: string[] = [];
    await one.subscribe({ hint: ({ saleId }) => heard.push(saleId) });
    two.takes.hint({ saleId: 'of-two', segments: [0], awaited: true });
    one.takes.hint({ saleId: 'of-one', segments: [0], awaited: true });
    await until(() => heard.length > 0, { what: 'a hint' });
    expect(heard).toEqual(['of-one']);
    expect([await first.left(), await second.left()]).toEqual([[1], [5]]);
  });
});

/** Everything under a prefix, as it is stored. */
async function contentOf(client: Redis, prefix = ''): Promise<Record<string, unknown>> {
  const content: Record<string, unknown> = {};
  for (const key of (await client.keys(`${prefix}*`)).sort()) {
    const type = await client.type(key);
    if (type === 'hash') content[key] = await client.hgetall(key);
    else if (type === 'stream') content[key] = await client.xrange(key, '-', '+');
    else content[key] = await client.get(key);
  }
  return content;
}

it('leaves no connection behind when it is closed', async () => {
  await using server = await RedisServer.start();
  const admin = outsider(server.url);
  const connections = async () =>
    String(await admin.call('CLIENT', 'LIST'))
      .trim()
      .split('\n').length;
  const before = await connections();
  const options = { keyPrefix: freshPrefix(), takeTimeoutMs: PATIENT_MS, maxLogOrders: 1000 };
  const backend = await RedisBackend.open({ url: server.productUrl, ...options });
  expect(await connections()).toBeGreaterThan(before);
  await backend.close();
  await until(async () => (await connections()) === before, { what: 'its connections are closed' });
});

describe('a segment that lacks an entry that a lane knows of', () => {
  async function soldOne() {
    const backend = await open(redisUrl());
    const sale = await loadSale(backend, aSale({ stock: 10, segments: 1 }));
    const [anna] = await sale.sellEach(1);
    return { sale, anna: anna! };
  }

  it.each([
    ['has fewer entries', { seq: 3, tail: '998', orders: 4 }],
    ['has another entry under the number', { seq: 1, tail: '999', orders: 1 }],
  ])('%s: it is marked as lost, and sells nothing more', async (_, newest) => {
    const { sale, anna } = await soldOne();
    const position = { ...sale.ref(), seq: 0, tail: '' };
    const head = {
      ...{ seq: 1, tail: anna.orderId, orders: 1, committed: 0 },
      ...{ state: 'open', rules: expect.any(String) },
    };
    expect(await sale.backend.log.readLog([position], 0)).toMatchObject([{ head }]);
    expect(await sale.take([sale.order('ben')], 0, { newest })).toEqual({ status: 'stale' });
    const [read] = await sale.backend.log.readLog([position], 0);
    expect(read!.head).toEqual({ ...head, state: 'lost', lost: newest });
    // Neither to a lane that does not know the entry, nor after a refill, nor after a change of state.
    expect(await sale.take([sale.order('ben')])).toEqual({ status: 'stale' });
    expect(await sale.refillAndTake([sale.order('ben')])).toEqual({ status: 'stale' });
    await expect(
      sale.backend.sales.setState({ sale: sale.sale, state: 'open', generation: 1 }),
    ).rejects.toThrow(StaleGeneration);
    expect(await sale.left()).toEqual([9]);
  });

  it.each(['open', 'paused', 'closed'] as const)(
    'is detected by an empty take while it is %s',
    async (state) => {
      const { sale } = await soldOne();
      await sale.backend.sales.setState({ sale: sale.sale, state, generation: 1 });
      const newest = { seq: 3, tail: '998', orders: 4 };
      expect(await sale.take([], 0, { newest })).toEqual({ status: 'stale' });
      const [read] = await sale.backend.log.readLog([{ ...sale.ref(), seq: 0, tail: '' }], 0);
      expect(read!.head).toMatchObject({ state: 'lost', lost: newest });
    },
  );

  it('is detected by its lane, whatever was written since', async () => {
    const { sale } = await soldOne();
    await sale.take([sale.order('ben')], 0, { lane: 5, ticket: 1_000_000 });
    await sale.take([sale.order('cleo')], 0, { lane: 6, ticket: 1_000_001 });
    const known = { lane: 5, ticket: 1_000_003, answeredTicket: 1_000_000 };
    expect(kinds(await sale.take([sale.order('dora')], 0, known))).toEqual(['taken']);
    const unknown = { lane: 5, ticket: 1_000_005, answeredTicket: 1_000_004 };
    expect(await sale.take([sale.order('emil')], 0, unknown)).toEqual({ status: 'stale' });
  });

  it('keeps selling if it has that entry, or later ones', async () => {
    const { sale, anna } = await soldOne();
    const newest = { seq: 1, tail: anna.orderId, orders: 1 };
    expect(kinds(await sale.take([sale.order('ben')], 0, { newest }))).toEqual(['taken']);
    expect(kinds(await sale.take([sale.order('cleo')], 0, { newest }))).toEqual(['taken']);
  });
});
