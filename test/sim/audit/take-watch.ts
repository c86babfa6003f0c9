/**
 * Checks for the auditor that no order is taken for a buyer when none of its purchases is under way: all of them have been answered,
 * or their deadline is over. A take that is made later, because it was held up in the network, would contradict what the buyer was told
 * meanwhile.
 */
import { RESERVED_PREFIXES } from '../../../src/engine/limits.ts';

const LOG_LINE = /^\d+ (\S+) \d+ (\S*)$/;

export class TakeWatch {
  readonly #fail: (what: string) => never;
  /** By buyer and key: purchases under way. */
  readonly #underWay = new Map<string, number>();
  /** A server of Redis was set back: takes may be made later than their purchases end, by as much. */
  isOff = false;

  constructor(fail: (what: string) => never) {
    this.#fail = fail;
  }

  /** A purchase begins. @returns must be called once, when it is answered or its deadline is over */
  begin({ buyerId, key }: { readonly buyerId: string; readonly key: string }): () => void {
    const name = `${buyerId} ${key}`;
    const add = (count: number) => this.#underWay.set(name, (this.#underWay.get(name) ?? 0) + count);
    add(1);
    let isOver = false;
    return () => {
      if (!isOver) add(-1);
      isOver = true;
    };
  }

  /** @param lines orders of a log entry, as the log holds them */
  taken(lines: string): void {
    if (this.isOff) return;
    for (const line of lines.split('\n')) {
      const [, buyer, key] = LOG_LINE.exec(line) ?? this.#fail(`an entry has the line ${line}`);
      if (RESERVED_PREFIXES.some((prefix) => key!.startsWith(prefix))) continue;
      if (this.#underWay.get(`${buyer} ${key}`) === 0)
        this.#fail(`P4: order ${line} was taken after its buyer had been answered`);
    }
  }
}
