/** `npm run bench:queue`: what a queue costs, and what it is good for. See bench/queue/README.md. */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { assertEnoughFiles } from '../support/wrk/wrk.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { runAll } from './run-all.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  assertEnoughFiles(parameters.connections);
  return report(await runAll(parameters), parameters, describeMachine({ wrk: true }));
});
