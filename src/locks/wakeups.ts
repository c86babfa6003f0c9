/**
 * Who waits for a lock is woken by a message. Messages get lost, and that must cost time only: whoever waits asks again
 * by himself after a while, and everybody asks when the connection is back.
 */
import type { Redis } from 'ioredis';
import { HEARTBEAT_MS, LINGER_MS } from './lock-limits.ts';

interface Channel {
  heard: () => void;
  subscribed: boolean;
  linger: NodeJS.Timeout | undefined;
}

const nobody = () => {};

export class Wakeups {
  readonly #redis: Redis;
  readonly #channels = new Map<string, Channel>();
  readonly #heartbeat: NodeJS.Timeout;

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on('message', (name: string) => this.#channels.get(name)?.heard());
    redis.on('ready', () => {
      for (const { heard } of this.#channels.values()) heard();
    });
    this.#heartbeat = setInterval(() => redis.ping().catch(() => {}), HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  /** Whether the channel is listened to already. */
  hears(name: string): boolean {
    return this.#channels.get(name)?.subscribed ?? false;
  }

  /**
   * Calls `heard` at each message, and first when messages are heard from here on: what was told before was told to
   * nobody. A channel has one listener.
   */
  join(name: string, heard: () => void): void {
    const known = this.#channels.get(name);
    if (known) {
      clearTimeout(known.linger);
      known.heard = heard;
      if (known.subscribed) heard();
      return;
    }
    const channel: Channel = { heard, subscribed: false, linger: undefined };
    this.#channels.set(name, channel);
    this.#redis.subscribe(name).then(
      () => {
        channel.subscribed = true;
        channel.heard();
      },
      // Only if it was closed: as long as it is open, a subscription waits for the connection.
      nobody,
    );
  }

  leave(name: string): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    channel.heard = nobody;
    channel.linger = setTimeout(() => {
      this.#channels.delete(name);
      this.#redis.unsubscribe(name).catch(nobody);
    }, LINGER_MS);
    channel.linger.unref();
  }

  close(): void {
    clearInterval(this.#heartbeat);
    for (const { linger } of this.#channels.values()) clearTimeout(linger);
    this.#channels.clear();
    this.#redis.disconnect();
  }
}
