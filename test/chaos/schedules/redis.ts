/**
 * Faults in which Redis loses or refuses writes: failover, an emptied server, a full disk, a full memory, evicted
 * keys.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { RedisServer } from '../../support/servers/redis-server.ts';
import { until } from '../../support/until.ts';
import { accepts, configure, fieldOf, refuses, roleIs } from '../redis-commands.ts';
import type { Schedule } from '../schedule.ts';
import { untilServed } from '../schedule.ts';

const LIMIT_MS = 60_000;
/** How much the append-only file may still grow, in bytes, before its disk counts as full. */
const ROOM_LEFT = 16 * 1024;

const run = promisify(execFile);

export const REDIS: readonly Schedule[] = [
  {
    name: 'failover',
    what: 'failover to the replica, nothing lost',
    times: 1,
    async strike({ world }) {
      const { primary, replica } = world;
      await world.ask(primary, (redis) => redis.call('FAILOVER', 'TO', '127.0.0.1', String(replica.port)));
      await until(() => roleIs(world, replica, 'master'), {
        what: 'the replica takes over',
        timeoutMs: LIMIT_MS,
      });
      await world.exchange();
    },
  },
  {
    name: 'failover-lossy',
    what: 'failover to a replica that lacks the last writes',
    times: 1,
    losesWrites: true,
    async strike(scene) {
      const { world } = scene;
      await world.ask(world.replica, (redis) => redis.replicaof('NO', 'ONE'));
      await untilServed(scene, 20);
      // What is in Postgres can't be lost, so wait until some orders are only in Redis.
      world.sync.program.signal('SIGSTOP');
      await untilServed(scene, 30);
      await world.primary.kill();
      await world.exchange();
      world.sync.program.signal('SIGCONT');
    },
  },
  {
    name: 'split-brain',
    what: 'two primaries for a while, a serve on each',
    times: 1,
    losesWrites: true,
    async strike(scene) {
      const { world } = scene;
      const [, second] = world.nodes;
      await world.ask(world.replica, (redis) => redis.replicaof('NO', 'ONE'));
      await world.exchange([second!, world.sync]);
      await untilServed(scene, 100);
      await scene.hold();
      world.nodes[0]!.redis.failOver(world.primary.port);
    },
  },
  {
    name: 'flush',
    what: 'Redis emptied',
    times: 2,
    losesWrites: true,
    async strike(scene) {
      const { world } = scene;
      world.sync.program.signal('SIGSTOP');
      await untilServed(scene, 50);
      await world.ask(world.primary, (redis) => redis.flushall());
      world.sync.program.signal('SIGCONT');
    },
  },
  {
    name: 'full-disk',
    what: "no room for Redis's append-only file",
    times: 2,
    missing: whyNoFileLimits,
    async strike({ world, hold }) {
      const { primary } = world;
      const size = Number(await fieldOf(world, primary, 'persistence', 'aof_current_size'));
      await limitFiles(primary, String(size + ROOM_LEFT));
      try {
        await until(() => refuses(world, 'MISCONF'), { what: 'Redis refuses writes', timeoutMs: LIMIT_MS });
        await hold();
      } finally {
        await limitFiles(primary, 'unlimited');
      }
      await until(() => accepts(world), { what: 'Redis takes writes', timeoutMs: LIMIT_MS });
    },
  },
  {
    name: 'full-memory',
    what: 'memory limit reached, noeviction',
    times: 2,
    async strike({ world, hold }) {
      await configure(world, 'maxmemory', '1mb');
      try {
        await until(() => refuses(world, 'OOM'), { what: 'Redis refuses writes', timeoutMs: LIMIT_MS });
        await hold();
      } finally {
        await configure(world, 'maxmemory', '0');
      }
    },
  },
];

/** Redis treats a write cut short by this limit like one cut short by a full disk. */
async function limitFiles({ pid }: RedisServer, bytes: string): Promise<void> {
  await run('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
}

async function whyNoFileLimits(): Promise<string | undefined> {
  const help = await run('prlimit', ['--version']).catch(() => undefined);
  return help ? undefined : 'prlimit (util-linux) is missing, which limits the file size of another process';
}
