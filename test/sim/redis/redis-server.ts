/**
 * A simulated Redis: one server, or a primary of a cluster. When it dies it loses the writes since the last sync of its file;
 * when it is emptied, everything.
 */
import { isDeepStrictEqual } from 'node:util';
import { slotOf } from '../../../src/engine/cluster/slot.ts';
import { AFTER_ALL_IDS } from '../../../src/engine/limits.ts';
import type { Link, Listener, Network, Session } from '../machines/network.ts';
import { Machine, time } from '../machines/virtual-time.ts';
import { Lua, sha1 } from './lua.ts';
import { type Data, MiniRedis, type Reply, ReplyFault } from './mini-redis.ts';
import { CommandReader, encode } from './resp.ts';

const SLOTS = 16_384;
/** The most time that a message takes from one server of a cluster to the others. */
const GOSSIP_MS = 3;
const LATE_MESSAGE_MS = 100;
/** The chance and the longest time that commands of other sessions run between two commands of one packet. */
const PAUSE = 0.25;
const PAUSE_MS = 0.5;

/** Compiled scripts stay: all servers of a process share one interpreter, which keeps no state between runs. */
const lua = new Lua();

/** All servers of one installation. */
export interface Installation {
  readonly servers: readonly RedisServer[];
}

export class RedisServer implements Listener {
  machine: Machine;
  readonly port: number;
  readonly redis: MiniRedis;
  readonly #installation: Installation;
  readonly #network: Network;
  readonly #scripts = new Map<string, string>();
  readonly sessions = new Set<RedisSession>();
  #synced: Data = new Map();
  #starts = 1;
  /** Called with each entry that is added to a stream. */
  added: (key: string, fields: readonly string[]) => void = () => {};
  /** Counts the commands that have written. */
  writes = 0;

  constructor(network: Network, installation: Installation, port: number) {
    this.port = port;
    this.#network = network;
    this.#installation = installation;
    this.machine = new Machine(`redis:${port}`);
    this.redis = new MiniRedis({
      nowMs: () => time.wallMs,
      publish: (channel, message) => this.#publish(channel, message),
      added: (key, fields) => this.added(key, fields),
    });
    network.listen(port, this);
  }

  get isCluster(): boolean {
    return this.#installation.servers.length > 1;
  }

  accept(link: Link): Session {
    return new RedisSession(this, link);
  }

  /** Syncs the file to the disk. */
  sync(): void {
    this.#synced = structuredClone(this.redis.data);
  }

