import type { Redis } from 'ioredis';
import { connect, singleUseClient } from '../../redis/clients.ts';
import type { BackendEvents } from '../contract.ts';
import { NotExecuted } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import { listen } from '../redis/protocol/subscription.ts';

const RETRY_MS = 100;

/**
 * Subscribes to the messages of a cluster. Every server forwards the messages of all, so one connection is enough. If
 * its server falls silent or fails, the subscription moves to the next server. Messages sent meanwhile are lost.
 */
export class ClusterSubscription {
  readonly #urls: () => readonly string[];
  readonly #keys: Keys;
  readonly #events: BackendEvents;
  #end: (() => Promise<void>) | undefined;
  #retry: NodeJS.Timeout | undefined;
  #ended = false;
  #turn = 0;

  /** @param urls the known servers */
  constructor(urls: () => readonly string[], keys: Keys, events: BackendEvents) {
    this.#urls = urls;
    this.#keys = keys;
    this.#events = events;
  }

  /** @throws NotExecuted if no server can be reached now */
  async begin(): Promise<void> {
    const urls = this.#urls();
    let fault: unknown = new NotExecuted('no server of the cluster is known');
    for (let tried = 0; tried < urls.length; tried++) {
      try {
        return await this.#subscribe(urls[this.#turn++ % urls.length]!);
      } catch (error) {
        fault = error;
      }
    }
    throw fault;
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#retry);
    await this.#end?.();
  }

  async #subscribe(url: string): Promise<void> {
    const client = singleUseClient(url);
    try {
      await connect(client);
      const end = await listen(client, this.#keys, this.#events);
      if (this.#ended) return await end();
      if (this.#end) this.#events.resubscribed?.();
      this.#end = end;
    } catch (error) {
      client.disconnect();
      throw error;
    }
    this.#watch(client);
  }

  #watch(client: Redis): void {
    const again = () => {
      if (this.#ended) return;
      this.#retry = setTimeout(() => this.begin().catch(again), RETRY_MS);
      this.#retry.unref();
    };
    const move = () => {
      if (!this.#ended) void this.#end?.();
      again();
    };
    if (client.status === 'end') move();
    else client.once('end', move);
  }
}
