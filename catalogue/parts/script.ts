import type { Redis } from 'ioredis';

let scriptsDefined = 0;

/**
 * A Lua script as a function: keys first, then arguments. The catalogue's scripts are a few lines each and stand in the
 * strategy that they are the idea of.
 */
export function script<Reply>(redis: Redis, numberOfKeys: number, lua: string) {
  const name = `catalogue:${++scriptsDefined}`;
  redis.defineCommand(name, { numberOfKeys, lua });
  const commands = redis as unknown as Record<string, (...args: (string | number)[]) => Promise<Reply>>;
  return (...args: (string | number)[]): Promise<Reply> => commands[name]!(...args);
}
