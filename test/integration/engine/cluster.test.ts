/**
 * A real Redis Cluster: a take is never executed twice, whatever becomes of its reply; a server that is frozen or gone stops
 * its own segments and no others; a whole node sells on it, to the last unit.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ClusterBackend } from '../../../src/engine/cluster/cluster-backend.ts';
import type { Primaries } from '../../../src/engine/cluster/primaries.ts';
import { slotOf } from '../../../src/engine/cluster/slot.ts';
import { TransferScripts } from '../../../src/engine/cluster/transfer-scripts.ts';
import type { Backend, Sale } from '../../../src/engine/contract.ts';
import { NotExecuted, OutcomeUnknown } from '../../../src/engine/errors.ts';
import { ClusterLocks } from '../../../src/engine/locked/cluster-locks.ts';
import { LockedBackend } from '../../../src/engine/locked/locked-backend.ts';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { clusterClient, connect } from '../../../src/redis/clients.ts';
import { rebalanceSale } from '../../../src/sales/rebalance.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { aSale, kinds, type LoadedSale, loadSale, refilled } from '../../support/shop/sales.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { inTier } from '../../support/tier.ts';

const SEGMENTS = 12;

interface OnCluster {
  readonly backend: Backend;
  readonly sale: LoadedSale;
  /** By server, a segment that it has. */
  readonly segmentOn: readonly number[];
  readonly keys: Keys;
}

/** The server of the sale's record. Tests disturb the others. */
const SERVER_OF_RECORD = 1;

/** A sale with 10 units in each of its segments, which lie on all three servers. */
async function scatteredSale(servers: RedisCluster, keys: Keys): Promise<Sale> {
  for (let nth = 1; ; nth++) {
    const sale = aSale({ id: `scattered-${nth}`, stock: SEGMENTS * 10, segments: SEGMENTS });
    if ((await servers.primaryOf(keys.sale(sale.id))) !== SERVER_OF_RECORD) continue;
    const homes = keys.segments(sale.id, SEGMENTS).map((segment) => servers.primaryOf(segment));
    if (new Set(await Promise.all(homes)).size === servers.primaries.length) return sale;
  }
}

async function selling(
  servers: RedisCluster,
  work: (place: OnCluster) => Promise<void>,
  { takeTimeoutMs = 1_000, underLocks = false } = {},
): Promise<void> {
  const keyPrefix = freshPrefix();
  const options = { urls: servers.urls, keyPrefix, takeTimeoutMs, maxLogOrders: 1_000 };
  const backend = await (underLocks ? LockedBackend : ClusterBackend).open(options);
  try {
    const keys = new Keys(keyPrefix);
    const sale = await loadSale(backend, await scatteredSale(servers, keys));
    const homes = await Promise.all(
      Array.from({ length: SEGMENTS }, (_, i) => servers.primaryOf(keys.segment(sale.ref(i)).segment)),
    );
    const segmentOn = servers.primaries.map((_, server) => homes.indexOf(server));
    await work({ backend, sale, segmentOn, keys });
  } finally {
    await backend.close();
  }
}

