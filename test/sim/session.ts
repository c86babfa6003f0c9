/**
 * Runs seeds on the source beside this file: the repository's own, or a bundle with a planted bug. Modules loaded from another
 * bundle are not used any more. If the migrations of this source are others, they create the schema anew.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { PGlite } from '@electric-sql/pglite';
import { installNetwork } from './machines/network.ts';
import { install, time } from './machines/virtual-time.ts';
import { runToEnd, World } from './machines/world.ts';
import type { SeedPlan, SeedReport } from './run.ts';

const MIGRATIONS = new URL('../../src/postgres/migrations/', import.meta.url);

export interface Seeds {
  run(plan: SeedPlan, trace?: (line: string) => void): Promise<SeedReport>;
}

/** From here on the process has virtual time only. */
export async function openSeeds(db: PGlite): Promise<Seeds> {
  install();
  installNetwork();
  // Not earlier: some modules read a clock when they are loaded.
  const { runSeed, watchUnhandled } = await import('./run.ts');
  const { DATABASE_URL } = await import('./machines/sim-node.ts');
  const { openDatabase } = await import('../../src/postgres/database.ts');
  const { migrate } = await import('../../src/postgres/migrate.ts');
  watchUnhandled();
  time.begin(0);
  const world = new World(db);
  // The last seed of another source may have ended in the middle of a transaction.
  world.sql('ROLLBACK');
  const schema = migrationsHash();
  if (world.sql("SELECT to_json(obj_description('public'::regnamespace))") !== schema) {
    world.sql('DROP SCHEMA public CASCADE');
    world.sql('CREATE SCHEMA public');
    await runToEnd(async () => {
      const database = openDatabase({ url: DATABASE_URL, maxConnections: 1 });
      await migrate(database);
      await database.destroy();
    });
    world.sql(`COMMENT ON SCHEMA public IS '${schema}'`);
  }
  world.prepare();
  return { run: (plan, trace) => runSeed(world, plan, trace) };
}

/** Of the texts of all migrations. */
function migrationsHash(): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(MIGRATIONS).sort()) hash.update(readFileSync(new URL(file, MIGRATIONS)));
  return hash.digest('hex');
}
