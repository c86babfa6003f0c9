import type { EventPart, EventStream } from '../contract.ts';
import type { Keys } from './keys.ts';
import type { Scripts } from './scripts.ts';

/** The stream of order events, `<prefix>events`. */
export class RedisEvents implements EventStream {
  readonly #scripts: Scripts;
  readonly #keys: Keys;

  constructor(scripts: Scripts, keys: Keys) {
    this.#scripts = scripts;
    this.#keys = keys;
  }

  async append(parts: readonly EventPart[], maxEvents: number): Promise<void> {
    await this.#scripts.appendEvents(this.#keys.events, parts, maxEvents);
  }
}
