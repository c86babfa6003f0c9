/** The `lock` strategy: takes under the lock of their segment, with the caller's own work inside. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Board } from '../../../src/engine/board/board.ts';
import type { Outcome, Purchase, TakeBatch, TakeOrder } from '../../../src/engine/contract.ts';
import { NotExecuted, OutcomeUnknown } from '../../../src/engine/errors.ts';
import { LockedBackend } from '../../../src/engine/locked/locked-backend.ts';
import type { Inside } from '../../../src/engine/locked/locked-takes.ts';
import { HOLD_MAX_MS } from '../../../src/engine/locked/segment-hold.ts';
import { Engine } from '../../../src/engine/purchase/engine.ts';
import { RedisBackend } from '../../../src/engine/redis/redis-backend.ts';
import { BY } from '../../support/author.ts';
import { freezeTime, settledTurns } from '../../support/engine/frozen-time.ts';
import { freshDatabase, freshPrefix, until } from '../../support/fixtures.ts';
import { untilLater, untilTurned } from '../../support/locks/locks.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { aSale, kinds, type LoadedSale, loadSale, refilled, served } from '../../support/shop/sales.ts';

/** A limit that no test here reaches. */
const PATIENT_MS = 20_000;

let server: RedisServer;
let proxy: TcpProxy;
let redis: Redis;
let keyPrefix: string;
const teardown: (() => unknown)[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start(server.port);
  redis = new Redis(server.url);
});
afterEach(async () => {
  vi.useRealTimers();
  await proxy.release();
  for (const release of teardown.splice(0).reverse()) await release();
});
afterAll(async () => {
  redis.disconnect();
  await proxy.stop();
  await server[Symbol.asyncDispose]();
});

interface Spec {
  readonly inside?: Inside;
  readonly insideMaxMs?: number;
  readonly ttlMs?: number;
  /** Also the wait limit for the lock. */
  readonly takeTimeoutMs?: number;
  readonly proxied?: boolean;
  /** Another worker of the same installation. */
  readonly beside?: boolean;
}

async function open({ proxied = false, beside = false, ...options }: Spec = {}): Promise<LockedBackend> {
  if (!beside) keyPrefix = freshPrefix();
  const url = proxied ? proxy.through(server.url) : server.url;
  const backend = await LockedBackend.open({
    urls: [url],
    keyPrefix,
    takeTimeoutMs: PATIENT_MS,
    maxLogOrders: 10_000,
    ...options,
  });
  teardown.push(() => backend.close());
  return backend;
}

/** The same installation without locks: what a holder sends that has lost its own. */
async function openUnlocked(): Promise<RedisBackend> {
  const options = { url: server.productUrl, keyPrefix, takeTimeoutMs: 500, maxLogOrders: 10_000 };
  const backend = await RedisBackend.open(options);
  teardown.push(() => backend.close());
  return backend;
}

/** A sale that is counted when the test is over. */
async function load(backend: LockedBackend, stock = 10, segments = 1): Promise<LoadedSale> {
  const sale = await loadSale(backend, aSale({ stock, segments }));
  teardown.push(() => sale.expectConserved());
  return sale;
}

const lockOf = (sale: LoadedSale, segment = 0) => `${keyPrefix}{${sale.sale.id}:${segment}}:lock`;

/** Work that says when it is inside, and stays there until it is let go. */
function gate() {
  const seen: TakeOrder[][] = [];
  const waiting: (() => void)[] = [];
  const inside: Inside = async (orders) => {
    seen.push([...orders]);
    await new Promise<void>((resolve) => waiting.push(resolve));
    return [];
  };
  return { inside, seen, letGo: () => waiting.shift()?.(), isIn: () => waiting.length > 0 };
}

