import type { Redis } from 'ioredis';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { replyReason } from '../../../redis/reply-reason.ts';
import type { TakeServer } from '../../contract.ts';
import { ServerClock } from './server-clock.ts';

const RUN_ID = /^run_id:(\w+)/m;
const NO_RIGHT = /^NOPERM\b/;
const MS_PER_S = 1_000;
const US_PER_MS = 1_000;

/** A server at the other end of one connection, from its start to its end. */
export class ServerLife implements TakeServer {
  readonly clock = new ServerClock();
  readonly #redis: Redis;
  /** Redis draws it at its start. Missing: not known yet, or the server does not tell it. */
  #runId: string | undefined;

  /** @param redis the connection, which is ready */
  constructor(redis: Redis) {
    this.#redis = redis;
  }

  isSame(other: TakeServer): boolean {
    if (this === other) return true;
    return other instanceof ServerLife && this.#runId !== undefined && this.#runId === other.#runId;
  }

  /**
   * Asks which server it is, and for its time. What the Redis user of the connection has no right to ask stays unknown.
   * @throws the server's error if it does not tell its time for another reason
   */
  async meet(): Promise<void> {
    const info = this.#redis.info('server').catch(() => '');
    await this.readClock();
    this.#runId = RUN_ID.exec(await info)?.[1];
  }

  /** @throws as `meet` */
  async readClock(): Promise<void> {
    const askedMs = monotonicMs();
    try {
      const [seconds, microseconds] = (await this.#redis.time()).map(Number) as [number, number];
      this.clock.read(seconds * MS_PER_S + microseconds / US_PER_MS, askedMs, monotonicMs());
    } catch (error) {
      if (!NO_RIGHT.test(replyReason(error))) throw error;
    }
  }
}
