/** Commands that the schedules send to Redis directly, past Stockade. */
import type { RedisServer } from '../support/servers/redis-server.ts';
import type { World } from './world.ts';

const PROBE = 'chaos-probe';

export async function roleIs(world: World, server: RedisServer, role: string): Promise<boolean> {
  return (await fieldOf(world, server, 'replication', 'role')) === role;
}

/** @returns a field of INFO; '' if there is none */
export async function fieldOf(
  world: World,
  server: RedisServer,
  section: string,
  field: string,
): Promise<string> {
  const info = await world.ask(server, (redis) => redis.info(section));
  return new RegExp(`^${field}:(\\S*)`, 'm').exec(info)?.[1] ?? '';
}

export async function configure(world: World, name: string, value: string): Promise<void> {
  await world.ask(world.primary, (redis) => redis.config('SET', name, value));
}

/** Whether the primary refuses a write with this code. */
export function refuses(world: World, code: string): Promise<boolean> {
  return world.ask(world.primary, (redis) =>
    redis.set(PROBE, '').then(
      () => false,
      (error: Error) => error.message.startsWith(code),
    ),
  );
}

export async function accepts(world: World): Promise<boolean> {
  return (await world.ask(world.primary, (redis) => redis.set(PROBE, ''))) === 'OK';
}