/** A crowd at an engine of its own on that backend. */
async function engineOn(backend: LockedBackend, sale: LoadedSale, requestDeadlineMs = 20_000) {
  const board = new Board(1);
  const record = { sale: sale.sale, state: 'open' as const, generation: sale.generation, epoch: 1 };
  const view = { record, slot: 0 };
  let id = 5_000_000;
  const engine = await Engine.start({
    backend,
    directory: { lookup: async () => {}, refresh: async () => {}, listen: (to) => void to.changed(view) },
    board,
    worker: 3,
    nextOrderId: () => String(id++),
    requestDeadlineMs,
    laneCapacity: 10_000,
  });
  teardown.push(() => engine.close());
  const buy = (buyerId: string, spec: Partial<Purchase> = {}): Promise<Outcome> =>
    engine.purchase({ saleId: sale.sale.id, buyerId, quantity: 1, key: '', awaitCommit: false, ...spec });
  return { engine, buy };
}

describe('a take under the lock', () => {
  test('without orders calls the segment too, and takes nothing', async () => {
    let worked = 0;
    const backend = await open({
      inside: async () => {
        worked++;
        return [];
      },
    });
    const sale = await load(backend);
    expect(await sale.take([])).toMatchObject({ status: 'served', results: [], seq: 1, left: 10 });
    expect(worked).toBe(0);
    const unknown = { seq: 3, tail: '998', orders: 4 };
    expect(await sale.take([], 0, { newest: unknown })).toEqual({ status: 'stale' });
  });

  test('carries the fencing token: one that is not the newest takes nothing', async () => {
    const backend = await open();
    const sale = await load(backend);
    await sale.take([sale.order('anna')]);
    const newest = Number(await redis.get(`${lockOf(sale)}:fence`));
    // Like a holder that was frozen at the moment of its take.
    const { takes } = await openUnlocked();
    const late: TakeBatch = { ...sale.batch([sale.order('ben')]), fencingToken: newest - 1 };
    await expect(takes.take(late)).rejects.toThrow(/FENCED/);
    await expect(takes.take(late)).rejects.toThrow(NotExecuted);
    await expect(takes.refillAndTake(late, 1)).rejects.toThrow(/FENCED/);
    expect(await sale.held('ben')).toEqual([]);
    expect(kinds(await takes.take({ ...late, fencingToken: newest }))).toEqual(['taken']);
  });

  test('waits for a holder elsewhere, is refused in time, and takes nothing', async () => {
    const work = gate();
    const [one, other] = [
      await open({ ...work, insideMaxMs: PATIENT_MS }),
      await open({ beside: true, takeTimeoutMs: 500 }),
    ];
    const sale = await load(one);
    const first = one.takes.take(sale.batch([sale.order('anna')]));
    await until(work.isIn, { what: 'the first batch is inside' });
    await expect(other.takes.take(sale.batch([sale.order('ben')], 0, { lane: 2 }))).rejects.toThrow(
      NotExecuted,
    );
    work.letGo();
    expect(kinds(await first)).toEqual(['taken']);
    const later = await open({ beside: true });
    expect(kinds(await later.takes.take(sale.batch([sale.order('ben')], 0, { lane: 2 })))).toEqual(['taken']);
  });

  test('releases the lock when the lane is empty', async () => {
    const backend = await open();
    const sale = await load(backend);
    await sale.take([sale.order('anna')]);
    await until(async () => (await redis.get(lockOf(sale))) === null, { what: 'the lock is free' });
  });

  test('leaves out orders whose buyers were answered while it waited for the lock', async () => {
    const seen: string[] = [];
    const inside: Inside = async (orders) => {
      seen.push(...orders.map(({ buyerId }) => buyerId));
      return [];
    };
    const backend = await open({ inside });
    const sale = await load(backend);
    const [anna, ben, cleo] = ['anna', 'ben', 'cleo'].map((buyer) => ({
      ...sale.order(buyer),
      settled: false,
    }));
    await redis.set(lockOf(sale), 'somebody else', 'PX', 60_000);
    const take = sale.take([anna!, ben!]);
    const refill = sale.refillAndTake([cleo!]);
    anna!.settled = true;
    cleo!.settled = true;
    await redis.del(lockOf(sale));
    const refused = expect(refill).rejects.toThrow(NotExecuted);
    expect(kinds(await take)).toEqual(['unsent', 'taken']);
    await refused;
    expect(seen).toEqual(['ben']);
    expect(await sale.held('anna')).toEqual([]);
    expect(await sale.held('cleo')).toEqual([]);
  });

  test('does not lock other segments', async () => {
    const work = gate();
    const backend = await open({ ...work, insideMaxMs: PATIENT_MS });
    const sale = await load(backend, 4, 2);
    const takes = [sale.take([sale.order('anna')], 0), sale.take([sale.order('ben')], 1)];
    await until(() => work.seen.length === 2, { what: 'both are inside' });
    work.letGo();
    work.letGo();
    expect((await Promise.all(takes)).flatMap(kinds)).toEqual(['taken', 'taken']);
  });
});

