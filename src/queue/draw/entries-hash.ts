/**
 * The hash of all entries of a draw: SHA-256 of these lines, each with a line feed at its end.
 *
 *   stockade-draw 1 tickets
 *   1 <digest>
 *   2 <digest>
 *   3 -
 *
 * The first line names form, version and sale, so that no two sales have the same hash. A `-` stands for a number that nobody
 * has, because its row is missing in Postgres. It is one hash and no chain of hashes, because `sort` and `sha256sum` can
 * repeat it, and SHA-256 already is a chain: the hash of the first lines can be published while more are added.
 */
import { createHash } from 'node:crypto';

const FORM = 'stockade-draw 1';
/** Lines that are hashed at once: a call for each line takes three times as long. */
const LINES_AT_ONCE = 256;

/** What is published of an entry; `null` if nobody has its number. */
export type Digest = string | null;

export class EntriesHash {
  readonly #hash = createHash('sha256');
  #waiting: string;
  #entries = 0;

  constructor(saleId: string) {
    this.#waiting = `${FORM} ${saleId}\n`;
  }

  /** How many entries were added. */
  get entries(): number {
    return this.#entries;
  }

  /** Adds the entry of the next number; the first has number 1. */
  add(digest: Digest): void {
    this.#entries++;
    this.#waiting += `${this.#entries} ${digest ?? '-'}\n`;
    if (this.#entries % LINES_AT_ONCE === 0) this.#absorb();
  }

  /** The hash of the entries so far, as 64 hexadecimal characters. More may be added afterwards. */
  value(): string {
    this.#absorb();
    return this.#hash.copy().digest('hex');
  }

  #absorb(): void {
    this.#hash.update(this.#waiting);
    this.#waiting = '';
  }
}
