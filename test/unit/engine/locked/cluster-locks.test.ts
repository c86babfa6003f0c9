/** On which server of a cluster a lock is asked for, and released. The test plays the servers. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Primaries } from '../../../../src/engine/cluster/primaries.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';
import { ClusterLocks } from '../../../../src/engine/locked/cluster-locks.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import { LockLost, LockMoved } from '../../../../src/locks/lock-errors.ts';
import type { LockHandle } from '../../../../src/locks/lock-handle.ts';
import { Locks } from '../../../../src/locks/locks.ts';
import { elapse, freezeTime, settledTurns } from '../../../support/engine/frozen-time.ts';
import { gate } from '../../../support/gate.ts';

/** Fake timers leave this module out. */
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
}));

const OLD = 'redis://10.0.0.1:7001/';
const NEW = 'redis://10.0.0.1:7002/';
const SEGMENT = { saleId: 's', segment: 0, generation: 1 };
const NAME = new Keys('p:').segment(SEGMENT).lock;
const MOVED = new LockMoved('MOVED 5 10.0.0.1:7002', undefined);
const HANDLE = {} as LockHandle;
/** Answers like a lock that is released at once. */
const released = async () => {};

beforeEach(() => freezeTime());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Servers whose locks answer by `lock` and `releaseMoved`. The map names `OLD` until it is refreshed `turns` times. */
function cluster({
  turns = Number.POSITIVE_INFINITY,
  lock = async () => HANDLE,
  releaseMoved = released,
  opens = async () => {},
}: {
  turns?: number;
  lock?: (url: string) => Promise<LockHandle>;
  releaseMoved?: (url: string) => Promise<void>;
  opens?: (url: string) => Promise<void>;
} = {}) {
  const asked: string[] = [];
  const closed: string[] = [];
  const opened: object[] = [];
  const map = { all: [OLD, NEW], refreshes: 0, hasServers: true };
  const primaries = {
    of: () => (map.hasServers ? (map.refreshes >= turns ? NEW : OLD) : undefined),
    all: () => map.all,
    refresh: async () => {
      map.refreshes++;
    },
  };
  vi.spyOn(Locks, 'open').mockImplementation(async (options) => {
    const url = options.url!;
    opened.push(options);
    await opens(url);
    return {
      lock: (name: string, { waitMs }: { waitMs: number }) => {
        expect(name).toBe(NAME);
        asked.push(`lock at ${url} for ${Math.round(waitMs)}`);
        return lock(url);
      },
      releaseMoved: (name: string, owner: string) => {
        expect([name, owner]).toEqual([NAME, 'me']);
        asked.push(`release at ${url}`);
        return releaseMoved(url);
      },
      close: async () => {
        closed.push(url);
      },
    } as unknown as Locks;
  });
  const locks = new ClusterLocks(primaries as unknown as Primaries, new Keys('p:'), { ttlMs: 4_000 });
  return { locks, asked, closed, opened, map };
}

/** Until it is settled, time passes in steps of a few milliseconds. */
async function passing<T>(work: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  work.then(settle, settle);
  await settledTurns();
  for (let steps = 0; steps < 2_000 && !isSettled; steps++) await elapse(5);
  return work;
}

/** A handle whose release fails with `error`. */
const handleFailing = (error: Error) => ({ release: () => Promise.reject(error) }) as unknown as LockHandle;

it('a lock is asked for at the server of its segment, over one connection', async () => {
  const { locks, asked, opened } = cluster();
  expect(await locks.lock(SEGMENT, 500)).toBe(HANDLE);
  expect(await locks.lock(SEGMENT, 0)).toBe(HANDLE);
  expect(asked).toEqual([`lock at ${OLD} for 500`, `lock at ${OLD} for 1`]);
  expect(opened).toEqual([{ url: OLD, ttlMs: 4_000 }]);
});

it.each([MOVED, new NotExecuted('no connection')])(
  'a lock is asked for again, for the rest of the time, after %s',
  async (error) => {
    const lock = async (url: string) => {
      if (url === OLD) throw error;
      return HANDLE;
    };
    const { locks, asked, map } = cluster({ turns: 2, lock });
    expect(await passing(locks.lock(SEGMENT, 500))).toBe(HANDLE);
    expect(asked).toEqual([`lock at ${OLD} for 500`, `lock at ${OLD} for 480`, `lock at ${NEW} for 460`]);
    expect(map.refreshes).toBe(2);
  },
);

it('a lock that stays elsewhere is not executed when the time is over', async () => {
  const { locks, asked } = cluster({ lock: () => Promise.reject(MOVED) });
  await expect(passing(locks.lock(SEGMENT, 60))).rejects.toMatchObject({
    code: 'not_executed',
    cause: MOVED,
  });
  expect(asked).toEqual([60, 40, 20].map((ms) => `lock at ${OLD} for ${ms}`));
});

it('a lock that is not elsewhere is asked for once', async () => {
  const { locks, asked } = cluster({ lock: () => Promise.reject(new Error('a bug')) });
  await expect(locks.lock(SEGMENT, 500)).rejects.toThrow(/^a bug$/);
  expect(asked).toHaveLength(1);
});

