import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { describeConfig } from '../config/describe.ts';
import { settingsFor } from '../config/settings.ts';
import type { RunningNode } from '../node/node.ts';
import { createLog, type Log } from '../node/process/log.ts';
import type { CommandSpec } from './command/command.ts';
import { EXIT_FAILED, EXIT_OK } from './terminal/explain.ts';
import { note, outputFailure, print, printJson } from './terminal/output.ts';
import { readyText } from './terminal/ready.ts';
import { HOW_TO_STOP, leavingText, startingText, stoppedText, stoppingText } from './terminal/serve-notes.ts';
import { unlessInterrupted, watchSignals } from './terminal/signals.ts';

export const serve: CommandSpec = {
  name: 'serve',
  summary: 'run a node: the public port for buyers, the ops port for operators',
  details:
    'Without REDIS_URL and DATABASE_URL everything runs in this one process, with its data in DATA_DIR. ' +
    'On SIGINT, SIGTERM or SIGHUP it answers the requests under way and stops; a second signal ends it at once.',
  settings: settingsFor('node'),
  examples: [
    'stockade serve',
    'stockade serve --host 0.0.0.0 --buyer-auth jwt    (with JWT_SECRET set)',
    'REDIS_URL=redis://localhost DATABASE_URL=postgres://localhost/shop \\',
    '  stockade serve --workers 2',
  ],
  async run({ config, json }) {
    // Logs go to stdout. With --json they go to stderr, because stdout has the one object.
    const log = createLog(config, { stderr: json });
    const interruption = watchSignals();
    // Made for a terminal only: for the first number in a text, Node takes 15 ms to load its tables of languages.
    const tell = (text: () => string) => {
      if (process.stderr.isTTY) note(text());
    };
    tell(() => startingText(config));
    log.debug({ config: describeConfig(config) }, 'starting');
    const { startNode } = await import('../node/node.ts');
    const node = await unlessInterrupted(interruption, log, (signal) => startNode(config, log, signal));
    if (!node) return EXIT_OK;

    const { publicUrl, opsUrl, probeUrl, backendName: backend, databaseName: database } = node;
    const place = { publicUrl, opsUrl, probeUrl, backend, database };
    const text = readyText(node, config);
    const outputFailed = outputFailure();
    if (json) printJson({ ready: true, pid: process.pid, ...place });
    else if (process.stdout.isTTY) print(text);
    else log.info(place, text);
    tell(() => HOW_TO_STOP);

    let end = await Promise.race([interruption.asked, node.failed, outputFailed]);
    if (!(end instanceof Error) && config.stopDelayMs > 0) {
      tell(() => leavingText(config));
      end = await sellOn(end, node, config, log);
    }
    if (end instanceof Error) log.fatal({ err: end }, 'the node failed');
    else {
      const underWay = await node.underWay();
      log.info({ signal: end, underWay, graceMs: config.shutdownGraceMs }, 'stopping');
      tell(() => stoppingText(underWay, config));
    }
    const began = performance.now();
    await node.stop();
    const tookMs = Math.round(performance.now() - began);
    log.info({ tookMs }, 'stopped');
    tell(() => stoppedText(tookMs));
    return end instanceof Error ? EXIT_FAILED : EXIT_OK;
  },
};

/** Sells for `STOP_DELAY_MS` more while `/readyz` says 503. @returns why the node ends */
async function sellOn(
  signal: NodeJS.Signals,
  node: RunningNode,
  { stopDelayMs }: Config,
  log: Log,
): Promise<NodeJS.Signals | Error> {
  node.leave();
  log.info({ signal, delayMs: stopDelayMs }, 'not ready any more, but still selling');
  return Promise.race([delay(stopDelayMs, signal), node.failed]);
}
