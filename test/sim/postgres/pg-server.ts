/**
 * A simulated Postgres. The protocol and the sessions are simulated; PGlite executes the SQL, in this process and synchronously.
 * PGlite has one session, so a transaction has it alone from its first statement to its end, and statements of others wait:
 * transactions run one after another, in an order that the seed decides. Session locks (`pg_advisory_lock`) are kept here.
 */
import type { PGlite } from '@electric-sql/pglite';
import type { Link, Listener, Network, Session } from '../machines/network.ts';
import { Machine, time } from '../machines/virtual-time.ts';

const STARTUP_HEADER = 8;
const CANCEL_OR_SSL = 80877102;
/** The most time that one request takes, in milliseconds. */
const WORK_MS = 1.5;

const WRITES = /INSERT|UPDATE|DELETE|COMMIT|ROLLBACK|stockade_/i;
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
const WELCOME = Buffer.concat([Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]), READY]);

export class PostgresServer implements Listener {
  machine = new Machine('postgres');
  readonly #db: PGlite;
  readonly #network: Network;
  /** The session that is in a transaction. */
  #holder: PgSession | undefined;
  #waiting: PgSession[] = [];
  readonly sessions = new Set<PgSession>();
  readonly locks = new Map<string, PgSession>();
  /** Counts the requests that may have changed something. */
  writes = 0;

  constructor(db: PGlite, network: Network, port: number) {
    this.#db = db;
    this.#network = network;
    network.listen(port, this);
  }

  /** Whether a transaction is open: what is read now may be rolled back. */
  get isInTransaction(): boolean {
    return this.#holder !== undefined;
  }

  accept(link: Link): Session {
    const session = new PgSession(this, link);
    this.sessions.add(session);
    return session;
  }

  /** The server dies: what was not committed is rolled back. */
  die(): void {
    this.machine.isAlive = false;
    this.#network.breakAll(this.machine);
    this.#holder = undefined;
    this.#waiting = [];
    this.sessions.clear();
    this.locks.clear();
    this.#rollback();
  }

  /** Breaks the connections that hold session locks. */
  breakLocks(): void {
    for (const session of new Set(this.locks.values())) session.cut();
  }

  start(): void {
    const { skewMs } = this.machine;
    this.machine = new Machine('postgres');
    this.machine.skewMs = skewMs;
  }