describe('inside', () => {
  test('runs alone on the segment, across workers', async () => {
    let [now, most] = [0, 0];
    const inside: Inside = async () => {
      most = Math.max(most, ++now);
      await settledTurns();
      now--;
      return [];
    };
    const backends = [
      await open({ inside }),
      await open({ inside, beside: true }),
      await open({ inside, beside: true }),
    ];
    const sale = await load(backends[0]!, 60);
    const takes = sale
      .crowd(60)
      .map((order, i) => backends[i % 3]!.takes.take(sale.batch([order], 0, { lane: i })));
    expect(new Set((await Promise.all(takes)).flatMap(kinds))).toEqual(new Set(['taken']));
    expect(most).toBe(1);
  });

  test('may refuse single orders; the others are taken, and each buyer gets the right answer', async () => {
    const backend = await open({
      inside: async (orders) =>
        orders
          .filter(({ buyerId }) => buyerId === 'eve')
          .map(({ orderId }) => ({ orderId, reason: 'not today' })),
    });
    const sale = await load(backend);
    const orders = ['anna', 'eve', 'ben'].map((buyer) => sale.order(buyer));
    const reply = served(await sale.take(orders));
    expect(reply.results).toEqual([
      { kind: 'taken' },
      { kind: 'refused', reason: 'not today' },
      { kind: 'taken' },
    ]);
    expect(await sale.held('eve')).toEqual([]);
    expect(kinds(await sale.take([sale.order('eve')]))).toEqual(['refused']);
    expect(await sale.left()).toEqual([8]);
  });

  test('sees an order once: not again after a refill when it was short', async () => {
    const seen: string[] = [];
    const backend = await open({
      inside: async (orders) => {
        seen.push(...orders.map(({ buyerId }) => buyerId));
        return [];
      },
    });
    const sale = await loadSale(backend, aSale({ stock: 2, segments: 2 }), { split: [0, 2] });
    const anna = sale.order('anna');
    expect(kinds(await sale.take([anna]))).toEqual(['short']);
    expect(kinds(refilled(await sale.refillAndTake([anna])).take)).toEqual(['taken']);
    expect(seen).toEqual(['anna']);
  });

  test('sees an order once: not again when the reply to its take was lost', async () => {
    let says: 'yes' | 'no' = 'yes';
    const backend = await open({
      proxied: true,
      inside: async (orders) =>
        says === 'yes' ? [] : orders.map(({ orderId }) => ({ orderId, reason: 'no' })),
    });
    const sale = await load(backend);
    await sale.sellEach(1);
    const anna = sale.order('anna');
    const loss = proxy.loseReplies((request) => request.includes('anna'));
    await expect(sale.take([anna])).rejects.toThrow(OutcomeUnknown);
    await loss.lost;
    says = 'no';
    await backend.takes.whenReady(5_000);
    expect(kinds(await sale.take([anna]))).toEqual(['replay']);
  });

  test.each([
    [
      'throws',
      { inside: async () => Promise.reject(new Error('no answer from the bank')) },
      /no answer from the bank/,
    ],
    ['is late', { inside: () => new Promise<never>(() => {}), insideMaxMs: 30 }, /within 30 ms/],
  ])('%s: nothing is taken, and the lock is released', async (_, spec, message) => {
    const backend = await open(spec);
    const sale = await load(backend);
    const take = sale.take([sale.order('anna')]);
    await expect(take).rejects.toThrow(message);
    await expect(take).rejects.toThrow(NotExecuted);
    await until(async () => (await redis.get(lockOf(sale))) === null, { what: 'the lock is free' });
    expect(await sale.left()).toEqual([10]);
  });

  test('if the lock is lost meanwhile, its signal is aborted, and nothing is taken', async () => {
    let told: unknown;
    const backend = await open({
      ttlMs: 1_000,
      inside: async (_, { signal }) => {
        await redis.set(lockOf(sale), 'somebody else', 'PX', 60_000);
        await new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => resolve(), { once: true }),
        );
        told = signal.reason;
        return [];
      },
    });
    const sale = await load(backend);
    await expect(sale.take([sale.order('anna')])).rejects.toThrow(NotExecuted);
    expect(told).toMatchObject({ name: 'LockLost' });
    expect(await sale.left()).toEqual([10]);
  });

  test('if the lock is lost just before the take, the token is refused, and the next batch has a new lock', async () => {
    let steal = true;
    const backend = await open({
      inside: async () => {
        if (steal) await redis.incr(`${lockOf(sale)}:fence`);
        steal = false;
        return [];
      },
    });
    const sale = await load(backend);
    await expect(sale.take([sale.order('anna')])).rejects.toThrow(/FENCED/);
    expect(kinds(await sale.take([sale.order('anna')]))).toEqual(['taken']);
  });
});

