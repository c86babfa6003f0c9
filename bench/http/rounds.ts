/**
 * The run: in each round all phases, with each number of connections.
 *
 *   echo  phase  echo  phase  echo  phase  echo
 *
 * A phase is compared with the mean of the echo before and the echo after it: the speed of a machine with neighbours drifts
 * within seconds. The phases rotate from round to round, and so do two builds within a phase.
 */
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { count } from '../support/figures.ts';
import { rotated } from '../support/rotated.ts';
import type { Measurement } from './measure.ts';
import type { HttpParameters } from './options.ts';
import { SELLING_PHASES, type SellingName, type SellingPhase } from './phases.ts';
import { type CandidateName, Stage } from './stage.ts';

/** One phase of one round. */
export interface Leg {
  readonly connections: number;
  readonly phase: SellingName;
  readonly measured: Readonly<Partial<Record<CandidateName, Measurement>>>;
  /** The echoes before it and after it. */
  readonly echoes: readonly [Measurement, Measurement];
}

export interface Run {
  readonly legs: readonly Leg[];
  /** Of the node that traces, from all rounds: spans by what became of them. */
  readonly spans?: Readonly<Record<string, number>>;
}

/** @throws BenchFailure if answers were wrong, or if a sale does not add up at the end */
export async function runRounds(parameters: HttpParameters): Promise<Run> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const stage = await Stage.start(parameters, teardown);
    try {
      const legs = await measureRounds(stage, parameters);
      return parameters.traces === undefined ? { legs } : { legs, spans: await stage.spans() };
    } catch (error) {
      note(`The nodes: ${await stage.lastWords()}`);
      throw error;
    }
  } finally {
    await teardown.release();
  }
}

async function measureRounds(
  stage: Stage,
  { rounds, connections, embedded }: HttpParameters,
): Promise<Leg[]> {
  const phases = SELLING_PHASES.filter(({ needsStores }) => !(embedded && needsStores));
  const legs: Leg[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const each of rotated(connections, round)) {
      note(`round ${round + 1} of ${rounds}, ${each} connections`);
      legs.push(...(await measureRound(stage, phases, round, each)));
    }
    await stage.verify();
  }
  return legs;
}

async function measureRound(
  stage: Stage,
  phases: readonly SellingPhase[],
  round: number,
  connections: number,
): Promise<Leg[]> {
  const legs: Leg[] = [];
  let before = told('echo', await stage.echo(connections));
  for (const phase of rotated(phases, round)) {
    const measured: Partial<Record<CandidateName, Measurement>> = {};
    for (const name of rotated(stage.candidates, round)) {
      const title = stage.candidates.length > 1 ? `${phase.title}, ${name}` : phase.title;
      measured[name] = told(title, await stage.sell(name, phase, round, connections));
    }
    const after = told('echo', await stage.echo(connections));
    legs.push({ connections, phase: phase.name, measured, echoes: [before, after] });
    before = after;
  }
  return legs;
}

function told(what: string, measurement: Measurement): Measurement {
  const { requestsPerSecond, p50Ms, cpuMicros } = measurement;
  const cost = cpuMicros === undefined ? '' : `, ${cpuMicros.toFixed(1)} µs of processor time each`;
  note(`  ${what}: ${count(requestsPerSecond)} requests/s, p50 ${p50Ms.toFixed(2)} ms${cost}`);
  return measurement;
}
