/**
 * Wakes waiters by messages. Messages can be lost, which costs only time: waiters also try again after a while, and
 * all of them try again when the connection is back.
 */
import type { Redis } from 'ioredis';
import { HEARTBEAT_MS, LINGER_MS } from './lock-limits.ts';

interface Channel {
  heard: () => void;
  subscribed: boolean;
  linger: NodeJS.Timeout | undefined;
}

const ignore = () => {};

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

  /** Whether the subscription to the channel is active. */
  hears(name: string): boolean {
    return this.#channels.get(name)?.subscribed ?? false;
  }

  /**
   * Calls `heard` at each message, and once when the subscription becomes active: earlier messages were missed. A
   * channel has one listener.
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
      // Fails only after `close`: until then a subscription waits for the connection.
      ignore,
    );
  }

  leave(name: string): void {
    const channel = this.#channels.get(name);
    if (!channel) return;
    channel.heard = ignore;
    channel.linger = setTimeout(() => {
      this.#channels.delete(name);
      this.#redis.unsubscribe(name).catch(ignore);
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
