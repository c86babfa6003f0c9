/**
 * Where a take on a cluster is sent when the servers report that the map is out of date. The test plays the servers.
 */
import { describe, expect, it } from 'vitest';
import { ClusterTakes, type ClusterTakesParts } from '../../../../src/engine/cluster/cluster-takes.ts';
import { NO_ENTRY, type TakeBatch, type TakeReply, type TakeStore } from '../../../../src/engine/contract.ts';
import { NotExecuted } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/keys.ts';

const OLD = 'redis://10.0.0.1:7001/';
const NEW = 'redis://10.0.0.1:7002/';
const SERVED: TakeReply = { status: 'served', results: [], seq: 1, committed: 0, left: 0, orders: 0 };
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
function cluster(answers: Record<string, () => TakeReply>, learnsNew: boolean) {
  const asked: string[] = [];
  let refreshed = false;
  const primaries: ClusterTakesParts['primaries'] = {
    of: () => (refreshed && learnsNew ? NEW : OLD),
    all: () => [OLD, NEW],
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
    return { takes, close() {} };
  };
  const unused = {} as Pick<ClusterTakesParts, 'refill' | 'sight'>;
  const takes = new ClusterTakes({
    ...unused,
    primaries,
    keys: new Keys('stockade:'),
    connectTo,
    takeTimeoutMs: 10,
  });
  return { takes, asked };
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

  it('goes where the map has its segment after a failover', async () => {
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
    const { takes, asked } = cluster({ [OLD]: refusing('TRYAGAIN'), [NEW]: () => SERVED }, true);
    await expect(takes.take(BATCH)).rejects.toThrow('TRYAGAIN');
    expect(asked).toEqual([OLD]);
  });
});
