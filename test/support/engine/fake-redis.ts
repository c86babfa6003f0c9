/** A Redis client that records which scripts it is asked to run, and replies what a test wants. */
import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';

export interface Ran {
  /** Of the script, or `eval`. */
  readonly name: string;
  readonly args: readonly unknown[];
}

export class FakeRedis extends EventEmitter {
  readonly ran: Ran[] = [];
  readonly published: [channel: string, message: string][] = [];
  /** How often its connection was dropped to be made again. */
  reconnections = 0;
  readonly status = 'ready';
  readonly stream = { writable: true, cork() {}, uncork() {} };
  readonly #reply: (ran: Ran) => unknown;

  /** @param reply may throw, which is the script's error */
  constructor(reply: (ran: Ran) => unknown) {
    super();
    this.#reply = reply;
  }

  /** As the parameter of what runs scripts. */
  get client(): Redis {
    return this as unknown as Redis;
  }

  defineCommand(name: string): void {
    Object.assign(this, {
      [name]: (...args: unknown[]) => this.#run({ name: name.replace('stockade:', ''), args }),
    });
  }

  eval(...args: unknown[]): Promise<unknown> {
    return this.#run({ name: 'eval', args });
  }

  disconnect(reconnect = false): void {
    if (reconnect) this.reconnections++;
  }

  async info(): Promise<string> {
    return '';
  }

  /** As of a user that may not ask. */
  async time(): Promise<[number, number]> {
    throw new Error("NOPERM this user has no permissions to run the 'time' command");
  }

  async publish(channel: string, message: string): Promise<number> {
    this.published.push([channel, message]);
    return 0;
  }

  async #run(ran: Ran): Promise<unknown> {
    this.ran.push(ran);
    return this.#reply(ran);
  }
}
