/**
 * `npm run bench:recover`: how long a sale stands still when Redis has lost everything. See bench/recover/README.md.
 */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { runRounds } from './rounds.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () =>
  report(await runRounds(parameters), parameters, describeMachine({ wrk: false })),
);
