/**
 * The part of Redis that the product uses: keys as plain values, so that a copy of them is a snapshot, and commands that follow
 * Redis' own rules wherever the product may depend on them.
 */

export type StreamEntry = [id: string, fields: string[]];
type Value =
  | { type: 'string'; text: string }
  | { type: 'hash'; fields: Map<string, string> }
  | { type: 'stream'; entries: StreamEntry[]; last: string };
export type Data = Map<string, Value>;

export type Reply = string | number | null | { ok: string } | readonly Reply[];

/** An error reply of Redis. */
export class ReplyFault extends Error {}

const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';
const TOO_FEW = 'ERR wrong number of arguments';
const NOT_A_NUMBER = 'ERR value is not an integer or out of range';

export interface Surroundings {
  nowMs(): number;
  publish(channel: string, message: string): number;
  /** An entry was added to a stream. */
  added?(key: string, fields: readonly string[]): void;
}

type Command = (keys: MiniRedis, args: string[]) => Reply;

export class MiniRedis {
  data: Data = new Map();
  readonly around: Surroundings;

  constructor(around: Surroundings) {
    this.around = around;
  }

  has(name: string): boolean {
    return name in COMMANDS;
  }

  /** @throws ReplyFault */
  call(name: string, args: string[]): Reply {
    const command = COMMANDS[name.toUpperCase()];
    if (!command) throw new ReplyFault(`ERR unknown command '${name}'`);
    return command(this, args);
  }

  of<T extends Value['type']>(key: string, type: T): Extract<Value, { type: T }> | undefined {
    const value = this.data.get(key);
    if (value && value.type !== type) throw new ReplyFault(WRONG_TYPE);
    return value as Extract<Value, { type: T }> | undefined;
  }

  hash(key: string): Map<string, string> {
    const found = this.of(key, 'hash');
    if (found) return found.fields;
    const fields = new Map<string, string>();
    this.data.set(key, { type: 'hash', fields });
    return fields;
  }
}

function whole(text: string | undefined): number {
  if (!/^-?\d+$/.test(text ?? '0')) throw new ReplyFault(NOT_A_NUMBER);
  return Number(text ?? 0);
}

/** Parses a stream id into numbers that can be compared. @param seq for an id without a sequence number */
function idOf(text: string, seq: number): [number, number] {
  const [first, second] = text.replace(/^\(/, '').split('-');
  return [Number(first), second === undefined ? seq : Number(second)];
}

function compare(a: [number, number], b: [number, number]): number {
  return a[0] - b[0] || a[1] - b[1];
}

const remove: Command = ({ data }, keys) => keys.filter((key) => data.delete(key)).length;

const COMMANDS: Readonly<Record<string, Command>> = {
  GET: (r, [key]) => r.of(key!, 'string')?.text ?? null,
  SET: ({ data }, [key, text]) => {
    data.set(key!, { type: 'string', text: text! });
    return { ok: 'OK' };
  },
  INCR: (r, [key]) => {
    const next = whole(r.of(key!, 'string')?.text) + 1;
    r.data.set(key!, { type: 'string', text: String(next) });
    return next;
  },
  DEL: remove,
  UNLINK: remove,
  PERSIST: () => 0,
  PEXPIRE: () => 1,
  RENAME: ({ data }, [from, to]) => {
    const value = data.get(from!);
    if (!value) throw new ReplyFault('ERR no such key');
    data.delete(from!);
    data.set(to!, value);
    return { ok: 'OK' };
  },
  HGET: (r, [key, field]) => r.of(key!, 'hash')?.fields.get(field!) ?? null,
  HMGET: (r, [key, ...names]) => {
    if (names.length === 0) throw new ReplyFault(TOO_FEW);
    const fields = r.of(key!, 'hash')?.fields;
    return names.map((name) => fields?.get(name) ?? null);
  },
  HGETALL: (r, [key]) => [...(r.of(key!, 'hash')?.fields ?? [])].flat(),
  HSET: (r, [key, ...pairs]) => {
    if (pairs.length === 0 || pairs.length % 2 === 1) throw new ReplyFault(TOO_FEW);
    const fields = r.hash(key!);
    for (let i = 0; i < pairs.length; i += 2) fields.set(pairs[i]!, pairs[i + 1]!);
    return pairs.length / 2;
  },
  HDEL: (r, [key, ...names]) => {
    if (names.length === 0) throw new ReplyFault(TOO_FEW);
    const fields = r.of(key!, 'hash')?.fields;
    const gone = names.filter((name) => fields?.delete(name)).length;
    if (fields?.size === 0) r.data.delete(key!);
    return gone;
  },
  HINCRBY: (r, [key, field, by]) => {
    const next = whole(r.of(key!, 'hash')?.fields.get(field!)) + whole(by);
    r.hash(key!).set(field!, String(next));
    return next;
  },
  HSCAN: (r, [key]) => ['0', [...(r.of(key!, 'hash')?.fields ?? [])].flat()],
  XADD: (r, [key, id, ...fields]) => {
    const stream = r.of(key!, 'stream');
    if (compare(idOf(id!, 0), idOf(stream?.last ?? '0-0', 0)) <= 0)
      throw new ReplyFault(
        'ERR The ID specified in XADD is equal or smaller than the target stream top item',
      );
    const entries = [...(stream?.entries ?? []), [id!, fields] as StreamEntry];
    r.data.set(key!, { type: 'stream', entries, last: id! });
    r.around.added?.(key!, fields);
    return id!;
  },
  XRANGE: (r, [key, from, to, , count]) => {
    if (count === '0') return null;
    const entries = r.of(key!, 'stream')?.entries ?? [];
    const isOpen = from!.startsWith('(');
    const [least, most] = [idOf(from!, 0), idOf(to!, Number.POSITIVE_INFINITY)];
    const found = entries.filter(([id]) => {
      const at = idOf(id, 0);
      return compare(at, least) >= (isOpen ? Number.MIN_VALUE : 0) && compare(at, most) <= 0;
    });
    return found.slice(0, count === undefined ? undefined : Number(count));
  },
  XTRIM: (r, [key, , id]) => {
    const stream = r.of(key!, 'stream');
    if (!stream) return 0;
    const least = idOf(id!, 0);
    const before = stream.entries.length;
    stream.entries = stream.entries.filter(([at]) => compare(idOf(at, 0), least) >= 0);
    return before - stream.entries.length;
  },
  TIME: ({ around }) => {
    const us = Math.floor(around.nowMs() * 1e3);
    return [String(Math.floor(us / 1e6)), String(us % 1e6)];
  },
  PUBLISH: ({ around }, [channel, message]) => around.publish(channel!, message!),
  PING: (_, [text]) => text ?? { ok: 'PONG' },
};
