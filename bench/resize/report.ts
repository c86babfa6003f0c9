/** The results of a run, as a table and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { OPTIONS, type ResizeParameters } from './options.ts';
import type { MeasuredResize } from './run-all.ts';

/** The promised limit for the longest wait, with 100,000 buyers recorded. */
const BAR_MS = 1_000;
const HEAD = ['backend', 'segments', 'purchases', 'longest ms', 'p99.9 ms', 'took s'];

export function report(
  resizes: readonly MeasuredResize[],
  parameters: ResizeParameters,
  machine: Machine,
): BenchResult {
  const longestMs = Math.max(...resizes.map((resize) => resize.longestMs));
  const rows = resizes.map(({ backend, from, to, purchases, longestMs, p999Ms, seconds }) => [
    backend,
    `${from} -> ${to}`,
    count(purchases),
    count(longestMs),
    p999Ms.toFixed(1),
    seconds.toFixed(1),
  ]);
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(rows, { head: HEAD, align: HEAD.map((_, i) => (i < 2 ? 'left' : 'right')) }),
    '',
    `Longest wait: ${count(longestMs)} ms (bar: ≤ ${count(BAR_MS)} ms ${longestMs <= BAR_MS ? 'met' : 'not met'})`,
    'All purchases were committed, and verify found every sale in order.',
  ];
  return { text: text.join('\n'), json: { longestMs, resizes, parameters, machine } };
}
