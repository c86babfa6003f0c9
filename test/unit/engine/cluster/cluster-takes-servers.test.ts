/** Which servers a cluster's takes know, wait for and use; and what is left after a refill. The test plays the servers. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterSight, Stock } from '../../../../src/engine/cluster/cluster-sight.ts';
import { ClusterTakes } from '../../../../src/engine/cluster/cluster-takes.ts';
import { type Refill, UNKNOWN_TOTAL } from '../../../../src/engine/cluster/refill.ts';
import {
  type LogHint,
  NO_ENTRY,
  type TakeBatch,
  type TakeReply,
  type TakeResult,
  type TakeStore,
} from '../../../../src/engine/contract.ts';
import { BackendCorrupt, NotExecuted, StaleGeneration } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import { elapse, freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';

/** Fake timers leave this module out. */
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
}));

beforeEach(() => freezeTime());
afterEach(() => {
  vi.useRealTimers();
});

const URLS = ['redis://10.0.0.1:7001/', 'redis://10.0.0.1:7002/', 'redis://10.0.0.1:7003/'];
const HINT = { saleId: 's' } as unknown as LogHint;

const BATCH: TakeBatch = {
  saleId: 's',
  segment: 0,
  generation: 1,
  lane: 1,
  ticket: 1,
  answeredTicket: 0,
  newest: NO_ENTRY,
  orders: [1, 2].map((quantity) => ({ orderId: `${quantity}`, buyerId: `b${quantity}`, quantity, key: '' })),
};

const servedWith = (...kinds: ('taken' | 'short')[]): TakeReply => ({
  status: 'served',
  results: kinds.map((kind): TakeResult => ({ kind })),
  seq: 1,
  committed: 0,
  left: 0,
  orders: 0,
  returned: 0,
});

/** A server: when it is ready, what it answers, and what it was asked. */
class Server {
  ready = false;
  isClosed = false;
  answer: () => Promise<TakeReply> = async () => servedWith('taken', 'taken');
  readonly heard: unknown[] = [];
  readonly waits: number[] = [];
  #goOn: (() => void)[] = [];

