/** `npm run capacity`: what a sale of a given size needs. See docs/capacity.md. */
import { runBench } from '../support/run.ts';
import { checkReport } from './check.ts';
import { costsOf, readMeasured } from './costs.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';

const { demand, json, check } = readOptions(process.argv);
await runBench(json, async () => {
  const measured = readMeasured();
  const costs = costsOf(measured);
  return check ? checkReport(measured, costs) : report(demand, costs, measured);
});
