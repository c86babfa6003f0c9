import { Option } from 'commander';
import { describeConfig } from '../config/describe.ts';
import type { MigrateProgress } from '../node/services.ts';
import { type CommandSpec, QUIET } from './command/command.ts';
import { EXIT_OK, UsageError } from './terminal/explain.ts';
import { plural, print, printJson } from './terminal/output.ts';
import { type Progress, progressBar } from './terminal/progress.ts';

export const migrate: CommandSpec = {
  name: 'migrate',
  summary: "bring the database's tables up to this version",
  details:
    'A node does the same when it starts, if its Postgres user may create tables; if not, run this as the owner of the ' +
    'tables before you start the node. All pending migrations are applied in one transaction, or none is. Then the command builds ' +
    'the indexes that a node leaves out where the table is large, and counts the orders of older sales; nodes sell meanwhile.',
  options: [
    new Option(
      '--grant-to <role>',
      'also give this Postgres role exactly the rights on the tables that a node needs, and revoke all others',
    ),
    new Option('--may-delete-sales', 'with --grant-to: the role may also delete sales and their orders'),
  ],
  settings: ['databaseUrl', 'dataDir', 'logLevel'],
  defaults: QUIET,
  examples: [
    'DATABASE_URL=postgres://localhost/shop stockade migrate',
    'stockade migrate --grant-to stockade_app',
    'stockade migrate --json',
  ],
  async run({ config, log, json, options }) {
    const { grantTo: grantee, mayDeleteSales: mayDelete } = options as {
      grantTo?: string;
      mayDeleteSales?: true;
    };
    if (mayDelete && grantee === undefined)
      throw new UsageError('--may-delete-sales adds to the rights of --grant-to: give --grant-to <role> too');
    const { migrateDatabase } = await import('../node/services.ts');
    const { applied, indexes, countedSales } = await withBar((progress) =>
      migrateDatabase(config, log, { grantee, mayDelete }, progress),
    );
    const database = describeConfig(config).DATABASE_URL ?? `PGlite in ${config.dataDir}`;
    if (json)
      printJson({
        database,
        applied,
        indexes,
        countedSales,
        ...(grantee !== undefined && { grantedTo: grantee }),
      });
    else if (applied.length + indexes.length + countedSales === 0) print(`${database} is up to date.`);
    else {
      if (applied.length > 0)
        print(`${database}: applied ${plural(applied.length, 'migration')}: ${applied.join(', ')}`);
      if (indexes.length > 0) print(`${database}: built ${indexes.join(', ')}`);
      if (countedSales > 0) print(`${database}: counted the live orders of ${plural(countedSales, 'sale')}`);
    }
    if (!json && grantee !== undefined) print(`${grantee} has the rights that a node needs.`);
    return EXIT_OK;
  },
};

/** Shows a bar for each step. */
async function withBar<T>(work: (progress: (now: MigrateProgress) => void) => Promise<T>): Promise<T> {
  let bar: Progress | undefined;
  let shown = '';
  try {
    return await work(({ of, done, total }) => {
      if (of !== shown) {
        bar?.stop();
        bar = progressBar(total, of);
        shown = of;
      }
      bar?.update(done, total);
    });
  } finally {
    bar?.stop();
  }
}
