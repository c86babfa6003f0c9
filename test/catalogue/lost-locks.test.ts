/** Locks whose store fails: B9 to B11, with the same holder, and the same second one, in each. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { b8 } from '../../catalogue/locked/b8-fencing-token.ts';
import { b9 } from '../../catalogue/locked/b9-failover.ts';
import { b10 } from '../../catalogue/locked/b10-quorum.ts';
import { b11 } from '../../catalogue/locked/b11-zookeeper.ts';
import { LOCK_TTL_MS } from '../../catalogue/locked/lock.ts';
import type { Clock, SellingRow, Setting, Stores } from '../../catalogue/parts/contract.ts';
import { MACHINE_CLOCK } from '../../catalogue/parts/setting.ts';
import { until } from '../support/fixtures.ts';
import { RedisServer } from '../support/servers/redis-server.ts';
import { ZooKeeperEnsemble } from '../support/servers/zookeeper-ensemble.ts';
import { frozenHolder } from './interleavings.ts';
import { byId, Lab, type LabOptions, tally } from './lab.ts';

/** The machine's time, in a process that can be stopped. */
class FreezableClock implements Clock {
  readonly now = MACHINE_CLOCK.now;
  #thawed = Promise.resolve();
  thaw = () => {};

  freeze(): void {
    this.#thawed = new Promise((resolve) => {
      this.thaw = resolve;
    });
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await MACHINE_CLOCK.sleep(ms, signal);
    await this.#thawed;
  }

  every(ms: number, task: () => Promise<void>): () => void {
    return MACHINE_CLOCK.every(ms, async () => {
      await this.#thawed;
      await task();
    });
  }
}

/**
 * ann has the lock and has read the stock when its store fails. bob asks for it afterwards, where it is to be had then.
 */
async function failover(
  row: SellingRow,
  options: LabOptions,
  fail: () => Promise<Partial<Stores>>,
  setting: Partial<Setting> = {},
) {
  await using lab = await Lab.open(row, { stock: 1, ...options });
  const hers = await lab.node(setting);
  const ann = hers.begin('ann', 'read');
  await lab.atRest(ann);
  const his = await lab.node(setting, await fail());
  const bob = his.begin('bob', 'read');
  await lab.atRest(bob);
  const bobIsIn = bob.state === 'held';
  const outcomes = await lab.finish(ann, bob);
  return { bobIsIn, outcomes: tally(outcomes), sold: (await his.sold()).length };
}

const lockLost = { bobIsIn: true, outcomes: { sold: 2 }, sold: 2 };
const lockKept = { bobIsIn: false, outcomes: { sold: 1, sold_out: 1 }, sold: 1 };

describe('B9, a primary and its replica', () => {
  async function primaryAndReplica() {
    const primary = await RedisServer.start({ extraArgs: ['--repl-diskless-sync-delay', '0'] });
    const replica = await RedisServer.start({
      extraArgs: ['--replicaof', '127.0.0.1', String(primary.port)],
    });
    const onReplica = new Redis(replica.url);
    const dispose = async () => {
      onReplica.disconnect();
      await Promise.all([primary, replica].map((server) => server[Symbol.asyncDispose]()));
    };
    await until(async () => /master_link_status:up/.test(await onReplica.info('replication')), {
      what: 'the replica follows its primary',
    });
    return { primary, replica, onReplica, [Symbol.asyncDispose]: dispose };
  }

  test('fails over before it has replicated: there are two holders, and one unit is sold twice', async () => {
    await using pair = await primaryAndReplica();
    const { primary, replica, onReplica } = pair;
    // From here on it follows nobody, and keeps what it has: the link is down.
    await onReplica.replicaof('127.0.0.1', '9');
    const outcome = await failover(b9, { lockRedis: [primary.url] }, async () => {
      await primary.kill();
      await onReplica.replicaof('NO', 'ONE');
      return { lockRedis: [replica.url] };
    });
    expect(outcome).toEqual(lockLost);
  });

  test('fails over after it has replicated: the lock is kept', async () => {
    await using pair = await primaryAndReplica();
    const { primary, replica, onReplica } = pair;
    const outcome = await failover(b9, { lockRedis: [primary.url] }, async () => {
      await until(async () => (await onReplica.keys('*:lock')).length === 1, {
        what: 'the lock is replicated',
      });
      await primary.kill();
      await onReplica.replicaof('NO', 'ONE');
      return { lockRedis: [replica.url] };
    });
    // ann's node knows the dead primary only: she can't let go, and her watchdog can't renew.
    expect(outcome).toEqual({ bobIsIn: false, outcomes: { sold: 1, failed: 1 }, sold: 1 });
  });
});