it('a segment without a server gets no lock', async () => {
  const { locks, map } = cluster();
  map.hasServers = false;
  await expect(locks.lock(SEGMENT, 0)).rejects.toThrow('no server of the cluster has this segment now');
});

it('a server that can’t be reached is connected to again', async () => {
  let fails = 1;
  const { locks, opened } = cluster({
    opens: async () => {
      if (fails-- > 0) throw new NotExecuted('no connection');
    },
  });
  expect(await passing(locks.lock(SEGMENT, 500))).toBe(HANDLE);
  expect(opened).toHaveLength(2);
});

it('a lock that moved is released where the map says, as soon as it is there', async () => {
  let fails = 2;
  const { locks, asked } = cluster({
    turns: 2,
    releaseMoved: async () => {
      if (fails-- > 0) throw MOVED;
    },
  });
  await passing(locks.release(SEGMENT, handleFailing(new LockMoved('MOVED', 'me'))));
  expect(asked).toEqual([`release at ${OLD}`, `release at ${NEW}`, `release at ${NEW}`]);
});

it('a lock that moved is left to its ttl after two seconds', async () => {
  const { locks, asked } = cluster({ releaseMoved: () => Promise.reject(MOVED) });
  await expect(passing(locks.release(SEGMENT, handleFailing(new LockMoved('MOVED', 'me'))))).rejects.toBe(
    MOVED,
  );
  // Every 20 ms, first and last included.
  expect(asked).toHaveLength(101);
});

it('a lock that moved is not released again after another error', async () => {
  const { locks, asked } = cluster({ releaseMoved: () => Promise.reject(new Error('a bug')) });
  const releasing = locks.release(SEGMENT, handleFailing(new LockMoved('MOVED', 'me')));
  await expect(passing(releasing)).rejects.toThrow('a bug');
  expect(asked).toHaveLength(1);
});

it.each([new LockLost('lock', 1, 'it expired'), new LockMoved('MOVED', undefined)])(
  'a lock is not released elsewhere after %s',
  async (error) => {
    const { locks, asked } = cluster();
    await expect(locks.release(SEGMENT, handleFailing(error))).rejects.toBe(error);
    expect(asked).toEqual([]);
  },
);

it('a lock whose release is confirmed needs no other server', async () => {
  const release = vi.fn(released);
  const { locks, asked } = cluster();
  await locks.release(SEGMENT, { release } as unknown as LockHandle);
  expect([release.mock.calls.length, asked]).toEqual([1, []]);
});

it.each([
  ['is kept while the map names it', [OLD, NEW], []],
  ['is closed when another one is opened, if it left the map', [NEW], [OLD]],
  ['is kept while the map is empty, because all servers were lost at once', [], []],
])('the connection to a server %s', async (_, all, ended) => {
  const { locks, closed, map } = cluster({ turns: 1 });
  await locks.lock(SEGMENT, 500);
  map.refreshes = 1;
  map.all = all;
  await locks.lock(SEGMENT, 500);
  await settledTurns();
  expect(closed).toEqual(ended);
});

it('all connections are closed in the end, also one that could not be opened', async () => {
  let opens = 0;
  const { locks, closed, map } = cluster({
    turns: 1,
    opens: async () => {
      if (++opens === 2) throw new Error('a bug');
    },
  });
  await locks.lock(SEGMENT, 500);
  map.refreshes = 1;
  const failing = locks.lock(SEGMENT, 500);
  await locks.close();
  await expect(failing).rejects.toThrow('a bug');
  expect(closed).toEqual([OLD]);
});

it('a connection that fails late does not take the place of a newer one, which is closed in the end', async () => {
  const { open: fail, opened: hasFailed } = gate();
  let opens = 0;
  const { locks, closed, opened, map } = cluster({
    turns: 1,
    opens: async () => {
      if (++opens > 1) return;
      await hasFailed;
      throw new NotExecuted('no connection');
    },
  });
  const first = locks.lock(SEGMENT, 500);
  map.refreshes = 1;
  map.all = [NEW];
  await locks.lock(SEGMENT, 500);
  map.refreshes = 0;
  map.all = [OLD, NEW];
  await locks.lock(SEGMENT, 500);
  fail();
  await passing(first);
  map.refreshes = 0;
  await locks.lock(SEGMENT, 500);
  expect(opened).toHaveLength(3);
  await locks.close();
  expect(closed.sort()).toEqual([OLD, NEW]);
});

it('a lock that is still to be released elsewhere opens no connection after the end', async () => {
  const { open: begin, opened: hasBegun } = gate();
  const { locks, opened, closed } = cluster({
    turns: 2,
    releaseMoved: async () => {
      begin();
      throw MOVED;
    },
  });
  const releasing = locks.release(SEGMENT, handleFailing(new LockMoved('MOVED', 'me')));
  await hasBegun;
  await locks.close();
  await expect(passing(releasing)).rejects.toThrow('the locks of this process were closed');
  expect([opened.length, closed]).toEqual([1, [OLD]]);
});
