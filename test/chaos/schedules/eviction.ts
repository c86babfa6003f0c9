/**
 * A Redis that is configured to evict keys: nodes must refuse to start on it, and running nodes must report it. And a
 * Redis that evicts.
 */
import { runCli } from '../../support/cli/cli.ts';
import { metric } from '../../support/http/metrics.ts';
import { until } from '../../support/until.ts';
import { configure, fieldOf } from '../redis-commands.ts';
import type { Schedule } from '../schedule.ts';
import type { World } from '../world.ts';

const LIMIT_MS = 60_000;
const WRONG_POLICY = 'allkeys-random';
const EVICTED = 2;
/** How far below the memory in use the limit is set, in bytes: enough to evict a key or two of the sale. */
const SQUEEZE = 4_096;

export const EVICTION: readonly Schedule[] = [
  {
    name: 'eviction-policy',
    what: 'maxmemory-policy set to evict: refused at start and by doctor, reported by running processes',
    times: 1,
    async strike({ world, hold }) {
      await configure(world, 'maxmemory-policy', WRONG_POLICY);
      try {
        await refused(world, ['serve', '--port', '0', '--ops-port', '0'], 2);
        await refused(world, ['sync', '--ops-port', '0'], 2);
        await refused(world, ['doctor', '--port', '0', '--ops-port', '0'], 1);
        await until(() => tells(world, 1), { what: 'the alarm', timeoutMs: LIMIT_MS });
        await hold();
      } finally {
        await configure(world, 'maxmemory-policy', 'noeviction');
      }
      await until(() => tells(world, 0), { what: 'the end of the alarm', timeoutMs: LIMIT_MS });
    },
  },
  {
    name: 'evicted',
    what: `${EVICTED} keys or more evicted; stockade recover afterwards`,
    times: 1,
    losesWrites: true,
    needsRecovery: true,
    async strike({ world }) {
      const used = await fieldOf(world, world.primary, 'memory', 'used_memory');
      await configure(world, 'maxmemory-policy', WRONG_POLICY);
      try {
        await configure(world, 'maxmemory', String(Number(used) - SQUEEZE));
        await until(
          async () => Number(await fieldOf(world, world.primary, 'stats', 'evicted_keys')) >= EVICTED,
          {
            what: 'keys are evicted',
            timeoutMs: LIMIT_MS,
          },
        );
      } finally {
        await configure(world, 'maxmemory', '0');
        await configure(world, 'maxmemory-policy', 'noeviction');
      }
    },
  },
];

/** @throws if the command starts, or does not name the remedy */
async function refused(world: World, args: readonly string[], exitCode: number): Promise<void> {
  const ended = await runCli(args, { env: world.settings });
  const said = `${ended.stdout}${ended.stderr}`;
  if (ended.exitCode === exitCode && /set .*noeviction/i.test(said)) return;
  throw new Error(`${args[0]} ended with ${ended.exitCode} instead of ${exitCode}: ${said}`);
}

async function tells({ nodes }: World, servers: number): Promise<boolean> {
  const told = nodes.map(({ node }) => metric(node, 'stockade_redis_evicting_servers'));
  return (await Promise.all(told)).every((count) => count === servers);
}
