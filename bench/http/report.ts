/** The results of a run, as tables and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { barText, count, decimals } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import type { BenchResult } from '../support/run.ts';
import {
  compare,
  type EchoFigures,
  echoFigures,
  type PhaseFigures,
  phaseFigures,
  type Spread,
} from './figures.ts';
import { describeParameters, type HttpParameters, isCompared } from './options.ts';
import { SELLING_PHASES, type SellingName } from './phases.ts';
import type { Leg, Run } from './rounds.ts';
import type { CandidateName } from './stage.ts';

type Phases = Readonly<Partial<Record<SellingName, PhaseFigures>>>;

export function report({ legs, spans }: Run, parameters: HttpParameters, machine: Machine): BenchResult {
  const points = parameters.connections.map((connections) => {
    const own = legs.filter((leg) => leg.connections === connections);
    const point = { connections, echo: echoFigures(own), ...phasesOf(own, 'this') };
    return isCompared(parameters) ? { ...point, compared: comparisonOf(own) } : point;
  });
  const text = [
    machineText(machine),
    describeParameters(parameters),
    ...points.flatMap((point) => ['', ...tableOf(point)]),
    ...(spans ? [`The other node's spans: ${spansText(spans)}`] : []),
    '',
    'All answers were as expected, and verify found every sale in order.',
  ];
  const json = { ...points.at(-1)!, sweep: points, ...(spans && { spans }), parameters, machine };
  return { text: text.join('\n'), json };
}

function phasesOf(legs: readonly Leg[], name: CandidateName): Phases {
  const measured = SELLING_PHASES.filter((phase) => legs.some((leg) => leg.phase === phase.name));
  return Object.fromEntries(measured.map((phase) => [phase.name, phaseFigures(legs, phase.name, name)]));
}

type Compared = Readonly<Record<SellingName, ReturnType<typeof compare> & { readonly other: PhaseFigures }>>;

function comparisonOf(legs: readonly Leg[]): Compared {
  const others = phasesOf(legs, 'other');
  const compared = SELLING_PHASES.map(({ name }) => [name, { other: others[name], ...compare(legs, name) }]);
  return Object.fromEntries(compared) as Compared;
}

interface Point extends Phases {
  readonly connections: number;
  readonly echo: EchoFigures;
  readonly compared?: Compared;
}

const HEAD = [
  'phase',
  'requests/s',
  'ratio',
  'cpu ratio',
  'cores',
  'p50 ms',
  'p99 ms',
  'Node µs',
  'Redis µs',
  'Postgres µs',
  'wrk µs',
  'a take',
  'a transaction',
  'bar',
];

function tableOf(point: Point): string[] {
  const { connections, echo, compared } = point;
  const rows = SELLING_PHASES.flatMap(({ name, title, bar }) => {
    const figures = point[name];
    return figures ? [[...row(title, figures), barText(figures.ratio, bar)]] : [];
  });
  const others = SELLING_PHASES.map(
    ({ name, title }) => compared && row(`${title}, other`, compared[name].other),
  );
  const table = [row('echo', echo), ...rows, ...others.filter((other) => other !== undefined)];
  const align = HEAD.map((_, i) => (i === 0 || i === HEAD.length - 1 ? 'left' : 'right'));
  return [
    `${connections} connections`,
    columns(
      table.map((cells) => HEAD.map((_, i) => cells[i])),
      { head: HEAD, align },
    ),
    ...drainLines(point.accepted?.drain),
    ...(compared ? SELLING_PHASES.map(({ name, title }) => comparisonLine(title, compared[name])) : []),
  ];
}

function row(title: string, figures: EchoFigures | PhaseFigures): (string | undefined)[] {
  const { ratio, cpuRatio, quartiles, takeOrders, transactionOrders } = figures as Partial<PhaseFigures>;
  return [
    title,
    count(figures.requestsPerSecond),
    ratio === undefined ? undefined : spreadText({ median: ratio, quartiles: quartiles!.ratio }),
    cpuRatio === undefined ? undefined : spreadText({ median: cpuRatio, quartiles: quartiles!.cpuRatio! }),
    figures.coreUse === undefined ? undefined : `${Math.round(figures.coreUse * 100)} %`,
    decimals(figures.p50Ms, 2),
    decimals(figures.p99Ms, 2),
    decimals(figures.nodeCpuMicros, 1),
    decimals(figures.redisCpuMicros, 1),
    decimals(figures.postgresCpuMicros, 1),
    decimals(figures.wrkCpuMicros, 1),
    decimals(takeOrders, 0),
    decimals(transactionOrders, 0),
  ];
}

function drainLines(drain: PhaseFigures['drain']): string[] {
  if (!drain) return [];
  const { orders, seconds, requestsPerSecond, ratio, cpuRatio } = drain;
  const cost = cpuRatio === undefined ? '' : `, cpu ratio ${cpuRatio.toFixed(2)}`;
  return [
    `accepted: when the load ended, ${count(orders)} orders were not in Postgres yet; they were ${seconds.toFixed(1)} s later.`,
    `accepted, with that time counted: ${count(requestsPerSecond)} requests/s, ratio ${ratio.toFixed(2)}${cost}`,
  ];
}

function comparisonLine(title: string, { nodeCpu, cpu }: ReturnType<typeof compare>): string {
  if (!nodeCpu || !cpu) return `${title}: this system reports no processor time, so nothing can be compared`;
  return `${title}: this node costs ${spreadText(cpu)} of the other's processor time, ${spreadText(nodeCpu)} of Node's`;
}

function spansText(spans: Readonly<Record<string, number>>): string {
  return Object.entries(spans)
    .map(([outcome, number]) => `${count(number)} ${outcome}`)
    .join(', ');
}

/** The median, and the quartiles around it. */
function spreadText({ median, quartiles: [first, third] }: Spread): string {
  return `${median.toFixed(2)} (${first.toFixed(2)}–${third.toFixed(2)})`;
}
