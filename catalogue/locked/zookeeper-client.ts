/**
 * A ZooKeeper client with just what a lock needs: a session that outlives its connection, four operations, watches.
 *
 *   connecting ──accepted──> connected ──connection breaks──> connecting, at the next server, in the same session
 *   connecting ──the session has expired──> connecting, with a new session
 *   any ──disconnect──> gone; the servers end the session, and its nodes, when it has been silent for its timeout
 *
 * Its own, because of those on npm the one in JavaScript has had no release since 2024, and the one that is well kept
 * compiles ZooKeeper's C client when it is installed. Not for other use: no chroot, no ACLs, no TLS.
 */
import { connect, type Socket } from 'node:net';
import type { Clock } from '../parts/contract.ts';
import { JuteFrames, JuteReader, JuteWriter } from './jute.ts';

const OP = { create: 1, delete: 2, exists: 3, children: 8, ping: 11 } as const;
const XID = { watch: -1, ping: -2 } as const;
const EPHEMERAL_SEQUENTIAL = 3;
const PERSISTENT = 0;
const ALL_PERMISSIONS = 31;
const ANY_VERSION = -1;
const NO_NODE = -101;
const NODE_EXISTS = -110;

const SESSION_TIMEOUT_MS = 4_000;
const RECONNECT_PAUSE_MS = 20;
/** After this time without a connection a caller gets an error. */
const CONNECT_LIMIT_MS = 10_000;

