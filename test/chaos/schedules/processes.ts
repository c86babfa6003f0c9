/** Processes that are killed, and processes that are stopped and resumed. */
import { until } from '../../support/until.ts';
import type { Scene, Schedule } from '../schedule.ts';
import { untilServed } from '../schedule.ts';

const START_LIMIT_MS = 60_000;

export const PROCESSES: readonly Schedule[] = [
  {
    name: 'kill-serve',
    what: 'kill -9 a serve, started again',
    times: 2,
    async strike({ world, hold }, time) {
      const victim = world.nodes[time % world.nodes.length]!;
      await victim.node.kill();
      await hold();
      await world.revive(victim);
    },
  },
  {
    name: 'kill-all-serves',
    what: 'kill -9 all serves at once',
    times: 1,
    async strike({ world, hold }) {
      await Promise.all(world.nodes.map(({ node }) => node.kill()));
      await hold();
      await Promise.all(world.nodes.map((serving) => world.revive(serving)));
    },
  },
  {
    name: 'kill-sync',
    what: 'kill -9 sync',
    times: 2,
    async strike({ world, hold }) {
      await world.sync.program.kill();
      await hold();
      await world.reviveSync();
    },
  },
  {
    name: 'kill-redis',
    what: 'kill -9 Redis, back with its file',
    times: 2,
    async strike({ world, hold }) {
      await world.primary.kill();
      await hold();
      await world.primary.restart();
    },
  },
  {
    name: 'kill-replica',
    what: 'kill -9 the replica',
    times: 1,
    async strike({ world, hold }) {
      await world.replica.kill();
      await hold();
      await world.replica.restart();
      await world.follow();
    },
  },
  {
    name: 'kill-postgres',
    what: 'kill -9 Postgres, all of its processes',
    times: 2,
    async strike({ world, hold }) {
      await world.postgres.kill();
      await hold();
      await world.postgres.restart();
    },
  },
  {
    name: 'kill-everything',
    what: 'kill -9 of all processes at once, stores too',
    times: 1,
    async strike({ world, hold }) {
      await Promise.all([
        ...world.nodes.map(({ node }) => node.kill()),
        world.sync.program.kill(),
        world.primary.kill(),
        world.postgres.kill(),
      ]);
      await hold();
      await Promise.all([world.primary.restart(), world.postgres.restart()]);
      await Promise.all([world.reviveSync(), ...world.nodes.map((serving) => world.revive(serving))]);
    },
  },
  {
    name: 'stop-serve',
    what: 'SIGSTOP a serve, SIGCONT',
    times: 2,
    async strike({ world, hold }, time) {
      const { node } = world.nodes[time % world.nodes.length]!;
      node.signal('SIGSTOP');
      await hold();
      node.signal('SIGCONT');
    },
  },
  {
    name: 'stop-sync',
    what: 'SIGSTOP sync, SIGCONT',
    times: 1,
    async strike({ world, hold }) {
      world.sync.program.signal('SIGSTOP');
      await hold();
      world.sync.program.signal('SIGCONT');
    },
  },
  {
    name: 'stop-redis',
    what: 'SIGSTOP Redis, SIGCONT',
    times: 2,
    async strike({ world, hold }) {
      await world.primary.pause();
      await hold();
      world.primary.resume();
    },
  },
  {
    name: 'stop-replica',
    what: 'SIGSTOP the replica, SIGCONT',
    times: 1,
    async strike({ world, hold }) {
      await world.replica.pause();
      await hold();
      world.replica.resume();
    },
  },
  {
    name: 'stop-postgres',
    what: 'SIGSTOP Postgres, SIGCONT',
    times: 1,
    async strike({ world, hold }) {
      await world.postgres.pause();
      await hold();
      world.postgres.resume();
    },
  },
  {
    name: 'second-sync',
    what: 'SIGSTOP sync; another takes over; SIGCONT',
    times: 1,
    async strike(scene) {
      const { world } = scene;
      world.sync.program.signal('SIGSTOP');
      // Its session ends, and its locks with it. When it resumes, another sync has already done its work.
      world.sync.postgres.cutAll();
      await using other = await world.anotherSync();
      try {
        await carries(scene);
      } finally {
        world.sync.program.signal('SIGCONT');
      }
      await untilServed(scene, 100);
      await other.kill();
    },
  },
];

async function carries({ history }: Scene): Promise<void> {
  const before = performance.now();
  await until(() => history.firstCommittedMs(before) !== undefined, {
    what: 'a customer is answered 201',
    timeoutMs: START_LIMIT_MS,
  });
}
