/**
 * Where a take on a cluster is sent when the servers report that the map is out of date. The test plays the servers.
 */
import { describe, expect, it } from 'vitest';
import { ClusterTakes, type ClusterTakesParts } from '../../../../src/engine/cluster/cluster-takes.ts';
import { NO_ENTRY, type TakeBatch, type TakeReply, type TakeStore } from '../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';

const OLD = 'redis://10.0.0.1:7001/';
const NEW = 'redis://10.0.0.1:7002/';
const SERVED: TakeReply = {
  status: 'served',
  results: [],
  seq: 1,
  committed: 0,
  left: 0,
  orders: 0,
  returned: 0,
};
const BATCH: TakeBatch = {
  saleId: 'sale',
  segment: 0,
  generation: 1,
  lane: 1,
  ticket: 1,
  answeredTicket: 0,
  newest: NO_ENTRY,
  orders: [],
};

/**
 * Servers that answer as in `answers`, by url, and a map that names `OLD`.
 * @param learnsNew whether the map names `NEW` once it was refreshed
 */
function cluster(
  answers: Record<string, () => TakeReply>,
  learnsNew: boolean,
  { takeTimeoutMs = 10, all = [OLD, NEW] } = {},
) {
  const asked: string[] = [];
  const closed: string[] = [];
  let refreshed = false;
  const primaries: ClusterTakesParts['primaries'] = {
    of: () => (refreshed && learnsNew ? NEW : OLD),
    all: () => all,
    refresh: async () => {
      refreshed = true;
    },
    urlOf: (address) => `redis://${address.startsWith(':') ? `10.0.0.1${address}` : address}/`,
  };
  const connectTo = (url: string) => {
    const takes = {
      ready: true,
      whenReady: async () => {},
      take: async () => {
        asked.push(url);
        return answers[url]!();
      },
    } as Partial<TakeStore> as TakeStore;
    return { takes, close: () => closed.push(url) };
  };
  const unused = {} as Pick<ClusterTakesParts, 'refill' | 'sight'>;
  const takes = new ClusterTakes({
    ...unused,
    primaries,
    keys: new Keys('stockade:'),
    connectTo,
    takeTimeoutMs,
  });
  return { takes, asked, closed };
}

function refusing(message: string) {
  return () => {
    throw new NotExecuted(`Redis refused the take: ${message}`);
  };
}

describe('a take on a cluster', () => {
  it.each(['MOVED 5 10.0.0.1:7002', 'MOVED 5 :7002'])(
    'follows "%s", although the map does not have that server yet',
    async (moved) => {
      const { takes, asked } = cluster({ [OLD]: refusing(moved), [NEW]: () => SERVED }, false);
      expect(await takes.take(BATCH)).toBe(SERVED);
      expect(asked).toEqual([OLD, NEW]);
    },
  );

  it('goes to the server that the map names after a failover', async () => {
    const readOnly = refusing("READONLY You can't write against a read only replica.");
    const { takes, asked } = cluster({ [OLD]: readOnly, [NEW]: () => SERVED }, true);
    expect(await takes.take(BATCH)).toBe(SERVED);
    expect(asked).toEqual([OLD, NEW]);
  });

  it('is refused if the map names no other server', async () => {
    const readOnly = refusing("READONLY You can't write against a read only replica.");
    const { takes, asked } = cluster({ [OLD]: readOnly, [NEW]: () => SERVED }, false);
    await expect(takes.take(BATCH)).rejects.toThrow(NotExecuted);
    expect(asked).toEqual([OLD]);
  });

  it('is refused after a few redirects between two servers', async () => {
    const answers = { [OLD]: refusing('MOVED 5 10.0.0.1:7002'), [NEW]: refusing('MOVED 5 10.0.0.1:7001') };
    const { takes, asked } = cluster(answers, false);
    await expect(takes.take(BATCH)).rejects.toThrow('MOVED');
    expect(asked).toEqual([OLD, NEW, OLD, NEW]);
  });

  it('is not sent elsewhere for any other error', async () => {
    const { takes, asked } = cluster({ [OLD]: refusing('NOREPLICAS'), [NEW]: () => SERVED }, true);
    await expect(takes.take(BATCH)).rejects.toThrow('NOREPLICAS');
    expect(asked).toEqual([OLD]);
  });

  it('waits while its segment moves to another server, and goes there when the move has ended', async () => {
    const moving = ['TRYAGAIN Multiple keys request during rehashing of slot', 'ASK 5 10.0.0.1:7002'];
    const answers = [...moving, 'MOVED 5 10.0.0.1:7002'];
    const old = () => refusing(answers.shift()!)();
    const { takes, asked } = cluster({ [OLD]: old, [NEW]: () => SERVED }, false, { takeTimeoutMs: 5_000 });
    expect(await takes.take(BATCH)).toBe(SERVED);
    expect(asked).toEqual([OLD, OLD, OLD, NEW]);
  });

  it('keeps the server to which a take was redirected, although the map does not have it yet', async () => {
    const { takes, closed } = cluster(
      { [OLD]: refusing('MOVED 5 10.0.0.1:7002'), [NEW]: () => SERVED },
      false,
      { all: [OLD] },
    );
    expect(await takes.take(BATCH)).toBe(SERVED);
    takes.follow();
    expect(closed).toEqual([]);
  });

  it('closes servers that left the map, but none while the map is empty', () => {
    const all = [OLD, NEW];
    const { takes, closed } = cluster({}, false, { all });
    takes.follow();
    all.length = 0;
    takes.follow();
    expect(closed).toEqual([]);
    all.push(OLD);
    takes.follow();
    takes.follow();
    expect(closed).toEqual([NEW]);
  });

  it('is refused if the move does not end within the timeout of a take', async () => {
    const { takes, asked } = cluster({ [OLD]: refusing('ASK 5 10.0.0.1:7002'), [NEW]: () => SERVED }, true);
    await expect(takes.take(BATCH)).rejects.toThrow('ASK');
    expect(new Set(asked)).toEqual(new Set([OLD]));
  });
});