describe('combining', () => {
  test('one acquisition serves all waiting batches, and later ones', async () => {
    const work = gate();
    const backend = await open(work);
    const sale = await load(backend, 1_000);
    const { buy } = await engineOn(backend, sale);
    freezeTime();
    const outcomes = sale.crowd(600).map(({ buyerId }) => buy(buyerId));
    let inside = 0;
    const tokens = new Set<string | null>();
    while (inside < 600) {
      await untilTurned(work.isIn, 'the next batch is inside');
      tokens.add(await redis.get(`${lockOf(sale)}:fence`));
      inside += work.seen.at(-1)!.length;
      work.letGo();
    }
    expect(new Set((await Promise.all(outcomes)).map(({ code }) => code))).toEqual(new Set(['accepted']));
    expect(work.seen.map((orders) => orders.length)).toEqual([256, 256, 88]);
    expect(tokens.size).toBe(1);
  });

  test('ends after a while, so that others get the lock', async () => {
    const work = gate();
    const [one, other] = [await open(work), await open({ beside: true })];
    const sale = await load(one, 1_000);
    const { buy } = await engineOn(one, sale);
    freezeTime();
    const outcomes = sale.crowd(512).map(({ buyerId }) => buy(buyerId));
    await untilTurned(work.isIn, 'the first batch is inside');
    const elsewhere = other.takes.take(sale.batch([sale.order('elsa')], 0, { lane: 9 }));
    const channel = `${lockOf(sale)}:released`;
    const isHeard = async () => (await redis.pubsub('NUMSUB', channel))[1] === 1;
    await untilTurned(isHeard, 'the other worker listens');
    vi.advanceTimersByTime(HOLD_MAX_MS + 1);
    work.letGo();
    expect(kinds(await elsewhere)).toEqual(['taken']);
    await untilLater(redis, work.isIn, 'the second batch is inside');
    work.letGo();
    expect(new Set((await Promise.all(outcomes)).map(({ code }) => code))).toEqual(new Set(['accepted']));
  });
});

