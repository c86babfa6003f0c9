/** `npm run bench:http`: how many purchases a second a node answers. See bench/http/README.md. */
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
  assertEnoughFiles(Math.max(...parameters.connections));
  const run = await runRounds(parameters);
  return report(run, parameters, describeMachine({ wrk: true }));
});
