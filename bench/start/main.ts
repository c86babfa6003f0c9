/** `npm run bench:start`: how soon a node is ready, and what it costs while nobody buys. See bench/start/README.md. */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { assertEnoughFiles } from '../support/wrk/wrk.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { measure } from './stage.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  assertEnoughFiles(parameters.connections);
  return report(await measure(parameters), parameters, describeMachine({ wrk: false }));
});
