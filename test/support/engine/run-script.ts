/** Runs a script on given keys without a server: what it replies, and what it changes in them. */
import { luaSource } from '../../../src/engine/redis/protocol/lua-source.ts';
import { Lua } from '../../sim/redis/lua.ts';
import { MiniRedis, type Reply, ReplyFault, type StreamEntry } from '../../sim/redis/mini-redis.ts';

/** The time of the server's clock. */
export const NOW_S = 1_790_000_000;
export const NOW_US = 123_456;

export type Hash = Readonly<Record<string, string>>;
/** By key: a hash, a stream, or a string. */
export type Stored = Readonly<Record<string, Hash | readonly StreamEntry[] | string>>;

export interface Run {
  /** The message of an error begins with `error `. */
  readonly reply: Reply;
  /** By key: the fields that differ, `null` for a removed one; the whole stream; or `null` for a removed key. */
  readonly written: Readonly<Record<string, unknown>>;
  /** With their arguments. */
  readonly commands: readonly string[];
  /** Instructions of Lua, in tens. */
  readonly steps: number;
}

const lua = new Lua();
/** More than any script here needs. */
const MAX_STEPS = 50_000;
const COUNTED = `steps = 0
debug.sethook(function()
  steps = steps + 1
  if steps > ${MAX_STEPS} then error('endless') end
end, '', 10)
`;
const STEPS = 'debug.sethook() return steps';

/** Redis trims about: whole nodes of entries. */
const NODE_ENTRIES = 3;

/** What keys have that expire. */
const LEFT_MS = 5_000;

/** What the simulated Redis lacks: streams of which the oldest entries are trimmed, their consumer groups, and expiry. */
const LACKING: Readonly<Record<string, (redis: MiniRedis, args: string[], groups: Reply) => Reply>> = {
  XREVRANGE: (redis, [key]) => redis.of(key!, 'stream')?.entries.slice(-1) ?? [],
  XLEN: (redis, [key]) => redis.of(key!, 'stream')?.entries.length ?? 0,
  XINFO: (_, _args, groups) => groups,
  PTTL: (redis, [key]) => (redis.data.has(key!) ? LEFT_MS : -2),
  PEXPIRE: (redis, [key]) => (redis.data.has(key!) ? 1 : 0),
  XADD: (redis, [key, id, ...fields]) => {
    const n = redis.of(key!, 'stream')?.entries.length ?? 0;
    return redis.call('XADD', [key!, id === '*' ? `${NOW_S * 1e3}-${n}` : id!, ...fields]);
  },
  XTRIM: (redis, [key, kind, ...rest]) => {
    if (kind !== 'MAXLEN') return redis.call('XTRIM', [key!, kind!, ...rest]);
    const stream = redis.of(key!, 'stream')!;
    const nodes = Math.floor(Math.max(0, stream.entries.length - Number(rest[1])) / NODE_ENTRIES);
    stream.entries = stream.entries.slice(nodes * NODE_ENTRIES);
    return nodes * NODE_ENTRIES;
  },
};

export interface Surroundings {
  /** As XINFO replies them. */
  readonly groups?: Reply;
  /** Commands that the user has no right to. */
  readonly forbidden?: readonly string[];
}

/** @param name as `luaSource` takes it */
export function runScript(
  name: string,
  stored: Stored,
  keys: readonly string[],
  args: readonly (string | number)[],
  around: Surroundings = {},
): Run {
  return runSource(luaSource(name), stored, keys, args, around);
}

/** @param script its text */
export function runSource(
  script: string,
  stored: Stored,
  keys: readonly string[],
  args: readonly (string | number)[],
  { groups = [], forbidden = [] }: Surroundings = {},
): Run {
  const commands: string[] = [];
  const redis = new MiniRedis({
    nowMs: () => NOW_S * 1e3 + NOW_US / 1e3,
    publish: () => 0,
  });
  const server = new MiniRedis(redis.around);
  server.data = redis.data;
  server.call = (command, words) => {
    commands.push([command, ...words].join(' '));
    if (forbidden.includes(command)) throw new ReplyFault(`NOPERM no right to ${command}`);
    return LACKING[command]?.(redis, words, groups) ?? redis.call(command, words);
  };
  for (const [key, value] of Object.entries(stored)) {
    if (typeof value === 'string') redis.data.set(key, { type: 'string', text: value });
    else if (Array.isArray(value))
      redis.data.set(key, { type: 'stream', entries: [...value], last: value.at(-1)?.[0] ?? '0-0' });
    else redis.data.set(key, { type: 'hash', fields: new Map(Object.entries(value)) });
  }
  const reply = replyOf();
  const steps = lua.run(redis, STEPS, [], []) as number;
  return { reply, written: written(stored, contentOf(redis)), commands, steps };

  function replyOf(): Reply {
    noteForMutants(script);
    try {
      return lua.run(server, `${COUNTED}${script}`, keys, args.map(String));
    } catch (error) {
      if (!(error instanceof ReplyFault)) throw error;
      return `error ${error.message}`;
    }
  }
}

/** `npm run mutants` runs a test for the mutants of the scripts that it has run (test/mutants/copies/mutant-switch.ts). */
function noteForMutants(script: string): void {
  (globalThis as { __stryker__?: { ran?(script: string): void } }).__stryker__?.ran?.(script);
}

function contentOf({ data }: MiniRedis): Stored {
  return Object.fromEntries(
    [...data].map(([key, value]) => {
      if (value.type === 'hash') return [key, Object.fromEntries(value.fields)];
      return [key, value.type === 'stream' ? value.entries : value.text];
    }),
  );
}

function written(before: Stored, after: Stored): Record<string, unknown> {
  const changed: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[key], after[key]];
    if (JSON.stringify(old) === JSON.stringify(now)) continue;
    if (now === undefined) changed[key] = null;
    else if (isHash(now)) changed[key] = fieldsThatDiffer(isHash(old) ? old : {}, now);
    else changed[key] = now;
  }
  return changed;
}

const isHash = (value: Stored[string] | undefined): value is Hash =>
  typeof value === 'object' && !Array.isArray(value);

function fieldsThatDiffer(old: Hash, now: Hash): Record<string, string | null> {
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  return Object.fromEntries(
    names.filter((name) => old[name] !== now[name]).map((name) => [name, now[name] ?? null]),
  );
}
