import { afterEach, expect, test, vi } from 'vitest';
import { awaitDatabase, type Database } from '../../../src/postgres/database.ts';

const WAIT_MS = 300;

afterEach(() => void vi.restoreAllMocks());

test('a database that does not answer is waited for as long as was asked, also if the clock is set back', async () => {
  const began = performance.now();
  const refused = new Error('connect ECONNREFUSED');
  const heard: unknown[] = [];
  const db = {
    raw: async () => {
      vi.spyOn(Date, 'now').mockReturnValue(0);
      throw refused;
    },
  } as unknown as Database;
  await expect(awaitDatabase(db, WAIT_MS, (error) => heard.push(error))).rejects.toBe(refused);
  expect(performance.now() - began).toBeGreaterThanOrEqual(WAIT_MS);
  expect(heard).toEqual([refused]);
}, 2_000);

test.each(['3D000', '28P01', '28000', '42501'])(
  'a database that refuses with %s is not asked again',
  async (code) => {
    const refused = Object.assign(new Error('refused'), { code });
    const raw = vi.fn().mockRejectedValue(refused);
    await expect(awaitDatabase({ raw } as unknown as Database, 60_000, () => {})).rejects.toBe(refused);
    expect(raw).toHaveBeenCalledTimes(1);
  },
);
