/** `npm run chaos`: brings about faults on real processes while customers buy, or people wait in a queue. */
import { forgetSettings } from '../../bench/support/stores.ts';
import { print, printJson } from '../../src/cli/terminal/output.ts';
import { readOptions } from './options.ts';
import { queueReport } from './queue/report.ts';
import { runAllQueues } from './queue/run-all.ts';
import { report } from './report.ts';
import { runAll } from './run-all.ts';

const options = readOptions(process.argv);
forgetSettings();
const { json, text, held } = options.queue
  ? queueReport(await runAllQueues(options.queue), options.seed)
  : report(await runAll(options), options);
if (options.json) printJson(json);
else print(text);
process.exitCode = held ? 0 : 1;
