/**
 * `npm run bench:growth`: how the cost of an order changes as sales grow, and how much memory it takes. See
 * bench/growth/README.md.
 */
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
