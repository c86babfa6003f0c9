/**
 * `npm run bench:rebalance`: buyers with one home segment, with and without the timer. See bench/rebalance/README.md.
 */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { runAll } from './rounds.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () =>
  report(await runAll(parameters), parameters, describeMachine({ wrk: false })),
);
