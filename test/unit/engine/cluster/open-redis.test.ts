/** Whether a url names one Redis or a server of a cluster. The test plays the servers. */
import type { Redis } from 'ioredis';
import { beforeEach, expect, it, vi } from 'vitest';
import { ClusterBackend } from '../../../../src/engine/cluster/cluster-backend.ts';
import { openRedis } from '../../../../src/engine/cluster/open-redis.ts';
import { RedisBackend } from '../../../../src/engine/redis/redis-backend.ts';
import { connect, singleUseClient } from '../../../../src/redis/clients.ts';

vi.mock('../../../../src/redis/clients.ts', async (original) => ({
  ...(await original<object>()),
  singleUseClient: vi.fn(),
  connect: vi.fn(async (client: { fault?: Error }) => {
    if (client.fault) throw client.fault;
  }),
}));

const OPTIONS = { keyPrefix: 'p:', takeTimeoutMs: 500, maxLogOrders: 100 };
const ONE = {} as RedisBackend;
const MANY = {} as ClusterBackend;

let connected = 0;

/** Each url is what its server says of itself, or why it can't be reached. */
beforeEach(() => {
  connected = 0;
  vi.spyOn(RedisBackend, 'open').mockReset().mockResolvedValue(ONE);
  vi.spyOn(ClusterBackend, 'open').mockReset().mockResolvedValue(MANY);
  vi.mocked(connect).mockClear();
  vi.mocked(singleUseClient).mockImplementation((url) => {
    connected++;
    return {
      fault: url.startsWith('down') ? new Error(url) : undefined,
      info: async (section: string) => (section === 'cluster' ? `# Cluster\r\n${url}\r\n` : ''),
      disconnect: () => connected--,
    } as unknown as Redis;
  });
});

it('one Redis is opened by its url', async () => {
  const urls = ['cluster_enabled:0'];
  expect(await openRedis({ urls, ...OPTIONS })).toEqual({ backend: ONE, kind: 'redis' });
  expect(RedisBackend.open).toHaveBeenCalledWith({ url: urls[0], ...OPTIONS });
  expect([vi.mocked(connect).mock.calls.length, connected]).toEqual([1, 0]);
});

it.each([[['cluster_enabled:1']], [['down', 'cluster_enabled:1', 'not asked']]])(
  'a cluster is opened by the urls %j',
  async (urls) => {
    expect(await openRedis({ urls, ...OPTIONS })).toEqual({ backend: MANY, kind: 'redis cluster' });
    expect(ClusterBackend.open).toHaveBeenCalledWith({ urls, ...OPTIONS });
    expect(connected).toBe(0);
  },
);

it('several servers that form no cluster are refused', async () => {
  const opening = openRedis({ urls: ['cluster_enabled:0', 'cluster_enabled:0'], ...OPTIONS });
  await expect(opening).rejects.toMatchObject({
    code: 'not_executed',
    message: expect.stringContaining('names 2 servers'),
  });
  expect(RedisBackend.open).not.toHaveBeenCalled();
});

it('nothing is opened if no server can be reached', async () => {
  await expect(openRedis({ urls: ['down 1', 'down 2'], ...OPTIONS })).rejects.toThrow('down 2');
  expect(connected).toBe(0);
});
