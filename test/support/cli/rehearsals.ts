/** What tests of `stockade rehearse` share: its stores, its report, and what it has left. */
import type { RehearsalReport } from '../../../src/cli/rehearse/report/report.ts';
import { isRehearsal } from '../../../src/engine/sale/rehearsal.ts';
import { freshPrefix, redisUrl } from '../fixtures.ts';
import type { PostgresServer } from '../servers/postgres-server.ts';
import { query } from '../shop/truth.ts';

/** A crowd that a busy machine serves too; `--good` is no subject of these tests. */
export const SMALL = [
  '--rate',
  '60',
  '--for',
  '1',
  '--stock',
  '20',
  '--buyers',
  '40',
  '--good',
  '60000',
  '--json',
];
/** The crowd of these tests shares the machine with other tests, so only this may stop it. */
const LATE = 'the crowd was late';

export interface Stores {
  readonly REDIS_URL: string;
  readonly DATABASE_URL: string;
  readonly KEY_PREFIX: string;
}

export async function stores(postgres: PostgresServer): Promise<Stores> {
  return { REDIS_URL: redisUrl(), DATABASE_URL: await postgres.createDatabase(), KEY_PREFIX: freshPrefix() };
}

export const reportIn = (stdout: string) => JSON.parse(stdout) as RehearsalReport;
export const namesIn = (stdout: string) => reportIn(stdout).reasons.map(({ name }) => name);
export const gravest = (report: RehearsalReport) => report.reasons.filter(({ name }) => name !== LATE);

/** The sales that are there or were deleted, by their ids. */
export async function rehearsalsIn({ DATABASE_URL }: Stores) {
  const [there, deleted] = await Promise.all(
    ['sales', 'deleted_sales WHERE deleted_at IS NOT NULL'].map((from) =>
      query<{ id: string }>(DATABASE_URL, `SELECT id FROM ${from}`),
    ),
  );
  const ids = (rows: { id: string }[]) => rows.map(({ id }) => id).filter(isRehearsal);
  return { there: ids(there!), deleted: ids(deleted!) };
}
