/**
 * The faults that are tried on a sale with a queue: those of the sale without one that matter to it, faults of the head, losses in
 * Redis, and operators' changes whose node dies meanwhile.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/until.ts';
import type { Scene, Schedule } from '../schedule.ts';
import { scheduleNamed } from '../schedules.ts';
import { SALE, type Serving, type World } from '../world.ts';

const LIMIT_MS = 60_000;
/** A change that an operator makes takes some time: its node is killed at a random moment of it. */
const CHANGE_MS = 150;
/** Of the initial stock. */
const ADDED = 0.1;
const MORE_SEGMENTS = 3;
/** As verify calls units of orders that sync has not committed. */
const IN_LOGS = 'in logs beyond the cursors';

export interface QueueSchedule extends Schedule {
  /** The order of the places. Missing: `fifo`. */
  readonly order?: 'draw';
}

const HEADS: readonly QueueSchedule[] = [
  {
    name: 'kill-head',
    what: 'kill -9 the serve that makes the offers, started again',
    times: 2,
    async strike({ world, hold }) {
      const head = await headOf(world);
      await head.node.kill();
      await hold();
      await world.revive(head);
    },
  },
  {
    name: 'stop-head',
    what: 'SIGSTOP the serve that makes the offers, SIGCONT',
    times: 2,
    async strike({ world, hold }) {
      const { node } = await headOf(world);
      node.signal('SIGSTOP');
      await hold();
      node.signal('SIGCONT');
    },
  },
  {
    name: 'second-head',
    what: 'SIGSTOP the head; the other serve takes over; SIGCONT',
    times: 1,
    async strike({ world, hold }) {
      const head = await headOf(world);
      head.node.signal('SIGSTOP');
      try {
        // Its session ends, and its lock with it.
        head.postgres.cutAll();
        await until(async () => (await world.head()) !== head, {
          what: 'the other node makes the offers',
          timeoutMs: LIMIT_MS,
        });
        await hold();
      } finally {
        head.node.signal('SIGCONT');
      }
    },
  },
];

const LOSSES: readonly QueueSchedule[] = [
  {
    name: 'lose-newest',
    what: 'failover to a replica that lacks the offers under way',
    times: 1,
    losesWrites: true,
    async strike({ world }) {
      world.sync.program.signal('SIGSTOP');
      await world.ask(world.replica, (redis) => redis.replicaof('NO', 'ONE'));
      await untilUncommitted(world);
      await world.primary.kill();
      await world.exchange();
      world.sync.program.signal('SIGCONT');
    },
  },
  {
    name: 'lose-all',
    what: 'Redis emptied, with the offers under way; the sale is rebuilt',
    times: 1,
    losesWrites: true,
    async strike({ world }) {
      world.sync.program.signal('SIGSTOP');
      await untilUncommitted(world);
      await world.ask(world.primary, (redis) => redis.flushall());
      world.sync.program.signal('SIGCONT');
    },
  },
];

const OPERATORS: readonly QueueSchedule[] = [
  {
    name: 'top-up',
    what: 'kill -9 the serve that adds units, while it does',
    times: 2,
    async strike(scene) {
      const units = Math.ceil(scene.world.sale.stock * ADDED);
      await killedAt(scene, { action: 'top-up', units });
    },
  },
  {
    name: 'resize',
    what: 'kill -9 the serve that resizes the sale, while it does; then it is resized again',
    times: 2,
    async strike(scene, time) {
      const { world } = scene;
      const segments = world.sale.segments + MORE_SEGMENTS * (time + 1);
      await killedAt(scene, { action: 'resize', segments });
      await untilChanged(world, { action: 'resize', segments: segments - 1 });
    },
  },
  {
    name: 'pause',
    what: 'a pause longer than an offer lasts; kill -9 the head meanwhile',
    times: 1,
    async strike({ world, hold }) {
      await untilChanged(world, { action: 'pause' });
      const head = await headOf(world);
      await head.node.kill();
      await hold();
      await world.revive(head);
      await delay(world.sale.queue!.offerSeconds * 1_000);
      await untilChanged(world, { action: 'resume' });
    },
  },
];

const DRAWS: readonly QueueSchedule[] = [
  {
    name: 'kill-at-draw',
    what: 'kill -9 all serves while the draw is made, then the head',
    times: 2,
    order: 'draw',
    async strike({ world, random, hold }, time) {
      if (time > 0) {
        const head = await headOf(world);
        await head.node.kill();
        await hold();
        await world.revive(head);
        return;
      }
      await untilChanged(world, { action: 'window', startsAt: Date.now() });
      await delay(random.whole(0, CHANGE_MS));
      await Promise.all(world.nodes.map(({ node }) => node.kill()));
      await hold();
      await Promise.all(world.nodes.map((serving) => world.revive(serving)));
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

export const QUEUE_SCHEDULES: readonly QueueSchedule[] = [
  ...SHARED.map(scheduleNamed),
  ...HEADS,
  ...LOSSES,
  ...OPERATORS,
  ...DRAWS,
];

function headOf(world: World): Promise<Serving> {
  return until(() => world.head(), { what: 'a node makes offers', timeoutMs: LIMIT_MS });
}

/** Waits until Redis has units in orders that Postgres does not have. */
async function untilUncommitted({ nodes }: World): Promise<void> {
  const isUnderWay = async () => {
    const { identities } = await nodes[0]!.node.ops.verify(SALE);
    return identities.some(({ right }) => right.some(({ name, units }) => name === IN_LOGS && units > 0));
  };
  await until(isUnderWay, { what: 'offers are in Redis alone', timeoutMs: LIMIT_MS });
}

/** An operator's node dies at a random moment of the change. Whether the change was made, only Postgres knows. */
async function killedAt({ world, random, hold }: Scene, change: SaleChange): Promise<void> {
  const victim = random.pick(world.nodes);
  const made = victim.node.ops.change(SALE, change, BY).catch(() => undefined);
  await delay(random.whole(0, CHANGE_MS));
  await victim.node.kill();
  await made;
  await hold();
  await world.revive(victim);
}

/** Makes a change that does nothing when it is repeated. */
async function untilChanged({ nodes }: World, change: SaleChange): Promise<void> {
  const changed = () =>
    nodes[0]!.node.ops.change(SALE, change, BY).then(
      () => true,
      () => false,
    );
  await until(changed, { what: `the sale's ${change.action} is done`, timeoutMs: LIMIT_MS });
}
