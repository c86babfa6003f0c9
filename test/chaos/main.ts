/** `npm run chaos`: brings about faults on real processes while customers buy. */
import { forgetSettings } from '../../bench/support/stores.ts';
import { print, printJson } from '../../src/cli/terminal/output.ts';
import { readOptions } from './options.ts';
import { report } from './report.ts';
import { runAll } from './run-all.ts';

const options = readOptions(process.argv);
forgetSettings();
const { json, text, held } = report(await runAll(options), options);
if (options.json) printJson(json);
else print(text);
process.exitCode = held ? 0 : 1;
