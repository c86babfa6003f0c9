/**
 * The network: sockets like those of `net`, for clients that know nothing of the simulation, and connections between machines
 * that are slow, hang and break. As with TCP, bytes arrive in order or not at all. A broken connection may lose what is on its
 * way in either direction, so that a request is executed and its reply lost.
 */
import net from 'node:net';
import { Duplex } from 'node:stream';
import { type Machine, time, WORLD } from './virtual-time.ts';

function fault(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}

/** The server's end of a connection. */
export interface Session {
  /** Receives what the client has sent. */
  receive(data: Buffer): void;
  closed(): void;
}

export interface Listener {
  readonly machine: Machine;
  /** @param link for the server's answers */
  accept(link: Link): Session;
}

export interface NetworkFaults {
  /** The chance that a packet is slow, and the longest delay, in milliseconds. */
  slow: number;
  slowMs: number;
  /** The chance that a connection breaks at a packet. */
  cut: number;
  /** An additional chance, for connections to Postgres only. */
  cutPostgres: number;
  /**
   * The chance that a message from a Redis server to a subscriber is lost. It is delivered twice or late equally
   * often.
   */
  lostMessages: number;
  /** The chance that a new connection to Redis passes nothing at first, and for how long at most. */
  lateLinks: number;
  lateLinkMs: number;
}

const NO_FAULTS: NetworkFaults = {
  slow: 0,
  slowMs: 0,
  cut: 0,
  cutPostgres: 0,
  lostMessages: 0,
  lateLinks: 0,
  lateLinkMs: 0,
};

const FAST_MS = 0.6;
const LEAST_MS = 0.1;

export class Link {
  readonly client: Machine;
  readonly server: Machine;
  readonly number: number;
  isOpen = true;
  readonly #socket: SimSocket;
  readonly #network: Network;
  #session: Session | undefined;
  #toServerAt = 0;
  #toClientAt = 0;
  #dragMs = 0;

  constructor(network: Network, socket: SimSocket, client: Machine, listener: Listener) {
    this.#network = network;
    this.#socket = socket;
    this.client = client;
    this.server = listener.machine;
    this.number = network.nextNumber++;
    const { lateLinks, lateLinkMs } = network.faults;
    const isLate = lateLinks > 0 && this.server.name !== 'postgres' && time.random.chance(lateLinks);
    const late = isLate ? time.random.unit() * lateLinkMs : 0;
    this.#toClientAt = this.#toServerAt = time.now + late + this.#latency();
    time.at(
      this.#toServerAt,
      () => {
        if (this.isOpen) this.#session = listener.accept(this);
      },
      this.server,
    );
    this.#toClientAt = this.#toServerAt + this.#latency();
    time.at(this.#toClientAt, () => this.isOpen && socket.emit('connect'), client);
  }

  /** Sends bytes from the client. */
  send(data: Buffer): void {
    if (!this.isOpen) return;
    this.#toServerAt = Math.max(this.#toServerAt, time.now + this.#latency());
    const session = () => this.#session;
    this.#network.note('>', this, data);
    // It may arrive although the connection is broken by then, because it is in the server's buffer.
    const arrives = time.random.chance(0.5);
    time.at(
      this.#toServerAt,
      () => {
        if (this.isOpen || arrives) session()?.receive(data);
      },
      this.server,
    );
    this.#mayBreak();
  }

  /** Sends bytes from the server. */
  reply(data: Buffer): void {
    if (!this.isOpen) return;
    const dragged = this.#dragMs === 0 ? 0 : time.random.unit() * this.#dragMs;
    this.#toClientAt = Math.max(this.#toClientAt, time.now + dragged + this.#latency());
    time.at(
      this.#toClientAt,
      () => {
        if (!this.isOpen) return;
        this.#network.note('<', this, data);
        this.#socket.push(data);
      },
      this.client,
    );
    this.#mayBreak();
  }

  /** @param error what the client sees; missing: an orderly end */
  break(error?: string): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#network.links.delete(this);
    const session = this.#session;
    // Comes after all that was sent, which may be in the server's buffer.
    time.at(Math.max(this.#toServerAt, time.now + this.#latency()), () => session?.closed(), this.server);
    time.after(
      this.#latency(),
      () => this.#socket.broken(error === undefined ? undefined : fault(error, 'ECONNRESET')),
      this.client,
    );
  }

  /** Passes nothing until it breaks: the other end does not answer any more. */
  hang(ms: number): void {
    this.#toClientAt = Math.max(this.#toClientAt, time.now + ms);
    this.#toServerAt = Math.max(this.#toServerAt, time.now + ms);
  }

  /** From now on each answer of the server is late by up to this much; 0: as usual. */
  drag(ms: number): void {
    this.#dragMs = ms;
  }

  #mayBreak(): void {
    const { cut, cutPostgres } = this.#network.faults;
    const chance = this.server.name === 'postgres' ? cut + cutPostgres : cut;
    if (!time.random.chance(chance)) return;
    time.after(time.random.unit() * 2, () => this.break('read ECONNRESET'), WORLD);
  }

  #latency(): number {
    const { slow, slowMs } = this.#network.faults;
    if (time.random.chance(slow)) return time.random.unit() * slowMs;
    return LEAST_MS + time.random.unit() * FAST_MS;
  }
}

