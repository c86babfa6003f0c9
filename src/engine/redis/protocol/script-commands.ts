/**
 * The scripts that a connection knows as commands: a call sends the script's hash instead of its source. Only `Scripts` calls them
 * (scripts.ts).
 */

import { fenced } from '../../../locks/fenced.ts';
import type { RedisClient } from '../../../redis/clients.ts';
import { luaSource } from './lua-source.ts';

interface Script {
  readonly lua: string;
  readonly numberOfKeys?: number;
}

const SCRIPTS = {
  take: { lua: luaSource('purchase/take'), numberOfKeys: 3 },
  fencedTake: { lua: fenced(luaSource('purchase/take')), numberOfKeys: 4 },
  recall: { lua: luaSource('purchase/recall'), numberOfKeys: 2 },
  compensate: { lua: luaSource('change/compensate'), numberOfKeys: 2 },
  credit: { lua: luaSource('change/credit'), numberOfKeys: 1 },
  withdraw: { lua: luaSource('change/withdraw'), numberOfKeys: 1 },
  giveBack: { lua: luaSource('change/give-back'), numberOfKeys: 1 },
  transfer: { lua: luaSource('change/transfer'), numberOfKeys: 2 },
  correct: { lua: luaSource('change/correct'), numberOfKeys: 1 },
  remember: { lua: luaSource('change/remember'), numberOfKeys: 2 },
  freeze: { lua: luaSource('build/freeze'), numberOfKeys: 1 },
  beginDraft: { lua: luaSource('build/begin-draft'), numberOfKeys: 1 },
  draftHoldings: { lua: luaSource('build/draft-holdings'), numberOfKeys: 1 },
  loadSegment: { lua: luaSource('build/load-segment'), numberOfKeys: 4 },
  loadHoldings: { lua: luaSource('build/load-holdings'), numberOfKeys: 2 },
  removeSegments: { lua: luaSource('build/remove-segments') },
  archiveSale: { lua: luaSource('build/archive-sale'), numberOfKeys: 1 },
  publishSale: { lua: luaSource('build/publish-sale'), numberOfKeys: 1 },
  appendEvents: { lua: luaSource('log/append-events'), numberOfKeys: 1 },
  /** Of these, the number of keys is the first argument: they serve several segments, and not always as many. */
  takes: { lua: luaSource('purchase/takes') },
  advance: { lua: luaSource('log/advance') },
  readLogs: { lua: luaSource('log/read-logs') },
  digest: { lua: luaSource('look/digest') },
} satisfies Record<string, Script>;

type Argument = string | number;
export type ScriptCommands = Record<keyof typeof SCRIPTS, (...args: Argument[]) => Promise<unknown>>;

export function defineCommands(redis: RedisClient): ScriptCommands {
  for (const [name, script] of Object.entries(SCRIPTS)) redis.defineCommand(`stockade:${name}`, script);
  return Object.fromEntries(
    Object.entries(SCRIPTS).map(([name, script]) => {
      const command = (redis as unknown as ScriptCommands)[`stockade:${name}` as keyof ScriptCommands].bind(
        redis,
      );
      return [name, (...args: Argument[]) => command(...args).catch(orWithSource(redis, script, args))];
    }),
  ) as ScriptCommands;
}

/**
 * If Redis has forgotten a script, ioredis loads it and sends its hash again. If Redis has forgotten it once more by
 * then, this sends the source: NOSCRIPT means that nothing was done.
 */
function orWithSource(redis: RedisClient, { lua, numberOfKeys }: Script, args: Argument[]) {
  return (error: Error) => {
    if (!error.message.startsWith('NOSCRIPT')) throw error;
    const [count, ...others] = numberOfKeys === undefined ? args : [numberOfKeys, ...args];
    return redis.eval(lua, count!, ...others);
  };
}
