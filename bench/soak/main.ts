/**
 * `npm run soak`: whether a node under a steady mixed load leaks memory, handles or connections. See
 * bench/soak/README.md.
 */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { readOptions } from './options.ts';
import { judge, report } from './report.ts';
import { soak } from './run-all.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  const result = await soak(parameters);
  const judged = judge(result, parameters);
  if (judged.isFlat === false) process.exitCode = 1;
  return report(result, judged, parameters, describeMachine({ wrk: false }));
});