export class Network {
  readonly links = new Set<Link>();
  readonly faults: NetworkFaults = { ...NO_FAULTS };
  nextNumber = 0;
  readonly #listeners = new Map<number, Listener>();
  /** Called with each packet, for the trace. */
  note: (way: '<' | '>', link: Link, data: Buffer) => void = () => {};

  begin(): void {
    this.links.clear();
    this.#listeners.clear();
    this.nextNumber = 0;
    this.calm();
  }

  calm(): void {
    Object.assign(this.faults, NO_FAULTS);
    for (const link of this.links) link.drag(0);
  }

  listen(port: number, listener: Listener): void {
    this.#listeners.set(port, listener);
  }

  connect(socket: SimSocket, port: number): Link | undefined {
    const listener = this.#listeners.get(port);
    if (!listener?.machine.isAlive) {
      const refused = fault(`connect ECONNREFUSED :${port}`, 'ECONNREFUSED');
      time.after(LEAST_MS, () => socket.broken(refused));
      return undefined;
    }
    const link = new Link(this, socket, time.here, listener);
    this.links.add(link);
    return link;
  }

  /** All connections of a machine. */
  breakAll(machine: Machine): void {
    for (const link of [...this.links])
      if (link.client === machine || link.server === machine) link.break('read ECONNRESET');
  }
}

export const network = new Network();

/** The part of `net.Socket` that clients of Redis and Postgres use. */
export class SimSocket extends Duplex {
  #link: Link | undefined;
  #corked = 0;
  #parts: Buffer[] = [];
  connecting = false;

  constructor() {
    super({ allowHalfOpen: false });
  }

  connect(...args: unknown[]): this {
    const [first] = args;
    const port = typeof first === 'object' ? (first as { port: number }).port : first;
    this.connecting = true;
    this.once('connect', () => {
      this.connecting = false;
    });
    this.#link = network.connect(this, Number(port));
    return this;
  }

  /** Collects what one turn writes into one packet. */
  override _write(data: Buffer, _: string, done: () => void): void {
    this.#parts.push(data);
    if (this.#corked++ === 0)
      process.nextTick(() => {
        this.#corked = 0;
        this.#link?.send(Buffer.concat(this.#parts.splice(0)));
      });
    done();
  }

  override _read(): void {}

  override _final(done: () => void): void {
    process.nextTick(() => this.#link?.break());
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#link?.break();
    done(error);
  }

  broken(error: Error | undefined): void {
    if (this.destroyed) return;
    if (error) this.destroy(error);
    else this.push(null);
  }

  readonly #silence = { timer: undefined as NodeJS.Timeout | undefined };
  setTimeout(ms: number, told?: () => void): this {
    clearTimeout(this.#silence.timer);
    if (told) this.once('timeout', told);
    if (ms > 0) this.#silence.timer = setTimeout(() => this.emit('timeout'), ms);
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

/** Cannot be undone, like the virtual time. */
export function installNetwork(): void {
  Object.assign(net, {
    Socket: SimSocket,
    createConnection: (options: { port: number }) => new SimSocket().connect(options),
    connect: (options: { port: number }) => new SimSocket().connect(options),
  });
}
