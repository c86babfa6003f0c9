/**
 * Time that only the test moves, for the nodes and for the expiries in Redis alike.
 *
 * When it passes, timers of the nodes fire in order, and keys that have expired by this time are gone. Redis is asked which
 * expiries its keys have; nothing is read off the strategy's own idea of them. Real time goes on underneath, and expires
 * nothing: at the first move after an expiry was set, the key's real expiry is put off, far beyond the test.
 */
import type { Redis } from 'ioredis';
import type { Clock } from '../../catalogue/parts/contract.ts';

const START = Date.UTC(2026, 10, 27, 20);

/** Real expiries are put off by this much. No expiry of a strategy is half as long, so one that is shorter was set anew. */
const PUT_OFF_MS = 1_000 * 3_600_000;

/** A hash beside the keys has the time at which each of them expires. */
const MOVE_EXPIRIES = `
local prefix, now, later, put_off = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local expiries = 'expiries of ' .. prefix
for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then
    if left < put_off / 2 then redis.call('HSET', expiries, key, now + left) end
    local expired = tonumber(redis.call('HGET', expiries, key)) <= later
    redis.call('PEXPIRE', key, expired and 0 or put_off)
  end
end
redis.call('PEXPIRE', expiries, put_off)
`;

interface Timer {
  dueAt: number;
  fire(): Promise<void> | void;
}

export class TestTime {
  now = START;
  readonly #servers: readonly Redis[];
  readonly #keyPrefix: string;
  readonly #clocks: NodeClock[] = [];

  constructor(servers: readonly Redis[], keyPrefix: string) {
    this.#servers = servers;
    this.#keyPrefix = keyPrefix;
  }

  /** The clock of one node, which does not move while the node is frozen. */
  clock(onSleep: () => () => void = () => () => {}): NodeClock {
    const clock = new NodeClock(this, onSleep);
    this.#clocks.push(clock);
    return clock;
  }

  async pass(ms: number): Promise<void> {
    const end = this.now + ms;
    for (let next = this.#next(); next && next.dueAt <= end; next = this.#next()) {
      await this.#moveTo(next.dueAt);
      await next.fire();
    }
    await this.#moveTo(end);
  }

  /** Passes as much time as it takes for the next timer to fire. */
  async passToNextTimer(): Promise<void> {
    const next = this.#next();
    if (!next) throw new Error('no node waits for time to pass');
    await this.pass(Math.max(0, next.dueAt - this.now));
  }

  /** Whoever sleeps is woken with this error. */
  end(error: Error): void {
    for (const clock of this.#clocks) clock.end(error);
  }

  #next(): Timer | undefined {
    const timers = this.#clocks.flatMap((clock) => (clock.frozen ? [] : [...clock.timers]));
    return timers.sort((a, b) => a.dueAt - b.dueAt)[0];
  }

  async #moveTo(time: number): Promise<void> {
    if (time <= this.now) return;
    const before = this.now;
    this.now = time;
    // A server that the test has killed has no expiries.
    const alive = this.#servers.filter((server) => server.status === 'ready');
    await Promise.all(
      alive.map((server) =>
        server.eval(MOVE_EXPIRIES, 0, this.#keyPrefix, before, time, PUT_OFF_MS).catch(() => {}),
      ),
    );
  }
}

export class NodeClock implements Clock {
  frozen = false;
  readonly timers = new Set<Timer>();
  readonly #time: TestTime;
  readonly #onSleep: () => () => void;
  readonly #sleepers = new Set<(error: Error) => void>();

  /** @param onSleep called when a call begins to sleep; the function that it returns is called when the call wakes */
  constructor(time: TestTime, onSleep: () => () => void) {
    this.#time = time;
    this.#onSleep = onSleep;
  }

  now(): number {
    return this.#time.now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const awake = this.#onSleep();
    return new Promise<void>((resolve, reject) => {
      const wake = () => {
        this.timers.delete(timer);
        this.#sleepers.delete(reject);
        signal?.removeEventListener('abort', wake);
        awake();
        resolve();
      };
      const timer = { dueAt: this.now() + ms, fire: wake };
      this.timers.add(timer);
      this.#sleepers.add(reject);
      signal?.addEventListener('abort', wake, { once: true });
      if (signal?.aborted) wake();
    });
  }

  every(ms: number, task: () => Promise<void>): () => void {
    const timer = {
      dueAt: this.now() + ms,
      fire: () => {
        timer.dueAt += ms;
        return task();
      },
    };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  end(error: Error): void {
    this.timers.clear();
    for (const reject of this.#sleepers) reject(error);
  }
}
