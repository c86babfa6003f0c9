/** `npm run bench:latency`: how long a buyer waits at loads below the node's capacity. See bench/latency/README.md. */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { assertEnoughFiles } from '../support/wrk/wrk.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { runRounds } from './rounds.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  assertEnoughFiles(parameters.connections);
  return report(await runRounds(parameters), parameters, describeMachine({ wrk: true }));
});
