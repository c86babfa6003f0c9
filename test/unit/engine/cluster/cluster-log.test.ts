/** On a cluster, each command reads or advances one log, because it can't name keys of several slots. */
import { type Cluster, ReplyError } from 'ioredis';
import { expect, test } from 'vitest';
import { ClusterLog } from '../../../../src/engine/cluster/cluster-log.ts';
import { BackendCorrupt } from '../../../../src/engine/errors.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { LogArguments, RawRead, Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';

const KEYS = new Keys('p:');
const positions = [0, 1, 2].map((segment) => ({ saleId: 's', segment, generation: 1, seq: 0, tail: '' }));

/** @param answer the reply for the log of a segment */
function logOf(answer: (segment: number) => RawRead) {
  const asked: (readonly LogArguments[])[] = [];
  const readLogs = async (logs: readonly LogArguments[]) => {
    asked.push(logs);
    return logs.map(({ keys }) => answer(Number(/:(\d)\}/.exec(keys.segment)![1])));
  };
  const log = new ClusterLog({} as Cluster, { readLogs } as unknown as Scripts, KEYS);
  return { log, asked };
}

const headOf = (segment: number): RawRead => [
  null,
  ['1', '1', `59${segment}`, '1', '0', 'open', null, null],
  [],
];

test('each log is read by a command of its own, and belongs to the position that was asked for', async () => {
  const { log, asked } = logOf(headOf);
  const reads = await log.readLog(positions, 10);
  expect(reads.map(({ position, head }) => [position.segment, head!.tail])).toEqual([
    [0, '590'],
    [1, '591'],
    [2, '592'],
  ]);
  expect(asked).toEqual(
    positions.map((position) => [{ keys: KEYS.segment(position), generation: 1, seq: 0 }]),
  );
});

test('a log with invalid data concerns itself alone', async () => {
  const { log } = logOf((segment) =>
    segment === 1 ? [new BackendCorrupt('WRONGTYPE a key')] : headOf(segment),
  );
  const reads = await log.readLog(positions, 10);
  expect(reads.map(({ fault }) => fault)).toEqual([
    undefined,
    expect.stringContaining('WRONGTYPE a key'),
    undefined,
  ]);
});

test('what a server refuses concerns its logs alone', async () => {
  const { log } = logOf((segment) => {
    if (segment === 0) throw new ReplyError('LOADING Redis is loading the dataset in memory');
    return headOf(segment);
  });
  const reads = await log.readLog(positions, 10);
  expect(reads.map(({ fault, head }) => fault ?? head!.tail)).toEqual([
    'LOADING Redis is loading the dataset in memory',
    '591',
    '592',
  ]);
});

test('a server that does not answer fails the reading', async () => {
  const error = new Error('Connection is closed.');
  const { log } = logOf((segment) => {
    if (segment === 2) throw error;
    return headOf(segment);
  });
  await expect(log.readLog(positions, 10)).rejects.toBe(error);
});

test('cursors are written before they are told; without cursors nothing is told', async () => {
  const told: unknown[] = [];
  const cluster = { publish: async (...args: unknown[]) => told.push(args) } as unknown as Cluster;
  const writing: (() => void)[] = [];
  const advance = async (cursors: unknown[]) => {
    await new Promise<void>((resolve) => writing.push(resolve));
    told.push(cursors.length);
  };
  const log = new ClusterLog(cluster, { advance } as unknown as Scripts, KEYS);
  await log.advance([]);
  expect(told).toEqual([]);
  const watermarks = [0, 1].map((segment) => ({
    ...{ saleId: 's', segment, generation: 1, seq: 4, orders: 9 },
    rejected: [],
  }));
  const advancing = log.advance(watermarks);
  await Promise.resolve();
  expect(told).toEqual([]);
  for (const written of writing) written();
  await advancing;
  expect(told).toEqual([1, 1, [KEYS.watermarks, JSON.stringify(watermarks)]]);
});
