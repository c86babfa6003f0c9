/** Critical sections under a lock, with two ways of waiting for it. */
import type { Redis } from 'ioredis';
import type { Locks } from '../../src/locks/locks.ts';
import { BenchFailure } from '../support/failure.ts';
import type { SectionTask } from './tasks.ts';
import { pause, work } from './work.ts';

/** The textbook way: sleep shortly, then try again. Without the sleep the holder's commands would hardly be served. */
const SPIN_PAUSE_MS = 1;
const SPIN_LIMIT_MS = 60_000;
const TTL_MS = 10_000;
const WAIT_MS = 60_000;

const COMPARE_AND_DELETE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`;

export type Section = (client: number) => Promise<void>;

/** @param run sets the locks of this run apart from those of others */
export function sections(task: SectionTask, run: string, redis: Redis, locks: Locks): Section {
  const names = Array.from({ length: task.segments }, (_, segment) => `{${run}:${segment}}:lock`);
  const nameOf = (client: number) => names[client % names.length]!;
  const inside = () => work(task);
  if (task.kind === 'wake-up') {
    return (client) => locks.withLock(nameOf(client), inside, { waitMs: WAIT_MS });
  }
  return (client) => spin(redis, nameOf(client), `${process.pid}:${client}`, inside);
}

async function spin(redis: Redis, name: string, owner: string, inside: () => Promise<void>): Promise<void> {
  const began = performance.now();
  while ((await redis.set(name, owner, 'PX', TTL_MS, 'NX')) === null) {
    if (performance.now() - began > SPIN_LIMIT_MS) throw new BenchFailure(`${name} was never free`);
    await pause(SPIN_PAUSE_MS);
  }
  await inside();
  if ((await redis.eval(COMPARE_AND_DELETE, 1, name, owner)) !== 1)
    throw new BenchFailure(`${name} was lost`);
}
