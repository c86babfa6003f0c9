/** Entries of a log, in which others may have written. */
import { expect, it } from 'vitest';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { RedisLog } from '../../../../src/engine/redis/redis-log.ts';
import type { RedisClient } from '../../../../src/redis/clients.ts';

const POSITION = { saleId: 'sale', segment: 0, generation: 1, seq: 0, tail: '' };
const ORDER = '598189304013662911';
const FIELDS = ['p', '', 'n', '1', 'o', `${ORDER} anna 2 key`];

/** What is read of a log with one entry. */
async function readOf(fields: readonly string[]) {
  const head = ['1', '1', ORDER, '1', '0', 'open', null, null];
  const scripts = { readLogs: async () => [[null, head, [['1-1', fields]]]] };
  const log = new RedisLog({} as RedisClient, scripts as unknown as Scripts, new Keys('p:'), () => {});
  const [read] = await log.readLog([POSITION], 10);
  return read!;
}

it('an entry has its orders, and notes of some', async () => {
  const order = { orderId: ORDER, buyerId: 'anna', quantity: 2, key: 'key' };
  const entry = { seq: 1, previous: '', tail: ORDER, ordersSoFar: 1 };
  expect((await readOf(FIELDS)).entries).toEqual([{ ...entry, orders: [order] }]);
  const note = '{"reference":"seat 7"}';
  expect((await readOf([...FIELDS, 'x', `${ORDER} ${note}`])).entries).toEqual([
    { ...entry, orders: [{ ...order, note }] },
  ]);
});

it.each([
  ['another first field', ['q', ...FIELDS.slice(1)], 'q, n, o'],
  ['another count', [...FIELDS.slice(0, 2), 'm', ...FIELDS.slice(3)], 'p, m, o'],
  ['other orders', [...FIELDS.slice(0, 4), 'r', FIELDS[5]!], 'p, n, r'],
  ['other notes', [...FIELDS, 'y', '1 {"reference":"seat 7"}'], 'p, n, o, y'],
  ['a field more', [...FIELDS, 'x', '', 'z', '1'], 'p, n, o, x, z'],
])('an entry with %s is a fault of its log, which names its fields', async (_, fields, names) => {
  const fault = `log entry 1-1 has the fields ${JSON.stringify(names)}`;
  expect(await readOf(fields)).toEqual({ position: POSITION, head: undefined, entries: [], fault });
});
