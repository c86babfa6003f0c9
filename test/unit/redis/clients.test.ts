import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import {
  clientsLike,
  clusterClient,
  disconnectCluster,
  takeClient,
  watchConnection,
} from '../../../src/redis/clients.ts';

const URL = 'redis://127.0.0.1:1';

test.each([
  ['takes', () => takeClient(URL)],
  ['locks, with the options of another client', () => clientsLike(new Redis(URL, { lazyConnect: true }))[0]],
])(
  'a client for %s queues no command while it has no connection: the command fails at once',
  async (_, open) => {
    const client = open();
    // It neither gets a connection nor fails to get one.
    client.connect = () => new Promise(() => {});
    await expect(client.get('key')).rejects.toThrow(/isn't writeable/);
  },
);

test('a cluster that is closed while none of its servers can be reached refuses what waits for one, and what comes later', async () => {
  const cluster = clusterClient([URL]);
  cluster.on('error', () => {});
  const waiting = cluster.get('key');
  await new Promise((resolve) => cluster.once('reconnecting', resolve));
  disconnectCluster(cluster);
  await expect(waiting).rejects.toThrow('None of startup nodes is available');
  await expect(cluster.get('key')).rejects.toThrow('Connection is closed');
});

test('a connection that is lost is told once, again if the reason is another one, and when it is made again', () => {
  const client = new Redis('redis://127.0.0.1:1', { lazyConnect: true });
  const told: string[] = [];
  watchConnection(client, {
    lost: (server, { message }) => told.push(`${server}: ${message}`),
    restored: (server) => told.push(`${server} is back`),
  });
  const fail = (message: string) => client.emit('error', new Error(message));
  client.emit('ready');
  for (const message of ['refused', 'refused', 'expired', 'expired']) fail(message);
  client.emit('ready');
  client.emit('ready');
  fail('expired');
  expect(told.map((line) => line.replace('127.0.0.1:1', 'it'))).toEqual([
    'it: refused',
    'it: expired',
    'it is back',
    'it: expired',
  ]);
});
