/** Which server of a cluster a subscription listens to. The test plays the servers. */
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ClusterSubscription } from '../../../../src/engine/cluster/cluster-subscription.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import { listen } from '../../../../src/engine/redis/protocol/subscription.ts';
import { connect, singleUseClient } from '../../../../src/redis/clients.ts';
import { elapse, freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';

vi.mock('../../../../src/redis/clients.ts', () => ({ singleUseClient: vi.fn(), connect: vi.fn() }));
vi.mock('../../../../src/engine/redis/protocol/subscription.ts', () => ({ listen: vi.fn() }));

beforeEach(() => freezeTime());
afterEach(() => {
  vi.useRealTimers();
  vi.resetAllMocks();
});

class Client {
  status = 'ready';
  isConnected = true;
  readonly url: string;
  readonly #onEnd: (() => void)[] = [];
  constructor(url: string) {
    this.url = url;
  }
  once(event: string, handle: () => void) {
    expect(event).toBe('end');
    this.#onEnd.push(handle);
  }
  disconnect() {
    this.isConnected = false;
  }
  /** The connection ends. */
  end() {
    this.status = 'end';
    for (const handle of this.#onEnd.splice(0)) handle();
  }
}

/** @param down urls that can't be reached; the test may change them */
function subscribe(urls: readonly string[], down = new Set<string>()) {
  const clients: Client[] = [];
  const ended: string[] = [];
  let resubscribed = 0;
  /** Runs while the subscription begins to listen. */
  const meanwhile = { run: async (_: Client) => {} };
  vi.mocked(singleUseClient).mockImplementation((url) => {
    clients.push(new Client(url));
    return clients.at(-1)! as unknown as Redis;
  });
  vi.mocked(connect).mockImplementation(async (client) => {
    const { url } = client as unknown as Client;
    if (down.has(url)) throw new Error(`no connection to ${url}`);
    return client;
  });
  vi.mocked(listen).mockImplementation(async (redis) => {
    const client = redis as unknown as Client;
    await meanwhile.run(client);
    return async () => {
      ended.push(client.url);
    };
  });
  const events = { resubscribed: () => resubscribed++ };
  const subscription = new ClusterSubscription(() => urls, new Keys('p:'), events);
  const asked = () => clients.map(({ url }) => url);
  return { subscription, clients, asked, ended, meanwhile, resubscribed: () => resubscribed };
}

it('listens to one server, and is not told that it was interrupted', async () => {
  const { subscription, asked, ended, resubscribed } = subscribe(['a', 'b']);
  await subscription.begin();
  expect([asked(), ended, resubscribed()]).toEqual([['a'], [], 0]);
});

it('tries each server once, and closes the connections that fail', async () => {
  const { subscription, asked, clients } = subscribe(['a', 'b', 'c'], new Set(['a', 'b']));
  await subscription.begin();
  expect(asked()).toEqual(['a', 'b', 'c']);
  expect(clients.map(({ isConnected }) => isConnected)).toEqual([false, false, true]);
});

it('begins nothing if no server can be reached, or none is known', async () => {
  const { subscription, asked } = subscribe(['a', 'b'], new Set(['a', 'b']));
  await expect(subscription.begin()).rejects.toThrow('no connection to b');
  expect(asked()).toEqual(['a', 'b']);
  await expect(subscribe([]).subscription.begin()).rejects.toMatchObject({ code: 'not_executed' });
});

it('moves to the next server when its connection ends, and says that messages may be lost', async () => {
  const { subscription, clients, asked, ended, resubscribed } = subscribe(['a', 'b']);
  await subscription.begin();
  clients[0]!.end();
  expect([asked(), ended]).toEqual([['a'], ['a']]);
  await elapse(99);
  expect(asked()).toEqual(['a']);
  await elapse(1);
  expect([asked(), resubscribed()]).toEqual([['a', 'b'], 1]);
  clients[1]!.end();
  await elapse(100);
  expect([asked(), resubscribed()]).toEqual([['a', 'b', 'a'], 2]);
});

it('tries again until a server can be reached', async () => {
  const down = new Set<string>();
  const { subscription, clients, asked, ended, resubscribed } = subscribe(['a', 'b'], down);
  await subscription.begin();
  for (const url of ['a', 'b']) down.add(url);
  clients[0]!.end();
  for (let tries = 0; tries < 3; tries++) await elapse(100);
  expect([asked(), resubscribed()]).toEqual([['a', 'b', 'a', 'b', 'a', 'b', 'a'], 0]);
  // Each further call would leave a listener and a timer at a connection that is gone.
  expect(ended).toEqual(['a']);
  down.clear();
  await elapse(100);
  expect([asked().length, resubscribed()]).toEqual([8, 1]);
});

it('moves on if its connection has ended before it could be watched', async () => {
  const { subscription, meanwhile, asked } = subscribe(['a', 'b']);
  meanwhile.run = async (client) => {
    if (client.url === 'a') client.end();
  };
  await subscription.begin();
  await elapse(100);
  expect(asked()).toEqual(['a', 'b']);
});

it('that has ended does not begin again', async () => {
  const { subscription, clients, asked, ended } = subscribe(['a', 'b']);
  await subscription.begin();
  await subscription.end();
  expect(ended).toEqual(['a']);
  clients[0]!.end();
  await elapse(1_000);
  expect([asked(), ended]).toEqual([['a'], ['a']]);
});

it('that ends before its next attempt makes none', async () => {
  const { subscription, clients, asked } = subscribe(['a', 'b']);
  await subscription.begin();
  clients[0]!.end();
  await subscription.end();
  expect(vi.getTimerCount()).toBe(0);
  await elapse(1_000);
  expect(asked()).toEqual(['a']);
});

it('that ends while it begins to listen stops to listen', async () => {
  const { subscription, meanwhile, clients, ended, resubscribed } = subscribe(['a', 'b']);
  await subscription.begin();
  clients[0]!.end();
  let goOn = () => {};
  meanwhile.run = () => new Promise<void>((resolve) => (goOn = resolve));
  await elapse(100);
  await subscription.end();
  ended.length = 0;
  goOn();
  await settledTurns();
  expect([ended, resubscribed()]).toEqual([['b'], 0]);
});
