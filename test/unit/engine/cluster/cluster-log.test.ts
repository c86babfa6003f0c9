/** On a cluster, a log's head and its entries may be read at different times, in either order. */
import { type Cluster, ReplyError } from 'ioredis';
import { expect, test } from 'vitest';
import { ClusterLog } from '../../../../src/engine/cluster/cluster-log.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import type { Command, Reply } from '../../../../src/redis/send-all.ts';
import { checkChain } from '../../../../src/sync/apply/log-chain.ts';

const POSITION = { saleId: 's', segment: 0, generation: 1, seq: 0, tail: '' };
const EMPTY = { seq: 0, tail: '', entries: [] as unknown[] };
const FIRST = {
  seq: 1,
  tail: '598189304013662911',
  entries: [['1-1', ['p', '', 'n', '1', 'o', '598189304013662911 b2 1 k4']]],
};
/** The entry is gone, and the head tells of it. */
const LOST = { ...FIRST, entries: [] };

/** The segment's content when its head is read and when its entries are read, for each reading in turn. */
function logOf(...readings: { head: typeof EMPTY; entries: typeof EMPTY }[]) {
  let asked = 0;
  const sendAll = async (commands: readonly Command[]): Promise<readonly Reply[]> => {
    const { head, entries } = readings[asked++]!;
    return commands.map(([name]) =>
      name === 'hmget'
        ? [null, ['1', String(head.seq), head.tail, String(head.seq), '0', 'open', null]]
        : [null, entries.entries],
    );
  };
  const log = new ClusterLog({} as Cluster, {} as Scripts, new Keys('p:'), sendAll);
  return {
    asked: () => asked,
    read: async () => (await log.readLog([POSITION], 10))[0]!,
  };
}

test('a head with an entry that was written after the entries were read is no loss', async () => {
  const log = logOf({ head: FIRST, entries: EMPTY }, { head: FIRST, entries: FIRST });
  const read = await log.read();
  expect(checkChain(read)).toEqual({ ok: true });
  expect(read.entries.map(({ seq, tail }) => ({ seq, tail }))).toEqual([{ seq: 1, tail: FIRST.tail }]);
});

test('entries that are still missing after a second read are lost', async () => {
  const log = logOf({ head: FIRST, entries: EMPTY }, { head: LOST, entries: LOST });
  expect(checkChain(await log.read())).toEqual({ ok: false, problem: 'entries 1 to 1 are missing' });
});

test('a log without missing entries is read once', async () => {
  for (const reading of [
    { head: EMPTY, entries: EMPTY },
    { head: EMPTY, entries: FIRST },
    { head: FIRST, entries: FIRST },
  ]) {
    const log = logOf(reading);
    expect(checkChain(await log.read())).toEqual({ ok: true });
    expect(log.asked()).toBe(1);
  }
});

test('heads alone are read by one command for each log; entries belong to the log that was asked for', async () => {
  const sent: string[] = [];
  const sendAll = async (commands: readonly Command[]): Promise<readonly Reply[]> => {
    sent.push(...commands.map((command) => command.join(' ')));
    return commands.map(([name, key]) => {
      const segment = /:(\d)\}/.exec(String(key))![1]!;
      if (name === 'hmget') return [null, ['1', '1', `59${segment}`, '1', '0', 'open', null]];
      return [null, [['1-1', ['p', '', 'n', '1', 'o', `59${segment} b2 1 k4`]]]];
    });
  };
  const log = new ClusterLog({} as Cluster, {} as Scripts, new Keys('p:'), sendAll);
  const positions = [0, 1, 2].map((segment) => ({ ...POSITION, segment }));
  const heads = await log.readLog(positions, 0);
  expect(heads.map(({ head, entries }) => [head!.tail, entries])).toEqual([
    ['590', []],
    ['591', []],
    ['592', []],
  ]);
  expect(sent.map((command) => command.split(' ')[0])).toEqual(['hmget', 'hmget', 'hmget']);
  sent.length = 0;
  const reads = await log.readLog(positions, 10);
  expect(reads.map(({ entries }) => entries.map(({ tail }) => tail))).toEqual([['590'], ['591'], ['592']]);
  expect(sent.slice(3)).toEqual([0, 1, 2].map((i) => `xrange p:{s:${i}}:log (1-0 1 COUNT 10`));
});

/** A log whose commands are answered by `answer`: with a reply or an error. */
function answering(answer: (name: string, segment: number) => unknown) {
  const sendAll = async (commands: readonly Command[]): Promise<readonly Reply[]> =>
    commands.map(([name, key]) => {
      const reply = answer(name, Number(/:(\d)\}/.exec(String(key))![1]));
      return reply instanceof Error ? [reply, undefined] : [null, reply];
    });
  return new ClusterLog({} as Cluster, {} as Scripts, new Keys('p:'), sendAll);
}

const HEAD = ['1', '0', '', '0', '0', 'open', null, null];

test.each(['hmget', 'xrange'])('a key of another type concerns its log alone: %s', async (refused) => {
  const error = new ReplyError('WRONGTYPE a key');
  const log = answering((name, segment) =>
    name === refused && segment === 1 ? error : name === 'hmget' ? HEAD : [],
  );
  const reads = await log.readLog(
    [0, 1].map((segment) => ({ ...POSITION, segment })),
    10,
  );
  expect(reads.map(({ fault }) => fault)).toEqual([undefined, expect.stringContaining('WRONGTYPE a key')]);
});

test.each([
  new Error('Connection is closed.'),
  new ReplyError('BUSY Redis is busy running a script.'),
  new ReplyError("NOPERM User shop has no permissions to run the 'hmget' command"),
])('a server that fails, fails the reading, and no log is called broken: %s', async (error) => {
  for (const lost of ['hmget', 'xrange']) {
    const log = answering((name) => (name === lost ? error : HEAD));
    await expect(log.readLog([POSITION], 10)).rejects.toBe(error);
  }
});

test('cursors are written before they are told; without cursors nothing is told', async () => {
  const told: unknown[] = [];
  const cluster = { publish: async (...args: unknown[]) => told.push(args) } as unknown as Cluster;
  let goOn = () => {};
  const advance = async (cursors: unknown[]) => {
    await new Promise<void>((resolve) => (goOn = resolve));
    told.push(cursors.length);
  };
  const scripts = { advance } as unknown as Scripts;
  const keys = new Keys('p:');
  const log = new ClusterLog(cluster, scripts, keys, async () => []);
  await log.advance([]);
  expect(told).toEqual([]);
  const watermark = { saleId: 's', segment: 0, generation: 1, seq: 4, orders: 9, rejected: [] };
  const advancing = log.advance([watermark]);
  await Promise.resolve();
  expect(told).toEqual([]);
  goOn();
  await advancing;
  expect(told).toEqual([1, [keys.watermarks, JSON.stringify([watermark])]]);
});
