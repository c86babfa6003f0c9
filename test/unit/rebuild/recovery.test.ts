/** What a requested rebuild says if it fails. */
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import type { Backend } from '../../../src/engine/contract.ts';
import type { Database } from '../../../src/postgres/database.ts';
import type { SaleLocks } from '../../../src/postgres/sale-locks.ts';
import { Recoveries } from '../../../src/rebuild/recovery.ts';

/** The state of a rebuild whose first read of Redis fails. */
function failedBy(read: () => Promise<never>) {
  const backend = { sales: { read } } as unknown as Backend;
  const recoveries = new Recoveries({} as Database, backend, {} as SaleLocks, async () => {});
  return recoveries.complete('gig');
}

test('a Redis that is away is named, not an option of its client', async () => {
  const redis = new Redis({ port: 1, lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => 1 });
  redis.on('error', () => {});
  try {
    const state = await failedBy(() => redis.get('key') as Promise<never>);
    expect(state).toEqual({ saleId: 'gig', state: 'failed', problem: 'Redis does not answer' });
  } finally {
    redis.disconnect();
  }
});

test('any other reason is given as it is, without a full stop: it becomes part of a sentence', async () => {
  const state = await failedBy(() => Promise.reject(new Error('The log of segment 0 is a string.')));
  expect(state).toMatchObject({ problem: 'The log of segment 0 is a string' });
});
