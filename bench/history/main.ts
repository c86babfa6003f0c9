/** `npm run bench:history`: what operations cost in a shop with years of orders. See bench/history/README.md. */
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
