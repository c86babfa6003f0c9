/**
 * How fast places are given. In each round:
 *
 *   echo ──> new buyers who ask for a place ──> echo
 *
 * as in bench:http, because the speed of a shared machine drifts.
 */
import { note } from '../../src/cli/terminal/output.ts';
import { readQueue } from '../../src/queue/queue-state.ts';
import type { Measurement } from '../http/measure.ts';
import { BenchFailure } from '../support/failure.ts';
import { count, rounded } from '../support/figures.ts';
import { median, medianOf } from '../support/median.ts';
import type { Stage } from './stage.ts';

export interface Giving {
  readonly placesPerSecond: number;
  /** The rate, divided by that of the echoes before and after it. */
  readonly ratio: number;
  /** The echoes' processor time per request, divided by that of a place; `undefined` where the system does not report it. */
  readonly cpuRatio: number | undefined;
  readonly echoPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly nodeCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
  readonly redisCpuMicros: number | undefined;
  readonly wrkCpuMicros: number | undefined;
  readonly coreUse: number | undefined;
}

/** A load of the node, and the echoes before it and after it. */
export interface Compared {
  readonly measured: Measurement;
  readonly echoes: readonly [Measurement, Measurement];
}

export async function measureGiving(stage: Stage): Promise<Giving> {
  const rounds: Compared[] = [];
  for (let i = 0; i < stage.parameters.rounds; i++) {
    const saleId = `giving-${i}`;
    // Units are of no matter here: the window opens much later.
    const startsAt = new Date(Date.now() + 86_400_000).toISOString();
    await stage.createSale({ id: saleId, stock: 1, queue: 'fifo', maxWaiting: 10_000_000, startsAt });
    const round = await besideEchoes(stage, () => stage.load({ url: stage.placeUrl(saleId) }));
    await checkGiven(stage, saleId, round.measured);
    note(
      `places, round ${i + 1}: ${count(round.measured.requestsPerSecond)}/s, ratio ${ratioOf(round).toFixed(2)}`,
    );
    rounds.push(round);
  }
  const of = (name: keyof Omit<Measurement, 'drain'>, digits: number) =>
    medianOf(rounds, ({ measured }) => measured[name], digits);
  return {
    placesPerSecond: of('requestsPerSecond', 0)!,
    ...ratios(rounds),
    p50Ms: of('p50Ms', 2)!,
    p99Ms: of('p99Ms', 2)!,
    nodeCpuMicros: of('nodeCpuMicros', 1),
    postgresCpuMicros: of('postgresCpuMicros', 1),
    redisCpuMicros: of('redisCpuMicros', 1),
    wrkCpuMicros: of('wrkCpuMicros', 1),
    coreUse: of('coreUse', 3),
  };
}

export async function besideEchoes(stage: Stage, load: () => Promise<Measurement>): Promise<Compared> {
  const before = await stage.echo();
  const measured = await load();
  return { measured, echoes: [before, await stage.echo()] };
}

export function ratios(rounds: readonly Compared[]): Pick<Giving, 'ratio' | 'cpuRatio' | 'echoPerSecond'> {
  const cpu = rounds.map(cpuRatioOf).filter((ratio) => ratio !== undefined);
  return {
    ratio: rounded(median(rounds.map(ratioOf)), 3),
    cpuRatio: cpu.length === 0 ? undefined : rounded(median(cpu), 3),
    echoPerSecond: rounded(median(rounds.map(({ echoes }) => echoRate(echoes))), 0),
  };
}

const echoRate = ([before, after]: Compared['echoes']) =>
  (before.requestsPerSecond + after.requestsPerSecond) / 2;

const ratioOf = ({ measured, echoes }: Compared) => measured.requestsPerSecond / echoRate(echoes);

function cpuRatioOf({ measured: { cpuMicros }, echoes: [before, after] }: Compared): number | undefined {
  if (cpuMicros === undefined || before.cpuMicros === undefined || after.cpuMicros === undefined)
    return undefined;
  return (before.cpuMicros + after.cpuMicros) / 2 / cpuMicros;
}

/** Each buyer asked once, so there are at least as many places as answers. @throws BenchFailure */
async function checkGiven(
  { db, parameters }: Stage,
  saleId: string,
  { requestsPerSecond }: Measurement,
): Promise<void> {
  const given = (await readQueue(db, saleId))?.lastNumber ?? 0;
  const answered = Math.floor(requestsPerSecond * parameters.seconds);
  if (given < answered)
    throw new BenchFailure(`${answered} buyers got a place, but there are ${given} places`);
}