describe('an engine under locks', () => {
  test('reports the shop’s refusal to a buyer, unless the key names an order', async () => {
    let open_ = true;
    const backend = await open({
      inside: async (orders) =>
        open_ ? [] : orders.map(({ orderId }) => ({ orderId, reason: 'the card is blocked' })),
    });
    const sale = await load(backend);
    const { buy } = await engineOn(backend, sale);
    const bought = await buy('anna', { key: 'click-1' });
    expect(bought).toMatchObject({ code: 'accepted' });
    open_ = false;
    expect(await buy('ben')).toEqual({ code: 'refused', reason: 'the card is blocked' });
    expect(await buy('cleo', { key: 'click-1' })).toEqual({ code: 'refused', reason: 'the card is blocked' });
    expect(await buy('anna', { key: 'click-1' })).toEqual(bought);
  });

  describe('answers busy, and takes nothing, if the deadline passes', () => {
    async function shop() {
      const work = gate();
      const backend = await open({ ...work, insideMaxMs: PATIENT_MS });
      const sale = await load(backend);
      const hasty = await engineOn(backend, sale, 1_000);
      const patient = await engineOn(backend, sale);
      /** Whose orders the work has seen, when this one is through. */
      const seenWith = async (buyerId: string) => {
        const bought = patient.buy(buyerId, { key: 'click-1' });
        await until(work.isIn, { what: `the order of ${buyerId} is inside` });
        work.letGo();
        expect(await bought).toMatchObject({ code: 'accepted' });
        return work.seen.flat().map((order) => order.buyerId);
      };
      return { sale, work, seenWith, buy: () => hasty.buy('anna', { key: 'click-1' }) };
    }

    test('while another process has the lock', async () => {
      const { sale, buy, seenWith } = await shop();
      await redis.set(lockOf(sale), 'somebody else', 'PX', 60_000);
      expect(await buy()).toEqual({ code: 'busy' });
      await redis.del(lockOf(sale));
      expect(await seenWith('ben')).toEqual(['ben']);
      expect(await sale.held('anna')).toEqual([]);
    });

    test('while the shop’s work runs', async () => {
      const { sale, work, buy, seenWith } = await shop();
      const bought = buy();
      await until(work.isIn, { what: 'the order is inside' });
      expect(await bought).toEqual({ code: 'busy' });
      work.letGo();
      expect(await seenWith('ben')).toEqual(['anna', 'ben']);
      expect(await sale.held('anna')).toEqual([]);
      // The same key, asked again, gets what it would have got.
      expect(await seenWith('anna')).toEqual(['anna', 'ben', 'anna']);
      expect(await sale.held('anna')).toHaveLength(1);
    });
  });

  test('sells exactly the stock to a crowd at two workers', async () => {
    const backends = [await open(), await open({ beside: true })];
    const sale = await load(backends[0]!, 50, 4);
    const shops = [await engineOn(backends[0]!, sale), await engineOn(backends[1]!, sale)];
    const codes = await Promise.all(
      Array.from({ length: 400 }, async (_, i) => (await shops[i % 2]!.buy(`buyer-${i}`)).code),
    );
    expect(codes.filter((code) => code === 'accepted')).toHaveLength(50);
    expect(codes.filter((code) => code === 'sold_out')).toHaveLength(350);
  });
});

test('a node with STRATEGY=lock and two workers sells the whole stock, and verify agrees', async () => {
  const stores = {
    redisUrl: server.productUrl,
    databaseUrl: await freshDatabase(),
    keyPrefix: freshPrefix(),
  };
  await using node = await startTestNode({ ...stores, env: { STRATEGY: 'lock', WORKERS: '2' } });
  await node.ops.create({ id: 'tickets', stock: 20, segments: 4 }, BY.actor);
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => node.buy('tickets', `buyer-${i}`, { key: `key-${i}` })),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
  expect(answers.filter(({ code }) => code === 'sold_out')).toHaveLength(40);
  expect(await redis.keys(`${stores.keyPrefix}{tickets:*}:lock:fence`)).not.toEqual([]);
  expect(await node.ops.verify('tickets')).toMatchObject({ ok: true, committedOrders: 20 });
});
