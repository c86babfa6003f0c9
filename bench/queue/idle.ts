/** What the stores and the node cost while nobody asks for anything. */
import { setTimeout as delay } from 'node:timers/promises';
import { measureCpu } from '../support/cpu-meter.ts';
import { rounded } from '../support/figures.ts';
import type { Stage } from './stage.ts';

/** Processor time in milliseconds per second. */
export interface Idle {
  readonly nodeMsPerSecond: number;
  readonly postgresMsPerSecond: number;
  readonly redisMsPerSecond: number;
}

/** @returns `undefined` where processor time can't be read */
export async function measureIdle({ cpu, parameters }: Stage): Promise<Idle | undefined> {
  const used = measureCpu(cpu);
  await delay(parameters.seconds * 1_000);
  const { node, postgres, redis } = used();
  if (node === undefined || postgres === undefined || redis === undefined) return undefined;
  const each = (seconds: number) => rounded((seconds * 1_000) / parameters.seconds, 1);
  return { nodeMsPerSecond: each(node), postgresMsPerSecond: each(postgres), redisMsPerSecond: each(redis) };
}

export function idleText({ nodeMsPerSecond, postgresMsPerSecond, redisMsPerSecond }: Idle): string {
  return `${nodeMsPerSecond} ms of Node a second, ${postgresMsPerSecond} of Postgres, ${redisMsPerSecond} of Redis`;
}
