/** The results of a run: medians over its rounds, as a table and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { barText, count, decimals, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { median, medianOf } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { OPTIONS, type SyncParameters } from './options.ts';
import type { Measurement, Round } from './rounds.ts';

/** The promised ratio of sync's rows a second to the bare insert's. */
const BAR = 0.7;
const HEAD = ['way', 'rows/s', 'rows/transaction', 'Node µs', 'Redis µs', 'Postgres µs', 'ratio', 'bar'];

export function report(rounds: readonly Round[], parameters: SyncParameters, machine: Machine): BenchResult {
  const bare = medians(rounds.map((round) => round.bare));
  const sync = medians(rounds.map((round) => round.sync));
  const ratios = rounds.map((round) => round.sync.rowsPerSecond / round.bare.rowsPerSecond);
  const ratio = rounded(median(ratios), 3);
  const rows = [row('bare insert', bare, '', ''), row('sync', sync, ratio.toFixed(2), barText(ratio, BAR))];
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(rows, {
      head: HEAD,
      align: HEAD.map((name) => (name === 'way' || name === 'bar' ? 'left' : 'right')),
    }),
    '',
    'All cursors were at the heads of their logs, and verify found the sale of each round in order.',
  ];
  return { text: text.join('\n'), json: { bare, sync: { ...sync, ratio }, parameters, machine } };
}

function row(title: string, figures: Measurement, ratio: string, bar: string) {
  return [
    title,
    count(figures.rowsPerSecond),
    count(figures.rowsPerTransaction),
    decimals(figures.nodeCpuMicros, 1),
    decimals(figures.redisCpuMicros, 1),
    decimals(figures.postgresCpuMicros, 1),
    ratio,
    bar,
  ];
}

function medians(measurements: readonly Measurement[]): Measurement {
  const middle = (figure: (m: Measurement) => number | undefined, digits: number) =>
    medianOf(measurements, figure, digits);
  return {
    rowsPerSecond: middle((m) => m.rowsPerSecond, 1)!,
    rowsPerTransaction: middle((m) => m.rowsPerTransaction, 1)!,
    nodeCpuMicros: middle((m) => m.nodeCpuMicros, 2),
    redisCpuMicros: middle((m) => m.redisCpuMicros, 2),
    postgresCpuMicros: middle((m) => m.postgresCpuMicros, 2),
  };
}
