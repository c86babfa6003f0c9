/** `npm run bench:catalogue`: compares all ways of selling stock. See bench/catalogue/README.md. */
import { writeFileSync } from 'node:fs';
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings } from '../support/stores.ts';
import { readOptions } from './options.ts';
import { page } from './page.ts';
import { ordersChart } from './pictures.ts';
import { report } from './report.ts';
import { resultOf } from './result.ts';
import { runRounds } from './rounds.ts';

const { parameters, json, html, svg } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  const machine = describeMachine({ wrk: false, zookeeper: true });
  const result = resultOf(await runRounds(parameters), parameters, machine);
  if (html !== undefined) writeFileSync(html, page(result));
  if (svg !== undefined) writeFileSync(svg, `${ordersChart(result)}\n`);
  return { text: report(result), json: result };
});
