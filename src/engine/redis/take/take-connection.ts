/**
 * The connection for takes. It sends a command at most once, limits the wait for the reply, and sorts failures into
 * "nothing was done" and "the outcome is unknown".
 */
import { type Redis, ReplyError } from 'ioredis';
import { withTimeout } from '../../../lib/with-timeout.ts';
import { corking, DEMOTED } from '../../../redis/clients.ts';
import { replyReason } from '../../../redis/reply-reason.ts';
import type { TakeServer } from '../../contract.ts';
import { BackendCorrupt, NotExecuted, OutcomeUnknown, StockadeError } from '../../errors.ts';

/**
 * Errors of commands that did nothing: Redis refused the script before its first write, or ioredis could not send it.
 */
const REFUSED =
  /^(FENCED|OOM|LOADING|READONLY|MISCONF|NOREPLICAS|NOSCRIPT|BADARG|BUSY|CLUSTERDOWN|MASTERDOWN|NOAUTH|NOPERM|MOVED|ASK|TRYAGAIN|Stream isn't writeable)\b/;

const RUN_ID = /^run_id:(\w+)/m;

/** A server at the other end of one connection, from its start to its end. */
class ServerLife implements TakeServer {
  /** Redis draws it at its start. Missing: not known yet, or the server does not tell it. */
  runId: string | undefined;

  isSame(other: TakeServer): boolean {
    if (this === other) return true;
    return other instanceof ServerLife && this.runId !== undefined && this.runId === other.runId;
  }
}

export class TakeConnection {
  readonly #redis: Redis;
  readonly #cork: () => void;
  readonly #timeoutMs: number;
  /** Callers of `whenReady`: as many as lanes, so they share one listener. */
  readonly #waiting = new Set<() => void>();
  #server = new ServerLife();

  /** @param timeoutMs if a reply takes longer, the connection is dropped and the outcome is unknown */
  constructor(redis: Redis, timeoutMs: number) {
    this.#redis = redis;
    this.#cork = corking(redis);
    this.#timeoutMs = timeoutMs;
    if (redis.status === 'ready') this.#identify();
    redis.on('ready', () => {
      this.#identify();
      for (const done of this.#waiting) done();
    });
  }

  get ready(): boolean {
    // A connection that is being closed keeps this status for a moment.
    return this.#redis.status === 'ready' && this.#redis.stream.writable;
  }

  /** The server of the newest connection, also after that has broken. */
  get server(): TakeServer {
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
      if (error instanceof StockadeError && error.code === 'timed_out') {
        this.#redis.disconnect(true);
        throw new OutcomeUnknown(`no reply from Redis within ${this.#timeoutMs} ms`, error);
      }
      throw this.failure(error);
    }
  }

  /**
   * INFO is sent before the takes of this connection, and replies come in order. So the run id is known before the first reply to a
   * take. If the connection breaks earlier, it is never known.
   */
  #identify(): void {
    const life = new ServerLife();
    this.#server = life;
    this.#redis
      .info('server')
      .then((text) => {
        life.runId = RUN_ID.exec(text)?.[1];
      })
      .catch(() => {});
  }

  /** What an error of a take means. A server that is no primary any more is left. */
  failure(error: unknown): NotExecuted | OutcomeUnknown | BackendCorrupt {
    const message = replyReason(error);
    if (DEMOTED.test(message)) this.#redis.disconnect(true);
    if (REFUSED.test(message)) return new NotExecuted(`Redis refused the take: ${message}`, error);
    if (error instanceof ReplyError) return new BackendCorrupt(`the take script failed: ${message}`);
    return new OutcomeUnknown(`the reply to a take was lost: ${message}`, error);
  }
}
