import type { Config } from '../config/config.ts';
import { ConfigError, type ConfigFault } from '../config/load-config.ts';
import { settingsFor } from '../config/settings.ts';
import type { CommandSpec } from './command/command.ts';
import { EXIT_FAILED, EXIT_OK } from './terminal/explain.ts';
import { note, outputFailure, printJson } from './terminal/output.ts';
import { unlessInterrupted, watchSignals } from './terminal/signals.ts';

export const sync: CommandSpec = {
  name: 'sync',
  summary: 'copy the order logs from Redis to Postgres, until a signal',
  details:
    'For nodes that run with SYNC=off. Any number of these processes may run at once: they divide the work among them, ' +
    'and if one ends, the others take over. Serves /metrics, /healthz and /readyz at the ops port; on the machine of a ' +
    'node it needs an OPS_PORT of its own.',
  settings: settingsFor('sync', 'Stores', 'Operators', 'Sync', 'Events', 'Process', 'Traces'),
  examples: [
    'REDIS_URL=redis://localhost DATABASE_URL=postgres://localhost/shop \\',
    '  stockade sync --ops-port 9091',
  ],
  async run({ config, log, json }) {
    requireStores(config);
    const interruption = watchSignals();
    try {
      const { startSyncProcess } = await import('../node/sync-process.ts');
      const start = (signal: AbortSignal) => startSyncProcess(config, log, signal);
      const running = await unlessInterrupted(interruption, log, start);
      if (!running) return EXIT_OK;
      const outputFailed = outputFailure();
      if (json)
        printJson({ syncing: true, pid: process.pid, opsUrl: running.opsUrl, probeUrl: running.probeUrl });
      else note(`Copying orders to Postgres until Ctrl-C. Metrics: ${running.opsUrl}/metrics`);
      const end = await Promise.race([interruption.asked, running.failed, outputFailed]);
      if (end instanceof Error) log.fatal({ err: end }, 'sync failed');
      else {
        log.info({ signal: end }, 'stopping');
        if (!json && process.stderr.isTTY) note('Stopping; a second Ctrl-C ends it at once …');
      }
      await running.stop();
      log.info('stopped');
      if (!json && process.stderr.isTTY) note('Stopped.');
      return end instanceof Error ? EXIT_FAILED : EXIT_OK;
    } finally {
      interruption.release();
    }
  },
};

/** The in-process backend and PGlite live inside one node, which runs sync itself. */
function requireStores({ redisUrl, databaseUrl }: Config): void {
  const faults: ConfigFault[] = [];
  const problem = 'is not set: sync works between a Redis and a Postgres that nodes share';
  if (!redisUrl) faults.push({ field: 'REDIS_URL', problem });
  if (!databaseUrl) faults.push({ field: 'DATABASE_URL', problem });
  if (faults.length > 0) throw new ConfigError(faults);
}