  becomeReady() {
    this.ready = true;
    for (const resolve of this.#goOn.splice(0)) resolve();
  }

  asTakes(): TakeStore {
    const server = this;
    return {
      get ready() {
        return server.ready;
      },
      whenReady: (timeoutMs: number) => {
        this.waits.push(timeoutMs);
        return this.ready ? Promise.resolve() : new Promise<void>((resolve) => this.#goOn.push(resolve));
      },
      hint: (hint: LogHint) => this.heard.push(hint),
      take: (batch: TakeBatch) => {
        this.heard.push(batch);
        return this.answer();
      },
    } as Partial<TakeStore> as TakeStore;
  }
}

/**
 * @param stocks what is seen of the sale after a take, one after the other, the last one for ever; `undefined`: it is
 * not certain
 */
function cluster({
  urls = URLS.slice(0, 2),
  refilling = async () => ({ total: 5, epoch: 3 }),
  stocks = [undefined],
}: {
  urls?: readonly string[];
  refilling?: () => Promise<Stock>;
  stocks?: readonly (Stock | undefined | Error)[];
} = {}) {
  const servers = new Map(URLS.map((url) => [url, new Server()]));
  const map = { all: [...urls], of: urls[0] };
  let looks = 0;
  const takes = new ClusterTakes({
    primaries: {
      of: () => map.of,
      all: () => map.all,
      refresh: async () => {},
      urlOf: (address) => `redis://${address}/`,
    },
    keys: new Keys('p:'),
    refill: { run: refilling } as unknown as Refill,
    sight: {
      stock: async () => {
        const seen = stocks[Math.min(looks++, stocks.length - 1)];
        if (seen instanceof Error) throw seen;
        return seen;
      },
    } as unknown as ClusterSight,
    connectTo: (url) => ({
      takes: servers.get(url)!.asTakes(),
      close: () => {
        servers.get(url)!.isClosed = true;
      },
    }),
    takeTimeoutMs: 500,
  });
  const [first, second, third] = [...servers.values()] as [Server, Server, Server];
  return { takes, map, first, second, third, looks: () => looks };
}

/** Whether the promise is settled after this turn. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  await settledTurns();
  return settled;
}

describe('a cluster', () => {
  it('is ready as soon as one of its servers is', async () => {
    const { takes, first, second } = cluster();
    const [any, all] = [takes.whenReady(700), takes.allReady(800)];
    expect([takes.ready, await isSettled(any)]).toEqual([false, false]);
    second.becomeReady();
    expect([takes.ready, await isSettled(any), await isSettled(all)]).toEqual([true, true, false]);
    first.becomeReady();
    expect([takes.ready, await isSettled(all)]).toEqual([true, true]);
    expect([first.waits, second.waits]).toEqual([
      [500, 700, 800],
      [500, 700, 800],
    ]);
  });

  it('without servers is not ready before the timeout', async () => {
    const { takes } = cluster({ urls: [] });
    const waiting = takes.whenReady(700);
    await elapse(699);
    expect([takes.ready, await isSettled(waiting)]).toEqual([false, false]);
    await elapse(1);
    expect(await isSettled(waiting)).toBe(true);
  });

  it('sends a hint to one server that is ready, if any', () => {
    const { takes, first, second, third } = cluster({ urls: URLS });
    takes.hint(HINT);
    second.becomeReady();
    third.becomeReady();
    takes.hint(HINT);
    expect([first.heard, second.heard, third.heard]).toEqual([[], [HINT], []]);
  });

  it('closes all its connections', () => {
    const { takes, first, second, third } = cluster();
    first.becomeReady();
    takes.close();
    expect([first.isClosed, second.isClosed, third.isClosed, takes.ready]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('keeps takes waiting while the connection to their server is opened for the first time', async () => {
    const { takes, first } = cluster();
    const take = takes.take(BATCH);
    expect([await isSettled(take), first.heard]).toEqual([false, []]);
    first.becomeReady();
    expect(await take).toMatchObject({ status: 'served' });
    // Later, takes fail at once while the server can't be reached.
    first.ready = false;
    expect(await isSettled(takes.take(BATCH))).toBe(true);
  });

  it('does not take while no server has the segment', async () => {
    const { takes, map } = cluster();
    map.of = undefined;
    await expect(takes.take(BATCH)).rejects.toThrow('no server of the cluster has this segment now');
  });

  it('closes a server to which takes were redirected ten seconds later, if the map never names it', async () => {
    const { takes, first, third } = cluster();
    for (const server of [first, third]) server.becomeReady();
    first.answer = () => Promise.reject(new NotExecuted('MOVED 16383 10.0.0.1:7003'));
    expect(await takes.take(BATCH)).toMatchObject({ status: 'served' });
    await elapse(9_999);
    takes.follow();
    expect(third.isClosed).toBe(false);
    await elapse(1);
    takes.follow();
    expect(third.isClosed).toBe(true);
  });

  it('asks again, with pauses, while a segment moves, for the timeout of a take', async () => {
    const { takes, first } = cluster();
    first.becomeReady();
    first.answer = () => Promise.reject(new NotExecuted('ASK 5 10.0.0.1:7003'));
    const take = takes.take(BATCH);
    const failed = expect(take).rejects.toThrow('ASK');
    await settledTurns();
    for (let pauses = 0; pauses < 30; pauses++) await elapse(20);
    await failed;
    expect(first.heard).toHaveLength(26);
  });

  it('passes errors on that may have been executed', async () => {
    const { takes, first } = cluster();
    first.becomeReady();
    first.answer = () => Promise.reject(new Error('MOVED 5 10.0.0.1:7003'));
    await expect(takes.take(BATCH)).rejects.toThrow(/^MOVED/);
    expect(first.heard).toHaveLength(1);
  });
});

describe('after a refill', () => {
  const refillAndTake = async (parts: Parameters<typeof cluster>[0], ...kinds: ('taken' | 'short')[]) => {
    const { takes, first, looks } = cluster(parts);
    first.becomeReady();
    first.answer = async () => servedWith(...kinds);
    const reply = await takes.refillAndTake(BATCH, 2);
    return { reply, looks: looks() };
  };

  it('what is left follows from what was there and what was taken', async () => {
    const { reply, looks } = await refillAndTake({}, 'taken', 'taken');
    expect(reply).toEqual({ status: 'refilled', take: servedWith('taken', 'taken'), total: 2, epoch: 3 });
    expect(looks).toBe(0);
  });

  it('what is left is read if it may be nothing', async () => {
    const parts = { refilling: async () => ({ total: 3, epoch: 3 }), stocks: [{ total: 0, epoch: 4 }] };
    const { reply, looks } = await refillAndTake(parts, 'taken', 'taken');
    expect([reply, looks]).toEqual([
      { status: 'refilled', take: servedWith('taken', 'taken'), total: 0, epoch: 4 },
      1,
    ]);
  });

  it('what is left is read if an order was short', async () => {
    const { reply } = await refillAndTake({ stocks: [{ total: 1, epoch: 4 }] }, 'taken', 'short');
    expect(reply).toMatchObject({ total: 1, epoch: 4 });
  });

  it('what is left is read again until it is certain, three times at most', async () => {
    const stocks = [undefined, new NotExecuted('no answer'), { total: 1, epoch: 6 }];
    const third = await refillAndTake({ stocks }, 'short', 'short');
    expect([third.reply, third.looks]).toMatchObject([{ total: 1, epoch: 6 }, 3]);
    const never = await refillAndTake({}, 'short', 'short');
    expect([never.reply, never.looks]).toMatchObject([{ total: UNKNOWN_TOTAL, epoch: 3 }, 3]);
  });

  it.each([new NotExecuted('no answer'), new BackendCorrupt('a counter')])(
    'nothing is taken if units can’t be moved: %s',
    async (error) => {
      const { takes, first } = cluster({ refilling: () => Promise.reject(error) });
      first.becomeReady();
      await expect(takes.refillAndTake(BATCH, 2)).rejects.toBe(error);
      expect(first.heard).toEqual([]);
    },
  );

  it('nothing is taken after another error, or if the refill takes too long', async () => {
    const bug = new Error('a bug');
    const failing = cluster({ refilling: () => Promise.reject(bug) });
    await expect(failing.takes.refillAndTake(BATCH, 2)).rejects.toMatchObject({
      code: 'not_executed',
      message: 'nothing was taken, because no units could be moved to the segment: a bug',
      cause: bug,
    });
    const hanging = cluster({ refilling: () => new Promise(() => {}) });
    const late = expect(hanging.takes.refillAndTake(BATCH, 2)).rejects.toThrow(NotExecuted);
    await elapse(500);
    await late;
    expect([failing.first.heard, hanging.first.heard]).toEqual([[], []]);
  });

  it('a stale sale is stale', async () => {
    const { takes, first } = cluster({ refilling: () => Promise.reject(new StaleGeneration('s', 1)) });
    first.becomeReady();
    expect(await takes.refillAndTake(BATCH, 2)).toEqual({ status: 'stale' });
    expect(first.heard).toEqual([]);
  });
});
