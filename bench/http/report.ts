/** What a run has shown: medians over its rounds, as a table and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { barText, count, decimals, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { median, medianOf } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import type { Drain, Measurement } from './measure.ts';
import { type HttpParameters, OPTIONS } from './options.ts';
import { type PhaseName, sellingPhases } from './phases.ts';
import { drainText, type Round } from './rounds.ts';

interface PhaseFigures extends Omit<Measurement, 'requests' | 'drain'> {
  /** To the echo of the same round; the echo has none. */
  readonly ratio?: number;
  readonly drain?: Drain;
}

export function report(rounds: readonly Round[], parameters: HttpParameters, machine: Machine): BenchResult {
  const echo = figuresOf(rounds, 'echo');
  const selling = sellingPhases(parameters).map((phase) => ({
    ...phase,
    figures: figuresOf(rounds, phase.name),
  }));
  const drain = selling.find(({ figures }) => figures.drain)?.figures.drain;
  const rows = [
    row('echo', echo, '', ''),
    ...selling.map(({ title, figures, bar }) =>
      row(title, figures, figures.ratio!.toFixed(2), bar === undefined ? '' : barText(figures.ratio!, bar)),
    ),
  ];
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(rows, { head: HEAD, align: HEAD.map((_, i) => (i === 0 || i === 9 ? 'left' : 'right')) }),
    '',
    ...(drain ? [`accepted: ${drainText(drain)}`] : []),
    'The answers were the wanted ones, and verify found every sale in order.',
  ];
  const phases = Object.fromEntries([['echo', echo], ...selling.map(({ name, figures }) => [name, figures])]);
  return { text: text.join('\n'), json: { ...phases, parameters, machine } };
}

const HEAD = [
  'phase',
  'requests/s',
  'p50 ms',
  'p99 ms',
  'Node µs',
  'Redis µs',
  'Postgres µs',
  'wrk µs',
  'ratio',
  'bar',
];

function row(title: string, figures: PhaseFigures, ratio: string, bar: string) {
  return [
    title,
    count(figures.requestsPerSecond),
    decimals(figures.p50Ms, 2),
    decimals(figures.p99Ms, 2),
    decimals(figures.nodeCpuMicros, 1),
    decimals(figures.redisCpuMicros, 1),
    decimals(figures.postgresCpuMicros, 1),
    decimals(figures.wrkCpuMicros, 1),
    ratio,
    bar,
  ];
}

function figuresOf(rounds: readonly Round[], name: PhaseName): PhaseFigures {
  const middle = (figure: (m: Measurement) => number | undefined, digits: number) =>
    medianOf(rounds, (round) => figure(round[name]!), digits);
  const ratios = rounds.map((round) => round[name]!.requestsPerSecond / round.echo.requestsPerSecond);
  return {
    requestsPerSecond: middle((m) => m.requestsPerSecond, 1)!,
    p50Ms: middle((m) => m.p50Ms, 3)!,
    p99Ms: middle((m) => m.p99Ms, 3)!,
    nodeCpuMicros: middle((m) => m.nodeCpuMicros, 2),
    redisCpuMicros: middle((m) => m.redisCpuMicros, 2),
    postgresCpuMicros: middle((m) => m.postgresCpuMicros, 2),
    wrkCpuMicros: middle((m) => m.wrkCpuMicros, 2),
    ...(name !== 'echo' && { ratio: rounded(median(ratios), 3) }),
    ...(rounds[0]![name]!.drain && {
      drain: { orders: middle((m) => m.drain?.orders, 0)!, seconds: middle((m) => m.drain?.seconds, 2)! },
    }),
  };
}
