import type { Displaced, EventPart, EventStream } from '../contract.ts';
import type { Keys } from './protocol/keys.ts';
import type { Scripts } from './protocol/scripts.ts';

/** The stream of order events, `<prefix>events`. */
export class RedisEvents implements EventStream {
  readonly #scripts: Scripts;
  readonly #keys: Keys;

  constructor(scripts: Scripts, keys: Keys) {
    this.#scripts = scripts;
    this.#keys = keys;
  }

  async append(parts: readonly EventPart[], maxEvents: number): Promise<Displaced> {
    const reply = await this.#scripts.appendEvents(this.#keys.events, parts, maxEvents);
    const [events, reachMs, refused, ...names] = reply;
    const missed = names.flatMap((group, i) =>
      i % 2 === 0 ? [{ group: String(group), events: Number(names[i + 1]) }] : [],
    );
    return { events, reachMs, missed, ...(refused !== '' && { unseen: refused }) };
  }
}