  /** The server dies. @returns whether it has lost anything */
  die({ losing }: { losing: boolean }): boolean {
    this.machine.isAlive = false;
    this.#network.breakAll(this.machine);
    this.sessions.clear();
    if (!losing || isDeepStrictEqual(this.redis.data, this.#synced)) return false;
    this.redis.data = structuredClone(this.#synced);
    this.writes++;
    return true;
  }

  start(): void {
    const { name, skewMs } = this.machine;
    this.machine = new Machine(name);
    this.machine.skewMs = skewMs;
    this.#starts++;
    this.#scripts.clear();
  }

  /** The segments that a rebuild loads, and whether each has all of its buyers. */
  get segmentsLoading(): { readonly hasAll: boolean }[] {
    return hashesOf(this.redis.data)
      .filter(([, fields]) => fields.get('state') === 'loaded')
      .map(([, fields]) => ({ hasAll: fields.get('loadedUpTo') === AFTER_ALL_IDS }));
  }

  get isFrozen(): boolean {
    return hashesOf(this.redis.data).some(([, fields]) => fields.get('state') === 'frozen');
  }

  /** Whether a segment has other entries than in this copy. */
  hasTakenSince(copy: Data): boolean {
    const seqs = (data: Data) =>
      hashesOf(data).flatMap(([key, fields]) => (fields.has('seq') ? [[key, fields.get('seq')]] : []));
    return !isDeepStrictEqual(seqs(this.redis.data).sort(), seqs(copy).sort());
  }

  /** What it holds now. */
  copy(): Data {
    return structuredClone(this.redis.data);
  }

  /** Comes back with what it held once. */
  restore(copy: Data): void {
    this.redis.data = structuredClone(copy);
    this.writes++;
  }

  empty(): void {
    this.redis.data = new Map();
    this.writes++;
  }

  /**
   * When a message reaches a subscriber, in milliseconds: never, at once, late, or twice, so that messages overtake
   * each other.
   */
  fates(): readonly number[] {
    const { lostMessages } = this.#network.faults;
    if (lostMessages === 0) return [0];
    const fate = () => (time.random.chance(lostMessages) ? [] : [this.#delay(lostMessages)]);
    return time.random.chance(lostMessages) ? [...fate(), ...fate()] : fate();
  }

  #delay(chance: number): number {
    return time.random.chance(chance) ? time.random.unit() * LATE_MESSAGE_MS : 0;
  }

  /** @throws ReplyFault */
  execute(words: readonly string[]): Reply {
    const [name, ...args] = words as [string, ...string[]];
    switch (name.toUpperCase()) {
      case 'EVAL':
        this.#scripts.set(sha1(args[0]!), args[0]!);
        return this.#eval(args[0]!, args.slice(1));
      case 'EVALSHA': {
        const source = this.#scripts.get(args[0]!);
        if (source === undefined) throw new ReplyFault('NOSCRIPT No matching script. Please use EVAL.');
        return this.#eval(source, args.slice(1));
      }
      case 'SCRIPT':
        this.#scripts.set(sha1(args[1]!), args[1]!);
        return sha1(args[1]!);
      case 'INFO':
        return `redis_version:7.0.15\r\nrun_id:${this.port}x${this.#starts}\r\nloading:0\r\ncluster_enabled:${this.isCluster ? 1 : 0}\r\n`;
      case 'CLIENT':
      case 'READONLY':
      case 'QUIT':
        return { ok: 'OK' };
      case 'HELLO':
        // Clients fall back to the older protocol, which is all that this server speaks.
        throw new ReplyFault("ERR unknown command 'HELLO'");
      case 'CLUSTER':
        return this.#cluster(args[0]!);
      default:
        if (args[0] !== undefined && name.toUpperCase() !== 'PUBLISH') this.#refuseForeign([args[0]]);
        this.writes++;
        return this.redis.call(name, args);
    }
  }

  #eval(source: string, [count, ...words]: readonly string[]): Reply {
    const keys = words.slice(0, Number(count));
    this.#refuseForeign(keys);
    this.writes++;
    return lua.run(this.redis, source, keys, words.slice(Number(count)));
  }

  #cluster(what: string): Reply {
    const { servers } = this.#installation;
    const each = SLOTS / servers.length;
    if (what.toUpperCase() === 'INFO') return 'cluster_state:ok\r\n';
    return servers.map(({ port }, i) => {
      const [first, next] = [Math.ceil(i * each), Math.ceil((i + 1) * each)];
      return [first, next - 1, ['127.0.0.1', port, `node${port}`]];
    });
  }

  #refuseForeign(keys: readonly string[]): void {
    if (!this.isCluster) return;
    const { servers } = this.#installation;
    for (const key of keys) {
      const owner = servers[Math.floor((slotOf(key) * servers.length) / SLOTS)]!;
      if (owner !== this) throw new ReplyFault(`MOVED ${slotOf(key)} 127.0.0.1:${owner.port}`);
    }
  }

  #publish(channel: string, message: string): number {
    for (const server of this.#installation.servers) {
      const tell = () => {
        for (const session of server.sessions) session.tell(channel, message);
      };
      if (server === this) tell();
      else time.after(time.random.unit() * GOSSIP_MS, tell, server.machine);
    }
    return this.sessions.size;
  }
}

function hashesOf(data: Data): [key: string, fields: ReadonlyMap<string, string>][] {
  return [...data].flatMap(([key, value]) => (value.type === 'hash' ? [[key, value.fields]] : []));
}

class RedisSession implements Session {
  readonly #server: RedisServer;
  readonly #link: Link;
  readonly #reader = new CommandReader();
  readonly #channels = new Set<string>();
  #queue: string[][] = [];

  constructor(server: RedisServer, link: Link) {
    this.#server = server;
    this.#link = link;
    server.sessions.add(this);
  }

  receive(data: Buffer): void {
    const isIdle = this.#queue.length === 0;
    this.#queue.push(...this.#reader.read(data));
    if (isIdle) this.#work();
  }

  /** Executes commands, with pauses in which other sessions run commands, or the server dies. */
  #work(): void {
    let replies = '';
    while (this.#queue.length > 0) {
      replies += this.#answer(this.#queue.shift()!);
      if (this.#queue.length > 0 && time.random.chance(PAUSE)) {
        time.after(time.random.unit() * PAUSE_MS, () => this.#work(), this.#server.machine);
        break;
      }
    }
    if (replies !== '') this.#link.reply(Buffer.from(replies));
  }

  closed(): void {
    this.#server.sessions.delete(this);
  }

  tell(channel: string, message: string): void {
    if (!this.#channels.has(channel)) return;
    const data = Buffer.from(encode(['message', channel, message]));
    for (const afterMs of this.#server.fates()) {
      if (afterMs === 0) this.#link.reply(data);
      else time.after(afterMs, () => this.#link.reply(data), this.#server.machine);
    }
  }

  #answer(words: readonly string[]): string {
    if (words[0]!.toUpperCase() === 'SUBSCRIBE') return this.#subscribe(words.slice(1));
    if (words[0]!.toUpperCase() === 'PING' && this.#channels.size > 0) return encode(['pong', '']);
    try {
      return encode(this.#server.execute(words));
    } catch (error) {
      if (!(error instanceof ReplyFault)) throw error;
      return `-${error.message.replace(/\s+/g, ' ')}\r\n`;
    }
  }

  #subscribe(channels: readonly string[]): string {
    return channels
      .map((channel) => {
        this.#channels.add(channel);
        return encode(['subscribe', channel, this.#channels.size]);
      })
      .join('');
  }
}
