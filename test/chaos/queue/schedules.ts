/** The faults that are tried on a sale with a queue: those of the sale without one that matter to it, and two of its own. */
import { setTimeout as delay } from 'node:timers/promises';
import { metric } from '../../support/http/metrics.ts';
import { until } from '../../support/until.ts';
import type { Schedule } from '../schedule.ts';
import { scheduleNamed } from '../schedules.ts';
import type { Serving, World } from '../world.ts';

const LIMIT_MS = 60_000;
/** Time in which the head takes units for places while no sync commits these orders. */
const UNCOMMITTED_MS = 3_000;

const OWN: readonly Schedule[] = [
  {
    name: 'stop-head',
    what: 'SIGSTOP the serve that makes the offers, SIGCONT',
    times: 1,
    async strike({ world, hold }) {
      const { node } = await headOf(world);
      node.signal('SIGSTOP');
      await hold();
      node.signal('SIGCONT');
    },
  },
  {
    name: 'lose-newest',
    what: 'failover to a replica that lacks the offers under way',
    times: 1,
    losesWrites: true,
    async strike({ world }) {
      world.sync.program.signal('SIGSTOP');
      await world.ask(world.replica, (redis) => redis.replicaof('NO', 'ONE'));
      // Buyers cancel meanwhile, so units come back, and the head takes them for places.
      await delay(UNCOMMITTED_MS);
      await world.primary.kill();
      await world.exchange();
      world.sync.program.signal('SIGCONT');
    },
  },
];

const SHARED = [
  'kill-serve',
  'kill-all-serves',
  'kill-sync',
  'kill-redis',
  'kill-postgres',
  'kill-everything',
] as const;

export const QUEUE_SCHEDULES: readonly Schedule[] = [...SHARED.map(scheduleNamed), ...OWN];

/** The node that has made the most offers since it started. Only the head makes any. */
async function headOf({ nodes }: World): Promise<Serving> {
  const made = () => Promise.all(nodes.map(({ node }) => metric(node, 'stockade_queue_offers_total')));
  await until(async () => (await made()).some((offers) => offers > 0), {
    what: 'a node has made offers',
    timeoutMs: LIMIT_MS,
  });
  const offers = await made();
  return nodes[offers.indexOf(Math.max(...offers))]!;
}
