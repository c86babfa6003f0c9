/**
 * The connection for takes. It sends a command at most once, limits the wait for the reply, and sorts failures into
 * "nothing was done" and "the outcome is unknown".
 */
import { type Redis, ReplyError } from 'ioredis';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { isTimeout, withTimeout } from '../../../lib/with-timeout.ts';
import { corking, DEMOTED } from '../../../redis/clients.ts';
import { isRefusal } from '../../../redis/refusals.ts';
import { replyReason } from '../../../redis/reply-reason.ts';
import type { TakeOrder, TakeReply } from '../../contract.ts';
import { BackendCorrupt, NotExecuted, OutcomeUnknown } from '../../errors.ts';
import type { RawTakeReply } from '../protocol/scripts.ts';
import { ServerLife } from './server-life.ts';
import { decodeTake, toldTime } from './take-reply.ts';

/** Refusals of the take script itself, before its first write. */
const REFUSED_BY_SCRIPT = /^(FENCED|BADARG)\b/;

/** How often the clock of a server is read. Until the next reading, nothing shows that the clock was set back. */
const CLOCK_EVERY_MS = 10_000;

export class TakeConnection {
  readonly #redis: Redis;
  readonly #cork: () => void;
  readonly #timeoutMs: number;
  /** Callers of `whenReady`: as many as lanes, so they share one listener. */
  readonly #waiting = new Set<() => void>();
  #server: ServerLife;
  /** The server of this connection has told its time. */
  #hasMet = false;

  /** @param timeoutMs if a reply takes longer, the connection is dropped and the outcome is unknown */
  constructor(redis: Redis, timeoutMs: number) {
    this.#redis = redis;
    this.#cork = corking(redis);
    this.#timeoutMs = timeoutMs;
    this.#server = new ServerLife(redis);
    if (redis.status === 'ready') void this.#meet();
    redis.on('ready', () => void this.#meet());
    redis.on('close', () => {
      this.#hasMet = false;
    });
    const timer = setInterval(() => this.#readClock(), CLOCK_EVERY_MS).unref();
    redis.on('end', () => clearInterval(timer));
  }

  get ready(): boolean {
    // A connection that is being closed keeps this status for a moment.
    return this.#hasMet && this.#redis.status === 'ready' && this.#redis.stream.writable;
  }

  /** The server of the newest connection, also after that has broken. */
  get server(): ServerLife {
    return this.#server;
  }

  async whenReady(timeoutMs: number): Promise<void> {
    if (this.ready) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.#waiting.add(done);
    });
  }

  /** Sends a message in the same write as the takes of this turn of the event loop. It may be lost. */
  publish(channel: string, message: string): void {
    if (!this.ready) return;
    this.#cork();
    this.#redis.publish(channel, message).catch(() => {});
  }

  /**
   * @param send sends the command, and is called at once
   * @throws NotExecuted, OutcomeUnknown or BackendCorrupt
   */
  async attempt<T>(send: () => Promise<T>): Promise<T> {
    if (!this.ready) throw new NotExecuted(`Redis can't be reached (connection is ${this.#redis.status})`);
    this.#cork();
    try {
      return await withTimeout(this.#timeoutMs, send());
    } catch (error) {
      if (isTimeout(error)) {
        this.#redis.disconnect(true);
        throw new OutcomeUnknown(`no reply from Redis within ${this.#timeoutMs} ms`, error);
      }
      throw this.failure(error);
    }
  }

  /**
   * @returns the earliest deadline of these orders by the server's clock, in milliseconds since 1970; 0: they have none, or the server
   * does not tell its time
   */
  madeBefore(orders: readonly TakeOrder[]): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { deadline } of orders) if (deadline !== undefined && deadline < first) first = deadline;
    return first === Number.POSITIVE_INFINITY ? 0 : (this.#server.clock.at(first) ?? 0);
  }

  /** @param orders how many were sent @throws BackendCorrupt */
  decode(reply: RawTakeReply, orders: number): TakeReply {
    const toldMs = toldTime(reply);
    if (toldMs !== undefined) this.#server.clock.told(toldMs, monotonicMs());
    return decodeTake(reply, orders);
  }

  /** No take is sent before the server has told its time, because a take names the time until which it may be made. */
  async #meet(): Promise<void> {
    const server = new ServerLife(this.#redis);
    this.#server = server;
    this.#hasMet = false;
    try {
      await withTimeout(this.#timeoutMs, server.meet());
    } catch {
      if (this.#server === server && this.#redis.status === 'ready') this.#redis.disconnect(true);
      return;
    }
    if (this.#server !== server) return;
    this.#hasMet = true;
    if (this.ready) for (const done of this.#waiting) done();
  }

  /** If it fails, the last reading stays in use. */
  #readClock(): void {
    if (this.ready) this.#server.readClock().catch(() => {});
  }

  /** What an error of a take means. If the server is no longer a primary, the connection to it is dropped. */
  failure(error: unknown): NotExecuted | OutcomeUnknown | BackendCorrupt {
    const message = replyReason(error);
    if (DEMOTED.test(message)) this.#redis.disconnect(true);
    if (isRefusal(message) || REFUSED_BY_SCRIPT.test(message))
      return new NotExecuted(`Redis refused the take: ${message}`, error);
    if (error instanceof ReplyError) return new BackendCorrupt(`the take script failed: ${message}`);
    return new OutcomeUnknown(`the reply to a take was lost: ${message}`, error);
  }
}
