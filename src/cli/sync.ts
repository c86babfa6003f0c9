import { type Config, ConfigError, type ConfigFault } from '../config/config.ts';
import type { Services } from '../node/services.ts';
import { type CommandSpec, type Invocation, settingsOf } from './command.ts';
import { EXIT_FAILED, EXIT_OK, type ExitCode } from './explain.ts';
import { note, printJson } from './output.ts';
import { watchSignals } from './signals.ts';

export const sync: CommandSpec = {
  name: 'sync',
  summary: 'carry the order logs from Redis to Postgres, until a signal',
  details:
    'For nodes that run with SYNC=off. Any number of these may run at once: they share the work out, and take over ' +
    'from one another.',
  settings: [...settingsOf('Stores', 'Sync', 'Process')].filter((name) => name !== 'sync'),
  examples: ['REDIS_URL=redis://localhost DATABASE_URL=postgres://localhost/shop stockade sync'],
  async run(invocation) {
    requireStores(invocation.config);
    const interruption = watchSignals();
    const { openServices } = await import('../node/services.ts');
    const services = await openServices(invocation.config, invocation.log);
    try {
      await services.migrate();
      return await syncUntil(interruption.asked, services, invocation);
    } finally {
      await services.close();
      interruption.release();
    }
  },
};

async function syncUntil(
  asked: Promise<NodeJS.Signals>,
  services: Services,
  { log, json }: Invocation,
): Promise<ExitCode> {
  const running = await services.startSync();
  if (json) printJson({ syncing: true, pid: process.pid });
  else note('Carrying orders to Postgres until Ctrl-C.');
  const end = await Promise.race([asked, running.failed]);
  if (end instanceof Error) log.fatal({ err: end }, 'sync failed');
  else log.info({ signal: end }, 'stopping');
  await running.stop();
  return end instanceof Error ? EXIT_FAILED : EXIT_OK;
}

/** The in-process backend and PGlite live inside one node, which carries its orders itself. */
function requireStores({ redisUrl, databaseUrl }: Config): void {
  const faults: ConfigFault[] = [];
  const problem = 'is not set: sync works between a Redis and a Postgres that nodes share';
  if (!redisUrl) faults.push({ field: 'REDIS_URL', problem });
  if (!databaseUrl) faults.push({ field: 'DATABASE_URL', problem });
  if (faults.length > 0) throw new ConfigError(faults);
}
