/**
 * Tries each command that a node sends, on keys that are removed at once. A hosted Redis may lack some commands or give them other
 * names, and the user of REDIS_URL may not be allowed to send them. A node would notice only when it needs them.
 */
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { adviceByWords } from '../terminal/explain.ts';
import { type Check, checksOf } from './check.ts';

const { ok, fail } = checksOf('redis');

/** The keys of a trial live no longer than this, in milliseconds, even if their removal is not allowed. */
const KEPT_MS = '60000';
/** A server of a cluster has at least one key in this many, unless it has only a few slots. */
const MAX_TRIED_KEYS = 200;

const [ONE, TWO] = ['<one>', '<two>'];
/** In this order: each finds what it needs. */
const TRIALS: readonly (readonly [command: string, ...words: string[]])[] = [
  ['set', ONE, '1', 'PX', KEPT_MS],
  ['get', ONE],
  ['pttl', ONE],
  ['persist', ONE],
  ['pexpire', ONE, KEPT_MS],
  ['incr', ONE],
  ['rename', ONE, TWO],
  ['del', TWO],
  ['hset', ONE, 'units', '1'],
  ['hget', ONE, 'units'],
  ['hmget', ONE, 'units'],
  ['hincrby', ONE, 'units', '1'],
  ['hscan', ONE, '0'],
  ['hdel', ONE, 'units'],
  ['unlink', ONE],
  ['xadd', ONE, '*', 'order', '1'],
  ['xlen', ONE],
  ['xrange', ONE, '-', '+'],
  ['xrevrange', ONE, '+', '-'],
  ['xinfo', 'GROUPS', ONE],
  ['xtrim', ONE, 'MAXLEN', '0'],
  ['time'],
];

/** The commands run in a script, as most commands of a node do. Each one is tried, even if earlier ones were refused. */
const TRY_ALL = `
local refused = {}
for line in string.gmatch(ARGV[1], '[^\\n]+') do
  local words = {}
  for word in string.gmatch(line, '%S+') do
    words[#words + 1] = word == '${ONE}' and KEYS[1] or word == '${TWO}' and KEYS[2] or word
  end
  local reply = redis.pcall(unpack(words))
  if type(reply) == 'table' and reply.err then refused[#refused + 1] = words[1] .. ': ' .. reply.err end
end
redis.pcall('unlink', KEYS[1], KEYS[2])
return refused`;

/** The commands that are tried. */
export const TRIED_COMMANDS = [...TRIALS.map(([command]) => command), 'publish', 'subscribe'];

/** @param client of a primary. @param isCluster whether it is one of a cluster, which has only some of the keys */
export async function checkCommands(client: Redis, keyPrefix: string, isCluster: boolean): Promise<Check> {
  const refused = [
    ...(await tryInScript(client, keyPrefix, isCluster)),
    ...(await tryMessages(client, `${keyPrefix}doctor-${randomUUID()}`)),
  ];
  // Redis refuses nearly every command then, whatever the user may do.
  const full = refused.map((line) => /: ((?:MISCONF|OOM) .*)/.exec(line)?.[1]).find(Boolean);
  if (full) return fail('commands', `Redis takes no writes now: ${full}`, adviceByWords(full)!);
  return refused.length === 0
    ? ok('commands', 'all that a node sends are allowed')
    : fail(
        'commands',
        refused.join('; '),
        'Allow them, under their own names, to the user of REDIS_URL: deploy/redis-users.acl lists all that a node sends.',
      );
}

async function tryInScript(client: Redis, keyPrefix: string, isCluster: boolean): Promise<string[]> {
  const lines = TRIALS.map((words) => words.join(' ')).join('\n');
  for (let tried = 1; ; tried++) {
    const tag = `${keyPrefix}{doctor-${randomUUID()}}`;
    try {
      return (await client.eval(TRY_ALL, 2, `${tag}:one`, `${tag}:two`, lines)) as string[];
    } catch (error) {
      const { message } = error as Error;
      const isElsewhere = isCluster && /^(MOVED|ASK)\b/.test(message);
      if (!isElsewhere) return [`eval: ${message}`];
      if (tried === MAX_TRIED_KEYS) return [];
    }
  }
}

async function tryMessages(client: Redis, channel: string): Promise<string[]> {
  const subscriber = client.duplicate();
  subscriber.on('error', () => {});
  const refused: string[] = [];
  const attempt = (command: string, sent: Promise<unknown>) =>
    sent.catch((error: Error) => refused.push(`${command}: ${error.message}`));
  try {
    await subscriber.connect();
    await attempt('subscribe', subscriber.subscribe(channel));
    await attempt('publish', client.publish(channel, ''));
  } finally {
    subscriber.disconnect();
  }
  return refused;
}
