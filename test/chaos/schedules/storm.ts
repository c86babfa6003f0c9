/** Several faults of different kinds at once: from each group one fault or none, at random. */
import type { Schedule } from '../schedule.ts';

const TIMES = 6;
const LIKELY = 0.7;

/**
 * Faults of one group would disturb each other. None of them makes Redis lose writes, or kills all processes that know
 * of an order.
 */
const GROUPS: readonly (readonly string[])[] = [
  ['kill-serve', 'stop-serve', 'refuse-redis', 'clock-serve'],
  ['kill-sync', 'stop-sync'],
  ['cut-customers', 'cut-redis', 'cut-postgres'],
  ['kill-redis', 'stop-redis', 'failover', 'full-disk', 'full-memory', 'kill-replica', 'stop-replica'],
  ['kill-postgres', 'stop-postgres', 'restart-postgres', 'crash-postgres'],
];

export function storm(all: readonly Schedule[]): Schedule {
  const groups = GROUPS.map((names) => names.map((name) => named(all, name)));
  return {
    name: 'storm',
    what: 'several of the others at once, drawn by lot',
    times: TIMES,
    async missing() {
      const reasons = await Promise.all(groups.flat().map(({ missing }) => missing?.()));
      return reasons.find((reason) => reason !== undefined);
    },
    async strike(scene, time) {
      const drawn = groups.filter(() => scene.random.chance(LIKELY)).map((group) => scene.random.pick(group));
      await Promise.all(drawn.map((schedule) => schedule.strike(scene, time)));
    },
  };
}

/** Fails if a fault was renamed, which would otherwise drop it silently. */
function named(all: readonly Schedule[], name: string): Schedule {
  const found = all.find((schedule) => schedule.name === name);
  if (!found) throw new Error(`storm draws ${name}, and there is no such fault`);
  return found;
}
