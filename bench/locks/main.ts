/** `npm run bench:locks`: what segment locks cost, and what combining saves. See bench/locks/README.md. */
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { measureLines } from './lines.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () =>
  report(await measureLines(parameters), parameters, describeMachine({ wrk: false })),
);
