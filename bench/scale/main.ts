/** `npm run bench:scale`: what an order costs with more nodes, more primaries and more syncs. See bench/scale/README.md. */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { assertEnoughFiles } from '../support/wrk/wrk.ts';
import { readOptions } from './options.ts';
import { mostConnections } from './points.ts';
import { report } from './report.ts';
import { runRounds } from './rounds.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  assertEnoughFiles(mostConnections(parameters));
  return report(await runRounds(parameters), parameters, describeMachine({ wrk: true }));
});
