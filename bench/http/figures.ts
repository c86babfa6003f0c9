/** The results of the rounds: medians, and quartiles of the figures that are compared. */
import { rounded } from '../support/figures.ts';
import { median, medianOf, quartiles } from '../support/median.ts';
import type { Drain, Measurement } from './measure.ts';
import type { SellingName } from './phases.ts';
import type { Leg } from './rounds.ts';
import type { CandidateName } from './stage.ts';

type Quartiles = readonly [number, number];

/** The median of some rounds, and the quartiles around it. */
export interface Spread {
  readonly median: number;
  readonly quartiles: Quartiles;
}

type SellingOnly =
  | 'drain'
  | 'takeOrders'
  | 'transactionOrders'
  | 'answerBytes'
  | 'toRedisBytes'
  | 'fromRedisBytes'
  | 'walBytes';
export type EchoFigures = Omit<Measurement, SellingOnly>;

export interface PhaseFigures extends Omit<Measurement, 'drain'> {
  /** The rate, divided by that of the echoes before and after the phase. */
  readonly ratio: number;
  /**
   * The echoes' processor time per request, divided by that of the phase; `undefined` where the system does not
   * report it.
   */
  readonly cpuRatio: number | undefined;
  readonly quartiles: {
    readonly ratio: Quartiles;
    readonly cpuRatio: Quartiles | undefined;
    readonly p99Ms: Quartiles;
  };
  readonly drain?: Drain & { readonly ratio: number; readonly cpuRatio: number | undefined };
}

/**
 * The cost of a request with this build, divided by its cost with the other one in the same phase of the same round.
 */
export interface Comparison {
  readonly nodeCpu: Spread | undefined;
  readonly cpu: Spread | undefined;
}

const DIGITS: Readonly<Record<keyof Omit<Measurement, 'drain'>, number>> = {
  requestsPerSecond: 1,
  p50Ms: 3,
  p99Ms: 3,
  nodeCpuMicros: 2,
  redisCpuMicros: 2,
  postgresCpuMicros: 2,
  wrkCpuMicros: 2,
  cpuMicros: 2,
  coreUse: 3,
  takeOrders: 1,
  transactionOrders: 1,
  answerBytes: 0,
  toRedisBytes: 0,
  fromRedisBytes: 0,
  walBytes: 0,
};

export function echoFigures(legs: readonly Leg[]): EchoFigures {
  return medians(legs.flatMap(({ echoes }) => echoes));
}

export function phaseFigures(
  all: readonly Leg[],
  phase: SellingName,
  name: CandidateName,
): PhaseFigures | undefined {
  const legs = all.filter((leg) => leg.phase === phase && leg.measured[name]);
  if (legs.length === 0) return undefined;
  const measured = legs.map((leg) => leg.measured[name]!);
  const ratio = spread(legs.map((leg) => leg.measured[name]!.requestsPerSecond / echoRate(leg)))!;
  const cpuRatio = spread(legs.map((leg) => quotient(echoCost(leg), leg.measured[name]!.cpuMicros)));
  return {
    ...medians(measured),
    ratio: ratio.median,
    cpuRatio: cpuRatio?.median,
    quartiles: {
      ratio: ratio.quartiles,
      cpuRatio: cpuRatio?.quartiles,
      p99Ms: spread(measured.map((m) => m.p99Ms))!.quartiles,
    },
    ...(measured[0]!.drain && { drain: drainFigures(legs, name) }),
  };
}

export function compare(all: readonly Leg[], phase: SellingName): Comparison {
  const legs = all.filter((leg) => leg.phase === phase);
  const of = (figure: (m: Measurement) => number | undefined) =>
    spread(legs.map(({ measured }) => quotient(figure(measured.this!), figure(measured.other!))));
  return { nodeCpu: of((m) => m.nodeCpuMicros), cpu: of((m) => m.cpuMicros) };
}

function drainFigures(legs: readonly Leg[], name: CandidateName): NonNullable<PhaseFigures['drain']> {
  const drains = legs.map((leg) => ({ leg, drain: leg.measured[name]!.drain! }));
  const middle = (figure: (drain: Drain) => number | undefined, digits: number) =>
    medianOf(drains, ({ drain }) => figure(drain), digits);
  return {
    orders: middle((d) => d.orders, 0)!,
    seconds: middle((d) => d.seconds, 2)!,
    requestsPerSecond: middle((d) => d.requestsPerSecond, 1)!,
    cpuMicros: middle((d) => d.cpuMicros, 2),
    ratio: spread(drains.map(({ leg, drain }) => drain.requestsPerSecond / echoRate(leg)))!.median,
    cpuRatio: spread(drains.map(({ leg, drain }) => quotient(echoCost(leg), drain.cpuMicros)))?.median,
  };
}

function echoRate({ echoes: [before, after] }: Leg): number {
  return (before.requestsPerSecond + after.requestsPerSecond) / 2;
}

function echoCost({ echoes: [before, after] }: Leg): number | undefined {
  if (before.cpuMicros === undefined || after.cpuMicros === undefined) return undefined;
  return (before.cpuMicros + after.cpuMicros) / 2;
}

function quotient(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a / b;
}

/** `undefined` if the system reported none of them. */
function spread(values: readonly (number | undefined)[]): Spread | undefined {
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0) return undefined;
  const [first, third] = quartiles(known);
  return { median: rounded(median(known), 3), quartiles: [rounded(first, 3), rounded(third, 3)] };
}

function medians(measurements: readonly Measurement[]): Omit<Measurement, 'drain'> {
  const figures = Object.entries(DIGITS).map(([name, digits]) => [
    name,
    medianOf(measurements, (m) => m[name as keyof typeof DIGITS], digits),
  ]);
  return Object.fromEntries(figures) as Omit<Measurement, 'drain'>;
}
