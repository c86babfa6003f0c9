import { columns } from '../../src/cli/terminal/output.ts';
import { count, decimals, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { median } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { OPTIONS, type RecoverParameters } from './options.ts';
import type { Round } from './rounds.ts';

/** The promised limit for a million orders. */
const BAR_SECONDS_PER_MILLION = 60;
const WAYS = {
  read: 'read from Postgres',
  rebuild: 'rebuild',
  continued: 'rebuild, continued at half',
} as const;
const HEAD = ['way', 'seconds', 'orders/s', 'ratio'];

export function report(
  rounds: readonly Round[],
  parameters: RecoverParameters,
  machine: Machine,
): BenchResult {
  const seconds = (way: keyof Round) => rounded(median(rounds.map((round) => round[way] / 1_000)), 3);
  const [read, rebuild, continued] = [seconds('read'), seconds('rebuild'), seconds('continued')];
  const row = (way: keyof Round, orders: number) => [
    WAYS[way],
    decimals(seconds(way), 2),
    count(orders / seconds(way)),
    decimals(seconds(way) / read, 2),
  ];
  const perMillion = (rebuild / parameters.orders) * 1e6;
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(
      [
        row('read', parameters.orders),
        row('rebuild', parameters.orders),
        row('continued', parameters.orders / 2),
      ],
      { head: HEAD, align: ['left', 'right', 'right', 'right'] },
    ),
    '',
    `A million orders: ${perMillion.toFixed(1)} s; at most ${BAR_SECONDS_PER_MILLION} s are promised: ` +
      `${perMillion <= BAR_SECONDS_PER_MILLION ? 'met' : 'not met'}.`,
    'After each rebuild every buyer was in the segments, and verify found the sale in order.',
  ];
  return { text: text.join('\n'), json: { seconds: { read, rebuild, continued }, parameters, machine } };
}
