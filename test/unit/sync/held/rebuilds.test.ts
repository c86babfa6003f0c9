import { expect, test } from 'vitest';
import { LocalLocks } from '../../../../src/postgres/sale-locks.ts';
import type { SaleLog } from '../../../../src/sync/apply/sale-log.ts';
import { Hints } from '../../../../src/sync/held/hints.ts';
import { Rebuilds } from '../../../../src/sync/held/rebuilds.ts';
import type { SyncStores } from '../../../../src/sync/held/sync-stores.ts';
import { settledTurns } from '../../../support/engine/frozen-time.ts';

const SALES = ['first', 'second', 'third'];

test('a sync that stops ends the rebuilds under way, and leaves the queued ones to the next sync', async () => {
  const locks = new LocalLocks();
  await locks.tryLocks(SALES);
  const asked: string[] = [];
  let answer = () => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  // Each rebuild begins by reading its sale. None is found.
  const db = {
    raw: async (_: string, [saleId]: string[]) => {
      asked.push(saleId!);
      await answered;
      return { rows: [] };
    },
  };
  const setAside: unknown[] = [];
  const rebuilds = new Rebuilds({ db, locks } as unknown as SyncStores, new Hints(), (...failed) =>
    setAside.push(failed),
  );
  for (const saleId of SALES)
    rebuilds.begin({ saleId, generation: 1, newest: [] } as unknown as SaleLog, 'lost');
  expect(rebuilds.count).toBe(3);
  await settledTurns();
  const stopped = rebuilds.stop();
  answer();
  await stopped;
  expect(asked).toEqual(['first', 'second']);
  expect(setAside).toEqual([]);
  expect(rebuilds.count).toBe(0);
  expect(await locks.tryLocks(SALES)).toEqual(new Set(SALES));
});