/** No replica takes over from a frozen server. */
describe('behind proxies, without replicas', () => {
  let servers: RedisCluster;
  beforeAll(async () => {
    servers = await RedisCluster.start({ proxied: true });
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  const isTake = (orderId: string) => (request: Buffer) => request.includes(`${orderId} buyer`);

  test('a take whose reply is lost was executed once, and only its lane sends it again', async () => {
    await selling(servers, async ({ sale, segmentOn }) => {
      for (const [server, segment] of segmentOn.entries()) {
        // From here on, the server has the script.
        expect(kinds(await sale.take(sale.crowd(1), segment))).toEqual(['taken']);
        const order = sale.order('buyer-1');
        const proxy = servers.proxies[server]!;
        // If a take is sent again, it loses its reply too, and is counted.
        const loss = proxy.loseReplies(isTake(order.orderId), { times: 9 });
        await expect(sale.take([order], segment)).rejects.toThrow(OutcomeUnknown);
        await until(() => sale.backend.takes.ready, { what: 'a connection' });
        expect((await sale.left())[segment], 'units left').toBe(8);
        expect(loss.count, 'requests that carried it').toBe(1);
        loss.cancel();

        const again = await until(() => sale.take([order], segment), { what: 'the second attempt' });
        expect(kinds(again)).toEqual(['replay']);
        expect((await sale.left())[segment], 'units left after asking again').toBe(8);
      }
      await sale.expectConserved();
    });
  });

  test('a take that is lost before the server was not executed, and the second attempt is', async () => {
    await selling(servers, async ({ sale, segmentOn }) => {
      const order = sale.order('buyer-1');
      const loss = servers.proxies[0]!.loseRequests(isTake(order.orderId));
      await expect(sale.take([order], segmentOn[0])).rejects.toThrow(OutcomeUnknown);
      await loss.lost;
      expect((await sale.left())[segmentOn[0]!]).toBe(10);
      const again = await until(() => sale.take([order], segmentOn[0]), { what: 'the second attempt' });
      expect(kinds(again)).toEqual(['taken']);
      await sale.expectConserved();
    });
  });

  test('a frozen server makes its takes unknown, does not affect other segments, and the sale is not called sold out', async () => {
    await selling(
      servers,
      async ({ sale, segmentOn }) => {
        const [here, there] = [segmentOn[0]!, segmentOn[1]!];
        const order = sale.order('anna');
        await servers.primaries[0]!.pause();
        try {
          await expect(sale.take([order], here)).rejects.toThrow(OutcomeUnknown);
          expect(kinds(await sale.take(sale.crowd(10), there)), 'the others sell').not.toContain('short');
          // That segment is empty now. Units that can't be seen are not gone.
          const reply = refilled(await sale.refillAndTake(sale.crowd(1), there));
          expect(kinds(reply.take)).toEqual(['taken']);
        } finally {
          servers.primaries[0]!.resume();
        }
        const again = await until(() => sale.take([order], here), { what: 'the second attempt' });
        expect(['taken', 'replay']).toContain(kinds(again)[0]);
        expect(await sale.held('anna', here)).toHaveLength(1);
        await sale.expectConserved();
      },
      { takeTimeoutMs: 2_000 },
    );
  });

  test('a transfer to a frozen server stays open, and the other segments still get units', async () => {
    await selling(
      servers,
      async ({ backend, sale, segmentOn, keys }) => {
        const [receiver, there, donor] = segmentOn as [number, number, number];
        const client = await connect(clusterClient(servers.adminUrls));
        try {
          const key = keys.segment(sale.ref(donor)).segment;
          await new TransferScripts(client).debit(key, 1, receiver, 3);
          expect(kinds(await sale.take(sale.crowd(10), there)), 'the segment is empty').not.toContain(
            'short',
          );
          await servers.primaries[0]!.pause();
          try {
            const reply = refilled(await sale.refillAndTake(sale.crowd(1), there));
            expect(kinds(reply.take)).toEqual(['taken']);
            expect(reply.total, 'nobody can say what is left').toBe(Number.POSITIVE_INFINITY);
          } finally {
            servers.primaries[0]!.resume();
          }
          const finished = await until(() => backend.transfers.finish(sale.ref(), SEGMENTS), {
            what: 'the server answers',
          });
          expect(finished).toEqual([{ from: donor, to: receiver, units: 3 }]);
          await sale.expectConserved();
        } finally {
          client.disconnect();
        }
      },
      { takeTimeoutMs: 2_000 },
    );
  });
});

describe('messages', () => {
  test('arrive through another server when the forwarding one is cut off', async () => {
    await using servers = await RedisCluster.start({ proxied: true });
    await selling(servers, async ({ backend, sale }) => {
      const heard: string[] = [];
      let interruptions = 0;
      const unsubscribe = await backend.subscribe({
        // What other servers forward before the cut may come late: the sale has just been published.
        saleChanged: (saleId) => interruptions > 0 && heard.push(saleId),
        resubscribed: () => interruptions++,
      });
      expect(interruptions).toBe(0);
      for (const proxy of servers.proxies) proxy.cutAll();
      await until(
        async () => {
          await backend.sales.reopen(sale.sale.id);
          return heard.length > 0;
        },
        { what: 'a message after the cut' },
      );
      expect(new Set(heard)).toEqual(new Set([sale.sale.id]));
      await unsubscribe();
    });
  });
});

describe.each([
  { takes: 'as scripts', underLocks: false },
  { takes: 'under locks', underLocks: true },
])('servers that fail, takes $takes', ({ underLocks }) => {
  let servers: RedisCluster;
  beforeAll(async () => {
    servers = await RedisCluster.start({ replicas: true, nodeTimeoutMs: 1_000 });
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  test('slots are computed as the cluster does', async () => {
    for (const saleId of ['tickets', 'a.b-c_d', 'x'.repeat(64)]) {
      const { segment } = new Keys('stockade:').segment({ saleId, segment: 7 });
      expect(Math.floor(slotOf(segment) / 5_461)).toBe(await servers.primaryOf(segment));
    }
  });

  test('the first take finds a segment that an operator has moved to another server', async () => {
    const work = async ({ sale, segmentOn }: OnCluster) => {
      const here = segmentOn[0]!;
      const anna = sale.order('anna');
      expect(kinds(await sale.take([anna], here))).toEqual(['taken']);
      await servers.moveSlot(slotOf(`{${sale.sale.id}:${here}}`), 0, 1);
      expect(kinds(await sale.take([sale.order('ben'), anna], here))).toEqual(['taken', 'replay']);
      await sale.expectConserved();
    };
    await selling(servers, work, { underLocks });
  });

  test.runIf(underLocks)(
    'a lock that is held while its segment moves is released where it is then',
    async () => {
      const options = {
        urls: servers.urls,
        keyPrefix: freshPrefix(),
        takeTimeoutMs: 2_000,
        maxLogOrders: 1_000,
      };
      let [arrived, goOn] = [false, () => {}];
      const moved = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const inside = async () => {
        arrived = true;
        await moved;
        return [];
      };
      const holding = await LockedBackend.open({ ...options, inside, insideMaxMs: 20_000 });
      const next = await LockedBackend.open(options);
      try {
        const sale = await loadSale(holding, aSale({ stock: 10, segments: 1 }));
        const { segment } = new Keys(options.keyPrefix).segment(sale.ref(0));
        const from = await servers.primaryOf(segment);
        const taking = sale.take([sale.order('anna')]);
        await until(() => arrived, { what: 'the lock is held' });
        await servers.moveSlot(slotOf(segment), from, (from + 1) % 3);
        goOn();
        expect(kinds(await taking)).toEqual(['taken']);
        // Far sooner than the ttl of ten seconds.
        const after = await next.takes.take(sale.batch([sale.order('ben')]));
        expect(kinds(after)).toEqual(['taken']);
        await servers.moveSlot(slotOf(segment), (from + 1) % 3, from);
      } finally {
        await Promise.all([holding.close(), next.close()]);
      }
    },
  );

  test.runIf(underLocks)(
    'a lock that has moved is released although the map still shows its old server',
    async () => {
      const keys = new Keys(freshPrefix());
      const ref = { saleId: 'moving', segment: 0, generation: 1 };
      const slot = slotOf(keys.segment(ref).lock);
      const from = await servers.primaryOf(keys.segment(ref).lock);
      const to = (from + 1) % 3;
      /** Shows the old server until the map has been read `late` times. */
      const openLocks = (late: number) => {
        let reads = 0;
        const shown = () => servers.urls[reads < late ? from : to]!;
        const primaries = { of: shown, refresh: async () => void reads++, all: () => servers.urls };
        return new ClusterLocks(primaries as unknown as Primaries, keys, {});
      };
      const [holder, next] = [openLocks(3), openLocks(0)];
      try {
        const handle = await holder.lock(ref, 1_000);
        await servers.moveSlot(slot, from, to);
        await holder.release(ref, handle);
        // Far sooner than the ttl of ten seconds.
        await next.release(ref, await next.lock(ref, 2_000));
      } finally {
        await Promise.all([holder.close(), next.close()]);
        await servers.moveSlot(slot, to, from);
      }
    },
  );

  test('takes follow a dead server to its replica', async () => {
    const work = async ({ sale, segmentOn }: OnCluster) => {
      const here = segmentOn[2]!;
      const [anna, ben] = [sale.order('anna'), sale.order('ben')];
      expect(kinds(await sale.take([anna], here))).toEqual(['taken']);
      // A server may die between its answer and the replica's copy: that is a loss of writes, and not what is tested here.
      await until(() => servers.isReplicated(2), { what: 'the replica has it' });
      await servers.primaries[2]!.kill();
      const error = await sale.take([ben], here).catch((reason: unknown) => reason);
      expect(error instanceof OutcomeUnknown || error instanceof NotExecuted).toBe(true);
      const reply = await until(() => sale.take([ben], here), {
        what: 'the replica to take over',
        timeoutMs: 60_000,
      });
      // A take whose reply was lost may have been executed.
      expect(['taken', 'replay']).toContain(kinds(reply)[0]);
      expect(kinds(await sale.take([anna], here))).toEqual(['replay']);
      await until(() => sale.expectConserved().then(() => true), {
        what: 'all segments seen again',
        timeoutMs: 60_000,
      });
    };
    await selling(servers, work, { underLocks });
  });
});

describe('a whole shop', () => {
  let servers: RedisCluster;
  beforeAll(async () => {
    servers = await RedisCluster.start();
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  test('sells every unit to a larger crowd, into Postgres, while the timer rebalances', async () => {
    await using shop = await Shop.open({ redis: servers.url });
    const { seen } = await shop.startSync({ rebalanceEveryMs: 10 });
    const { id } = await shop.sell({ stock: 100, segments: 8 });
    const tills = [await shop.startEngine(), await shop.startEngine()];
    const crowd = buyers(300);
    const outcomes = await Promise.all(crowd.map((buyer, i) => tills[i % 2]!.buy(id, buyer)));
    const codes = outcomes.map(({ code }) => code);
    expect(codes.filter((code) => code === 'committed')).toHaveLength(100);
    expect(codes.filter((code) => code === 'sold_out')).toHaveLength(200);
    expect(tills.flatMap(({ faults }) => faults)).toEqual([]);
    expect(seen.failures).toEqual([]);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
  });

  test('passes verify while units move from server to server', async () => {
    const LOOKS = inTier({ test: 8, release: 15 });
    await using shop = await Shop.open({ redis: servers.url });
    await shop.startSync({ rebalanceEveryMs: 1 });
    const { id } = await shop.sell({ stock: 20_000, segments: 8 });
    const till = await shop.startEngine();
    await using load = new Load(till, id, { lines: 20 });
    for (let look = 1; look <= LOOKS; look++) {
      const before = load.promised.length;
      const moved = rebalanceSale(shop.db, shop.backend, id, { dryRun: false });
      expect(await shop.service.verify(id), `look ${look}`).toMatchObject({ ok: true, findings: [] });
      await moved;
      await until(() => load.promised.length > before, { what: 'the sale goes on' });
    }
  });

  test('is repaired by finishing a transfer that hangs halfway', async () => {
    await using shop = await Shop.open({ redis: servers.url });
    const { id } = await shop.sell({ stock: 12, segments: 3 });
    const client = await connect(clusterClient(servers.urls));
    try {
      const donor = new Keys(shop.keyPrefix).segment({ saleId: id, segment: 0 }).segment;
      await new TransferScripts(client).debit(donor, 1, 2, 3);
      const { differences } = await shop.service.verify(id);
      expect(differences).toMatchObject([{ cause: 'transfer_pending', units: 3, isFault: false }]);
      expect(await shop.service.verify(id, { repair: true })).toMatchObject({
        ...{ ok: true, differences: [] },
        repairs: [{ cause: 'transfer_pending', done: true, what: 'finished 1 transfer' }],
      });
      await client.hincrby(donor, 'left', 2);
      expect(await shop.service.verify(id, { repair: true })).toMatchObject({
        ...{ ok: true, differences: [] },
        repairs: [{ cause: 'foreign_redis', done: true }],
      });
    } finally {
      client.disconnect();
    }
  });

  test('passes verify while a transfer hangs halfway, and sync finishes it', async () => {
    await using shop = await Shop.open({ redis: servers.url });
    const { id } = await shop.sell({ stock: 12, segments: 3 });
    const client = await connect(clusterClient(servers.urls));
    try {
      const steps = new TransferScripts(client);
      const donor = new Keys(shop.keyPrefix).segment({ saleId: id, segment: 0 }).segment;
      // Its process is gone after the first of four steps.
      expect(await steps.debit(donor, 1, 2, 3)).toMatchObject({ kind: 'open' });
    } finally {
      client.disconnect();
    }
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: true });
    const terms = report.identities.flatMap(({ right }) => right);
    expect(terms).toContainEqual({ name: 'in transit', units: 3 });
    expect((await shop.service.show(id)).remaining).toBe(12);

    const { seen } = await shop.startSync({ rebalanceEveryMs: 5 });
    await until(() => seen.transfers.length > 0, { what: 'somebody to finish it' });
    expect(seen.transfers[0]).toEqual({ saleId: id, why: 'unfinished', moves: 1, units: 3 });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true });
  });

  test('runs as a node with these servers, with pause, rebalance, verify and doctor', async () => {
    const stores = { redisUrl: servers.url, databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
    await using node = await startTestNode(stores);
    const { id } = await node.ops.create({ id: 'tickets', stock: 40, segments: 4 }, BY.actor);
    expect((await node.buy(id, 'ann')).status).toBe(201);
    const by = { actor: 'tester', reason: '' };
    expect(await node.ops.change(id, { action: 'pause' }, by)).toMatchObject({ state: 'paused' });
    await until(async () => (await node.buy(id, 'ben')).code === 'paused', { what: 'the pause' });
    expect(await node.ops.change(id, { action: 'top-up', units: 4 }, by)).toMatchObject({ remaining: 43 });
    await node.ops.change(id, { action: 'resume' }, by);
    await until(async () => (await node.buy(id, 'ben', { key: 'until-sold' })).status === 201, {
      what: 'a purchase',
    });
    const { after } = await node.ops.rebalance(id, { dryRun: false });
    expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1);
    expect(await node.ops.verify(id)).toMatchObject({ ok: true, findings: [] });
    expect((await node.opsRequest('/readyz')).status).toBe(200);
    expect((await node.opsRequest('/metrics')).body).toContain('stockade_refills_total');
  });

  test('runs as a node with STRATEGY=lock', async () => {
    const stores = { redisUrl: servers.url, databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
    await using node = await startTestNode({ ...stores, env: { STRATEGY: 'lock' } });
    const { id } = await node.ops.create({ id: 'tickets', stock: 10, segments: 4 }, BY.actor);
    const bought = await Promise.all(buyers(20).map((buyer) => node.buy(id, buyer)));
    expect(bought.filter(({ status }) => status === 201)).toHaveLength(10);
    expect(bought.filter(({ code }) => code === 'sold_out')).toHaveLength(10);
    expect(await node.ops.verify(id)).toMatchObject({ ok: true, findings: [] });
  });
});
