import { type Database, rows } from '../../../src/postgres/database.ts';

/** The server's clock goes wrong by this much, for changes with a latest time (`stockade_in_time`). */
export async function setChangeClock(db: Database, byMs: number): Promise<void> {
  const [found] = await rows<{ source: string }>(
    db,
    "SELECT pg_get_functiondef('stockade_in_time'::regproc) AS source",
  );
  await db.raw(found!.source.replace('* 1000', `* 1000 + ${byMs}`));
}
