import { columns } from '../../src/cli/terminal/output.ts';
import { count, decimals, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { median, medianOf, quartiles } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { type LatencyParameters, OPTIONS } from './options.ts';
import { type Cost, type Latencies, type Latency, LOADS, type LoadName, type Round } from './rounds.ts';

/** The promised limits. */
const BARS: Readonly<Partial<Record<LoadName, { readonly figure: 'p50Ms' | 'p99Ms'; readonly ms: number }>>> =
  {
    lone: { figure: 'p50Ms', ms: 5 },
    '30 %': { figure: 'p99Ms', ms: 10 },
  };
const COSTS = ['take', 'transaction', 'node', 'redis', 'postgres'] as const satisfies (keyof Cost)[];
const COST_HEAD = ['load', 'a take', 'a transaction', 'Node µs', 'Redis µs', 'Postgres µs'];
const HEAD = ['load', 'committed/s', 'p50 ms', 'p99 ms', 'unsent', 'only inserts: p50 ms', 'p99 ms', 'bar'];

export function report(
  rounds: readonly Round[],
  parameters: LatencyParameters,
  machine: Machine,
): BenchResult {
  const capacity = median(rounds.map((round) => round.capacity));
  const of = (load: LoadName, figure: keyof Latency, server: keyof Latencies = 'node') =>
    rounds.map((round) => round.loads[load][server][figure]);
  const costOf = (load: LoadName, part: keyof Cost) =>
    medianOf(rounds, (round) => round.loads[load].node[part], 1);
  const costs = LOADS.map((load) => [
    nameOf(load),
    ...COSTS.map((part) => decimals(costOf(load, part), part === 'transaction' ? 0 : 1)),
  ]);
  const rows = LOADS.map((load) => [
    nameOf(load),
    count(median(of(load, 'perSecond'))),
    spreadText(of(load, 'p50Ms')),
    spreadText(of(load, 'p99Ms')),
    count(median(of(load, 'unsent'))),
    spreadText(of(load, 'p50Ms', 'inserting')),
    spreadText(of(load, 'p99Ms', 'inserting')),
    barText(load, rounds),
  ]);
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    `Full load: ${count(capacity)} purchases/s are committed. Below it:`,
    '',
    columns(rows, {
      head: HEAD,
      align: ['left', 'right', 'right', 'right', 'right', 'right', 'right', 'left'],
    }),
    '',
    columns(costs, { head: COST_HEAD, align: ['left', 'right', 'right', 'right', 'right', 'right'] }),
    '',
    'All purchases were committed, and verify found every sale in order.',
  ];
  const latency = (load: LoadName, server: keyof Latencies) => ({
    perSecond: rounded(median(of(load, 'perSecond', server)), 1),
    p50Ms: rounded(median(of(load, 'p50Ms', server)), 2),
    p99Ms: rounded(median(of(load, 'p99Ms', server)), 2),
    unsent: median(of(load, 'unsent', server)),
  });
  const figures = (load: LoadName) => ({
    ...latency(load, 'node'),
    cost: Object.fromEntries(COSTS.map((part) => [part, costOf(load, part)])),
    inserting: latency(load, 'inserting'),
  });
  const [lone, ten, thirty, sixty] = LOADS.map(figures);
  return {
    text: text.join('\n'),
    json: {
      capacity: rounded(capacity, 1),
      lone,
      loads: { 10: ten, 30: thirty, 60: sixty },
      parameters,
      machine,
    },
  };
}

function nameOf(load: LoadName): string {
  return load === 'lone' ? 'one buyer after the other' : `${load} of the full load`;
}

function barText(load: LoadName, rounds: readonly Round[]): string | undefined {
  const bar = BARS[load];
  if (!bar) return undefined;
  const isMet = median(rounds.map((round) => round.loads[load].node[bar.figure])) <= bar.ms;
  return `${bar.figure === 'p50Ms' ? 'p50' : 'p99'} ≤ ${bar.ms} ms ${isMet ? 'met' : 'not met'}`;
}

/** The median, and the quartiles around it. */
function spreadText(values: readonly number[]): string {
  const [first, third] = quartiles(values);
  return `${median(values).toFixed(1)} (${first.toFixed(1)}–${third.toFixed(1)})`;
}
