/** `npm run bench:resize`: how long buyers wait while their sale is resized. See bench/resize/README.md. */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { runAll } from './run-all.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () =>
  report(await runAll(parameters), parameters, describeMachine({ wrk: false })),
);