/** It is unknown whether the request was executed. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

export class ZooKeeperError extends Error {
  override readonly name = 'ZooKeeperError';
  readonly code: number;

  constructor(operation: string, path: string, code: number) {
    super(`ZooKeeper refused to ${operation} ${path}: error ${code}`);
    this.code = code;
  }
}

interface Request {
  readonly operation: string;
  readonly path: string;
  answer(reply: JuteReader): void;
  fail(error: Error): void;
}

export class ZooKeeperClient {
  readonly #servers: readonly string[];
  /** The clock of the node: while it stands still, nothing is sent, and the session ends. */
  readonly #clock: Clock;
  readonly #stopPings: () => void;
  readonly #watches = new Map<string, Set<() => void>>();
  readonly #connectedListeners = new Set<() => void>();
  #socket: Socket | undefined;
  #connected = false;
  #gone = false;
  #attempts = 0;
  #session = { id: 0n, password: Buffer.alloc(16) };
  #lastZxid = 0n;
  #xid = 0;
  /** Requests are answered in the order in which they were sent. */
  #pending: Request[] = [];

  private constructor(servers: readonly string[], clock: Clock) {
    this.#servers = servers;
    this.#clock = clock;
    this.#stopPings = clock.every(SESSION_TIMEOUT_MS / 3, async () => this.#ping());
    this.#connect();
  }

  /** @throws Error if no server takes the session within CONNECT_LIMIT_MS */
  static async open(servers: readonly string[], clock: Clock): Promise<ZooKeeperClient> {
    const client = new ZooKeeperClient(servers, clock);
    try {
      await client.connected();
      return client;
    } catch (error) {
      client.disconnect();
      throw error;
    }
  }

  /** @throws Error after CONNECT_LIMIT_MS without a connection, or at once if there will be none */
  async connected(): Promise<void> {
    if (this.#connected) return;
    if (this.#gone) throw new ConnectionLost('the client was disconnected');
    await new Promise<void>((resolve, reject) => {
      const listener = () => {
        clearTimeout(timer);
        this.#connectedListeners.delete(listener);
        if (this.#gone) reject(new ConnectionLost('the client was disconnected'));
        else resolve();
      };
      const timer = setTimeout(() => {
        this.#connectedListeners.delete(listener);
        reject(
          new Error(`none of ${this.#servers.join(', ')} has taken a session in ${CONNECT_LIMIT_MS} ms`),
        );
      }, CONNECT_LIMIT_MS);
      this.#connectedListeners.add(listener);
    });
  }

  /** Does nothing if the node is there. */
  async ensure(path: string): Promise<void> {
    await this.#create(path, PERSISTENT).catch(unless(NODE_EXISTS));
  }

  /** @returns the path with the number that was appended. The node ends with the session */
  createEphemeralSequential(path: string): Promise<string> {
    return this.#create(path, EPHEMERAL_SEQUENTIAL);
  }

  /** Does nothing if the node is gone. */
  async remove(path: string): Promise<void> {
    const body = new JuteWriter().string(path).int(ANY_VERSION);
    await this.#ask('delete', path, body, () => {}).catch(unless(NO_NODE));
  }

  /** @param onChange called once, if the node is there: when it changes, or when that might have been missed */
  async exists(path: string, onChange: () => void): Promise<boolean> {
    const watches = this.#watches.get(path) ?? new Set();
    this.#watches.set(path, watches.add(onChange));
    const body = new JuteWriter().string(path).bool(true);
    return this.#ask('exists', path, body, () => true).catch((error) => {
      unless(NO_NODE)(error);
      watches.delete(onChange);
      return false;
    });
  }

  /** Names, without the path. */
  children(path: string): Promise<string[]> {
    return this.#ask('children', path, new JuteWriter().string(path).bool(false), (reply) => reply.strings());
  }

  /** Closes the connection and not the session, as if the process had ended. */
  disconnect(): void {
    this.#gone = true;
    this.#stopPings();
    this.#lose();
    for (const listener of [...this.#connectedListeners]) listener();
  }

  #create(path: string, flags: number): Promise<string> {
    const body = new JuteWriter().string(path).buffer(Buffer.alloc(0));
    body.int(1).int(ALL_PERMISSIONS).string('world').string('anyone').int(flags);
    return this.#ask('create', path, body, (reply) => reply.string());
  }

  #ask<T>(
    operation: keyof typeof OP,
    path: string,
    body: JuteWriter,
    read: (reply: JuteReader) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (!this.#connected)
        return reject(new ConnectionLost(`not connected: could not ${operation} ${path}`));
      this.#pending.push({ operation, path, answer: (reply) => resolve(read(reply)), fail: reject });
      this.#socket!.write(
        new JuteWriter()
          .int(++this.#xid)
          .int(OP[operation])
          .append(body)
          .frame(),
      );
    });
  }

  #ping(): void {
    if (this.#connected) this.#socket!.write(new JuteWriter().int(XID.ping).int(OP.ping).frame());
  }

  #connect(): void {
    const [host, port] = this.#servers[this.#attempts++ % this.#servers.length]!.split(':');
    const frames = new JuteFrames();
    const socket = connect(Number(port), host!, () => socket.write(this.#hello()));
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setTimeout(SESSION_TIMEOUT_MS, () => socket.destroy());
    socket.on('data', (chunk) => {
      for (const frame of frames.push(chunk)) {
        const reply = new JuteReader(frame);
        if (this.#connected) this.#receive(reply);
        else this.#welcome(reply);
      }
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.#gone || this.#socket !== socket) return;
      this.#lose();
      void this.#clock.sleep(RECONNECT_PAUSE_MS).then(() => this.#gone || this.#connect());
    });
  }

  #hello(): Buffer {
    const { id, password } = this.#session;
    const protocolVersion = 0;
    const readOnly = false;
    return new JuteWriter()
      .int(protocolVersion)
      .long(this.#lastZxid)
      .int(SESSION_TIMEOUT_MS)
      .long(id)
      .buffer(password)
      .bool(readOnly)
      .frame();
  }

  #receive(reply: JuteReader): void {
    const [xid, zxid, code] = [reply.int(), reply.long(), reply.int()];
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (xid === XID.ping) return;
    if (xid === XID.watch) {
      const [_type, _state, path] = [reply.int(), reply.int(), reply.string()];
      this.#changed(path);
      return;
    }
    const request = this.#pending.shift()!;
    if (code === 0) request.answer(reply);
    else request.fail(new ZooKeeperError(request.operation, request.path, code));
  }

  #welcome(reply: JuteReader): void {
    const [_version, timeoutMs, id, password] = [reply.int(), reply.int(), reply.long(), reply.buffer()];
    const expired = timeoutMs <= 0;
    this.#session = expired
      ? { id: 0n, password: Buffer.alloc(16) }
      : { id, password: Buffer.from(password) };
    if (expired) {
      this.#socket!.destroy();
      return;
    }
    this.#connected = true;
    for (const listener of [...this.#connectedListeners]) listener();
  }

  #changed(path: string): void {
    const watches = this.#watches.get(path) ?? [];
    this.#watches.delete(path);
    for (const onChange of watches) onChange();
  }

  /** The requests under way may have been executed, and watched nodes may have changed. */
  #lose(): void {
    this.#connected = false;
    this.#socket?.destroy();
    for (const { operation, path, fail } of this.#pending.splice(0)) {
      fail(new ConnectionLost(`the connection broke: whether it did ${operation} ${path} is not known`));
    }
    for (const path of [...this.#watches.keys()]) this.#changed(path);
  }
}

function unless(code: number) {
  return (error: unknown): void => {
    if (!(error instanceof ZooKeeperError && error.code === code)) throw error;
  };
}
