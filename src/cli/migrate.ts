import { describeConfig } from '../config/config.ts';
import { type CommandSpec, QUIET, settingsOf } from './command.ts';
import { EXIT_OK } from './explain.ts';
import { plural, print, printJson } from './output.ts';

export const migrate: CommandSpec = {
  name: 'migrate',
  summary: "bring the database's tables up to this version",
  details:
    'A node does the same when it starts. All pending files are applied in one transaction, or none is.',
  settings: [...settingsOf('Stores'), 'logLevel'],
  defaults: QUIET,
  examples: ['DATABASE_URL=postgres://localhost/shop stockade migrate', 'stockade migrate --json'],
  async run({ config, log, json }) {
    const { openServices } = await import('../node/services.ts');
    const services = await openServices(config, log);
    try {
      const applied = await services.migrate();
      const database = describeConfig(config).DATABASE_URL ?? `PGlite in ${config.dataDir}`;
      if (json) printJson({ database, applied });
      else if (applied.length === 0) print(`${database} is up to date.`);
      else print(`${database}: applied ${plural(applied.length, 'migration')}: ${applied.join(', ')}`);
      return EXIT_OK;
    } finally {
      await services.close();
    }
  },
};