  /** A complete request of this session is there. It runs as soon as no other session's transaction is open. */
  enqueue(session: PgSession): void {
    if (this.#waiting.includes(session)) return;
    this.#waiting.push(session);
    this.#wake();
  }

  #wake(): void {
    time.after(time.random.unit() * WORK_MS, () => this.#executeNext(), this.machine);
  }

  #executeNext(): void {
    const candidates = this.#holder
      ? this.#waiting.filter((session) => session === this.#holder)
      : this.#waiting;
    if (candidates.length === 0) return;
    const session = time.random.pick(candidates);
    this.#waiting = this.#waiting.filter((one) => one !== session);
    const isInTransaction = session.execute();
    if (isInTransaction === undefined) return;
    this.#holder = isInTransaction ? session : undefined;
    if (session.hasRequest) this.#waiting.push(session);
    for (const _ of this.#waiting) this.#wake();
  }

  /** @returns the server's reply, and whether a transaction is open after it */
  run(request: Buffer): { reply: Buffer; isInTransaction: boolean } {
    if (WRITES.test(request.toString('latin1'))) this.writes++;
    time.timersOff = true;
    try {
      const reply = Buffer.from(this.#db.execProtocolRawSync(request));
      return { reply, isInTransaction: reply.length > 0 && reply.at(-1) !== 0x49 };
    } finally {
      time.timersOff = false;
    }
  }

  ended(session: PgSession): void {
    this.sessions.delete(session);
    this.#waiting = this.#waiting.filter((one) => one !== session);
    for (const [name, holder] of this.locks) if (holder === session) this.locks.delete(name);
    if (this.#holder !== session) return;
    this.#holder = undefined;
    this.#rollback();
    for (const _ of this.#waiting) this.#wake();
  }

  #rollback(): void {
    this.run(query('ROLLBACK'));
  }
}

/** The protocol's message of a statement without parameters. */
export function query(sql: string): Buffer {
  const text = Buffer.from(`${sql}\0`);
  const head = Buffer.alloc(5);
  head.write('Q');
  head.writeUInt32BE(text.length + 4, 1);
  return Buffer.concat([head, text]);
}

export class PgSession implements Session {
  readonly #server: PostgresServer;
  readonly #link: Link;
  #rest: Buffer = Buffer.alloc(0);
  #begun = false;
  #requests: Buffer[] = [];
  #parts: Buffer[] = [];

  constructor(server: PostgresServer, link: Link) {
    this.#server = server;
    this.#link = link;
  }

  get client(): Machine {
    return this.#link.client;
  }

  get hasRequest(): boolean {
    return this.#requests.length > 0;
  }

  receive(data: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, data]);
    if (!this.#begun && !this.#begin()) return;
    while (this.#rest.length >= 5) {
      const length = this.#rest.readUInt32BE(1) + 1;
      if (this.#rest.length < length) break;
      const message = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      this.#take(message);
    }
    if (this.hasRequest) this.#server.enqueue(this);
  }

  /** Messages up to a Sync are one request. */
  #take(message: Buffer): void {
    const kind = String.fromCharCode(message[0]!);
    if (kind === 'X') {
      this.closed();
      return;
    }
    this.#parts.push(message);
    if (kind === 'S' || kind === 'Q') this.#requests.push(Buffer.concat(this.#parts.splice(0)));
  }

  #begin(): boolean {
    if (this.#rest.length < STARTUP_HEADER) return false;
    const length = this.#rest.readUInt32BE(0);
    if (this.#rest.length < length || this.#rest.readUInt32BE(4) === CANCEL_OR_SSL) return false;
    this.#rest = this.#rest.subarray(length);
    this.#begun = true;
    this.#link.reply(WELCOME);
    return true;
  }

  /** @returns whether a transaction is open; `undefined` if nothing was there to execute */
  execute(): boolean | undefined {
    const request = this.#requests.shift();
    if (!request) return undefined;
    const { reply, isInTransaction } = this.#server.run(this.#locked(request));
    this.#link.reply(reply);
    return isInTransaction;
  }

  cut(): void {
    this.#link.break('read ECONNRESET');
  }

  closed(): void {
    this.#requests = [];
    this.#server.ended(this);
  }

  /** Replaces the lock function by this server's answer: PGlite, with its one session, would grant any lock. */
  #locked(request: Buffer): Buffer {
    const text = request.toString('latin1');
    const asked = /pg_(try_advisory_lock|advisory_unlock)\(/.exec(text);
    if (!asked) return request;
    const { locks } = this.#server;
    if (asked[1] === 'advisory_unlock') {
      const name = parameterOf(request);
      const isHeld = locks.get(name) === this;
      if (isHeld) locks.delete(name);
      return query(`SELECT ${isHeld} AS pg_advisory_unlock`);
    }
    // An array: {"first","second"}
    const names = [...parameterOf(request).matchAll(/"([^"]+)"/g)].map(([, name]) => name!);
    for (const name of names) if (!locks.has(name)) locks.set(name, this);
    const held = names.filter((name) => locks.get(name) === this);
    return query(`SELECT id FROM unnest(ARRAY[${held.map((name) => `'${name}'`)}]::text[]) AS id`);
  }
}

/** The first parameter of the Bind message in a request, as text. */
function parameterOf(request: Buffer): string {
  for (let at = 0; at < request.length; at += request.readUInt32BE(at + 1) + 1) {
    if (String.fromCharCode(request[at]!) !== 'B') continue;
    let value = at + 5;
    value = request.indexOf(0, value) + 1;
    value = request.indexOf(0, value) + 1;
    value += 2 + 2 * request.readUInt16BE(value) + 2;
    const length = request.readInt32BE(value);
    return request.toString('utf8', value + 4, value + 4 + length);
  }
  throw new Error('a lock was requested without a name');
}
