import type { Redis } from 'ioredis';
import { monotonicMs } from '../../../lib/monotonic.ts';
import type { TakeServer } from '../../contract.ts';
import { ServerClock } from './server-clock.ts';

const RUN_ID = /^run_id:(\w+)/m;
/** How often the clock of a server is read. If it was set back, that is not noticed in the meantime. */
const CLOCK_EVERY_MS = 10_000;
const MS_PER_S = 1_000;
const US_PER_MS = 1_000;

/** A server at the other end of one connection, from its start to its end. */
export class ServerLife implements TakeServer {
  readonly clock = new ServerClock();
  readonly #redis: Redis;
  /** Redis draws it at its start. Missing: not known yet, or the server does not tell it. */
  #runId: string | undefined;
  #clockAskedMs = Number.NEGATIVE_INFINITY;

  /** @param redis the connection, which is ready */
  constructor(redis: Redis) {
    this.#redis = redis;
  }

  isSame(other: TakeServer): boolean {
    if (this === other) return true;
    return other instanceof ServerLife && this.#runId !== undefined && this.#runId === other.#runId;
  }

  /** Asks which server it is, and for its time. What the server does not tell stays unknown. */
  async meet(): Promise<void> {
    const info = this.#redis.info('server').catch(() => '');
    await this.#readClock();
    this.#runId = RUN_ID.exec(await info)?.[1];
  }

  /** Call it before each command: it reads the clock again if the last reading is old. */
  keepTime(): void {
    if (monotonicMs() - this.#clockAskedMs >= CLOCK_EVERY_MS) void this.#readClock();
  }

  async #readClock(): Promise<void> {
    const askedMs = monotonicMs();
    this.#clockAskedMs = askedMs;
    try {
      const [seconds, microseconds] = (await this.#redis.time()).map(Number) as [number, number];
      this.clock.read(seconds * MS_PER_S + microseconds / US_PER_MS, askedMs, monotonicMs());
    } catch {
      // The connection is broken, or its user may not ask.
    }
  }
}