describe('B10, five primaries', () => {
  const servers: RedisServer[] = [];
  let lockRedis: string[];

  beforeAll(async () => {
    servers.push(...(await Promise.all(Array.from({ length: 5 }, () => RedisServer.start()))));
    lockRedis = servers.map(({ url }) => url);
  });
  afterAll(() => Promise.all(servers.map((server) => server[Symbol.asyncDispose]())));

  const lose = async (count: number) => {
    for (const server of servers.slice(0, count)) await server.kill();
    return {};
  };
  const bringBack = () => Promise.all(servers.map((server) => server.restart()));

  test('keeps the lock when two of them are lost', async () => {
    expect(await failover(b10, { lockRedis }, () => lose(2))).toEqual(lockKept);
    await bringBack();
  });

  test('grants none, and sells nothing, when three of them are lost', async () => {
    await using lab = await Lab.open(b10, { lockRedis });
    await lose(3);
    const node = await lab.node();
    const [outcome] = await lab.finish(node.begin('ann'));
    expect(outcome!.code).toBe('failed');
    await bringBack();
    await until(async () => (await lab.finish(node.begin('ann')))[0]!.code === 'sold', {
      what: 'the majority is back, and she can buy',
    });
  });

  test('oversells after a holder was frozen beyond the expiry, as B7 does; B8 refuses', async () => {
    const soldTwice = { woken: 'sold', next: 'sold', sold: 2, left: 0 };
    expect(await frozenHolder(b10, LOCK_TTL_MS, { lockRedis })).toEqual(soldTwice);
    expect(await frozenHolder(b8, 4 * LOCK_TTL_MS)).toMatchObject({ woken: 'failed', sold: 1 });
  });
});

describe('B11, three servers of ZooKeeper', () => {
  let ensemble: ZooKeeperEnsemble;
  let zookeeper: string[];

  beforeAll(async () => {
    ensemble = await ZooKeeperEnsemble.start(3);
    zookeeper = await ensemble.servers();
  });
  afterAll(() => ensemble?.[Symbol.asyncDispose]());

  /** Sessions are the servers' matter, and so is their time. No waiter gives up: a session may end late. */
  const clock: Clock = { ...MACHINE_CLOCK, now: () => 0 };

  test('sells one unit after the other', async () => {
    await using lab = await Lab.open(b11, { stock: 3, zookeeper });
    const nodes = [await lab.node({ clock }), await lab.node({ clock })];
    const calls = ['ann', 'bob', 'cid', 'dan'].map((buyerId, i) => nodes[i % 2]!.begin(buyerId, 'read'));
    await lab.atRest(...calls);
    expect(calls.map(({ state }) => state).sort()).toEqual(['held', 'waiting', 'waiting', 'waiting']);
    expect(tally(await lab.finish(...calls))).toEqual({ sold: 3, sold_out: 1 });
  });

  test('is freed when the session of a holder that died ends', async () => {
    await using lab = await Lab.open(b11, { stock: 2, zookeeper });
    const [hers, his] = [await lab.node({ clock }), await lab.node({ clock })];
    await lab.atRest(hers.begin('ann', 'read'));
    const bob = his.begin('bob');
    await lab.atRest(bob);
    expect(bob.state).toBe('waiting');
    await hers.die();
    expect(await bob.outcome).toEqual({ code: 'sold' });
  });

  test('is lost by a holder that is frozen until its session has ended: it needs a fencing token too', async () => {
    await using lab = await Lab.open(b11, { stock: 1, zookeeper });
    const herClock = new FreezableClock();
    const [hers, his] = [await lab.node({ clock: herClock }), await lab.node({ clock })];
    const ann = hers.begin('ann', 'read');
    await lab.atRest(ann);
    herClock.freeze();
    const bob = his.begin('bob', 'read');
    await until(() => bob.state === 'held', { what: 'her session has ended, and he has the lock' });
    herClock.thaw();
    expect(tally(await lab.finish(ann, bob))).toEqual({ sold: 2 });
  });

  test('keeps the lock when the leading server is lost', async () => {
    const kill = async () => {
      await ensemble.killLeader();
      return {};
    };
    expect(await failover(b11, { zookeeper }, kill, { clock })).toEqual(lockKept);
  });
});

test.each(byId(b9, b10, b11))('%s names the server that it lacks', async (_, row) => {
  const stores = { keyPrefix: 'nowhere:' };
  await expect(row.open(stores, { id: 'sale', stock: 1, segments: 1, nodes: 1 })).rejects.toThrow(
    /needs redis/,
  );
});
