/**
 * Checks the file of a draw (draw-file.ts), line by line. It needs 37 bytes for each entry: the digests come in the drawn order, and
 * are hashed in the order of their numbers.
 *
 * A fault does not end the check, because what else is right shows what was changed: if only the commitment is wrong, it was
 * exchanged; if the ranks are wrong too, the seed was.
 */

import {
  type DrawHeader,
  type DrawnEntry,
  entryProblems,
  type Fields,
  headerProblems,
  VERSION,
} from './draw-file.ts';
import { draw, type NumbersByRank } from './drawn-order.ts';
import { EntriesHash } from './entries-hash.ts';
import { commitmentOf } from './seed.ts';

/** A longer line is a fault, so a reader may cut it there. */
export const MAX_LINE_CHARACTERS = 1_000;
const DIGEST_BYTES = 32;

/**
 * - `not_json`: a line is not a JSON object
 * - `header`: the first line is missing, or does not have the right members
 * - `version`: of another version of this program
 * - `commitment`: the seed does not belong to the commitment
 * - `published`: the commitment is not the one that was published
 * - `entry`: a line of an entry does not have the right members
 * - `sequence`: the ranks don't go up by one from line to line
 * - `repeated`: a number has several lines
 * - `missing`: a number has no line
 * - `rank`: a rank belongs to another number
 * - `entries_hash`: the hash is not that of the digests
 */
export type DrawFaultCode =
  | 'not_json'
  | 'header'
  | 'version'
  | 'commitment'
  | 'published'
  | 'entry'
  | 'sequence'
  | 'repeated'
  | 'missing'
  | 'rank'
  | 'entries_hash';

export interface DrawFault {
  readonly code: DrawFaultCode;
  /** The first fault of this kind: where, and with which values. */
  readonly message: string;
  /** Faults of this kind. */
  readonly count: number;
}

export interface DrawReport {
  readonly ok: boolean;
  /** `undefined` if the first line can't be read. Then nothing else was checked. */
  readonly header: DrawHeader | undefined;
  /** Numbers that nobody has. */
  readonly vacant: number;
  /** One for each kind, in the order in which they were found. */
  readonly faults: readonly DrawFault[];
}

export class DrawCheck {
  readonly #published: string | undefined;
  readonly #faults = new Map<DrawFaultCode, { message: string; count: number }>();
  #lines = 0;
  #entries: Entries | undefined;

  /** @param published the commitment that was published, if the caller knows it */
  constructor(published?: string) {
    this.#published = published;
  }

  /** The next line, without its line feed. Empty lines count as lines, and are skipped. */
  line(given: string): void {
    this.#lines++;
    // Editors of Windows put a byte order mark before the first line.
    const text = this.#lines === 1 ? given.replace(/^\ufeff/, '') : given;
    if (text.trim() === '' || (this.#entries === undefined && this.#faults.size > 0)) return;
    const fields = this.#parse(text);
    if (fields === undefined) return;
    if (this.#entries === undefined) this.#begin(fields);
    else this.#entry(this.#entries, fields);
  }

  end(): DrawReport {
    if (this.#entries === undefined && this.#faults.size === 0) this.#fault('header', 'the file is empty');
    if (this.#entries !== undefined) this.#finish(this.#entries);
    return {
      ok: this.#faults.size === 0,
      header: this.#entries?.header,
      vacant: this.#entries?.vacant ?? 0,
      faults: [...this.#faults].map(([code, found]) => ({ code, ...found })),
    };
  }

  #parse(text: string): Fields | undefined {
    if (text.length > MAX_LINE_CHARACTERS) {
      this.#fault('not_json', `line ${this.#lines} has more than ${MAX_LINE_CHARACTERS} characters`);
      return undefined;
    }
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === 'object' && value !== null) return value as Fields;
    } catch {
      // Reported below.
    }
    this.#fault(
      'not_json',
      `line ${this.#lines} is not a JSON object: ${this.#lines === 1 ? 'this is no file of a draw' : 'is the file cut off there?'}`,
    );
    return undefined;
  }

  #begin(fields: Fields): void {
    if (fields.version !== VERSION) {
      const found = JSON.stringify(fields.version) ?? 'missing';
      this.#fault('version', `line ${this.#lines}: version is ${found}, and this program knows ${VERSION}`);
      return;
    }
    const problems = headerProblems(fields);
    if (problems.length > 0) {
      this.#fault('header', `line ${this.#lines}: ${problems.join('; ')}`);
      return;
    }
    const header = fields as unknown as DrawHeader;
    this.#checkCommitment(header);
    this.#entries = new Entries(header);
  }

  #checkCommitment({ seed, commitment }: DrawHeader): void {
    const right = commitmentOf(Buffer.from(seed, 'hex'));
    if (right !== commitment)
      this.#fault(
        'commitment',
        `the seed does not belong to the commitment: its SHA-256 is ${right}, the commitment is ${commitment}`,
      );
    if (this.#published !== undefined && this.#published !== commitment)
      this.#fault(
        'published',
        `the commitment is ${commitment}, and ${this.#published} is the one that was published`,
      );
  }

  #entry(entries: Entries, fields: Fields): void {
    const problems = entryProblems(fields, entries.header.entries);
    if (problems.length > 0) {
      this.#fault('entry', `line ${this.#lines}: ${problems.join('; ')}`);
      return;
    }
    const entry = fields as unknown as DrawnEntry;
    const { rank, number } = entry;
    if (rank !== entries.nextRank)
      this.#fault('sequence', `line ${this.#lines} has rank ${rank}, and should have ${entries.nextRank}`);
    if (entries.has(number)) this.#fault('repeated', `line ${this.#lines} has number ${number} again`);
    const right = entries.numbers.numberAt(rank);
    if (number !== right)
      this.#fault('rank', `line ${this.#lines}: rank ${rank} belongs to number ${right}, not to ${number}`);
    entries.add(entry);
  }

  #finish(entries: Entries): void {
    const { entriesHash } = entries.header;
    const missing = entries.missing();
    if (missing === undefined) {
      const right = entries.hash();
      if (right !== entriesHash)
        this.#fault('entries_hash', `the digests have the hash ${right}, and the file says ${entriesHash}`);
    } else {
      const { first, count } = missing;
      this.#fault('missing', `number ${first} has no line`, count);
    }
  }

  #fault(code: DrawFaultCode, message: string, count = 1): void {
    const known = this.#faults.get(code);
    if (known === undefined) this.#faults.set(code, { message, count });
    else known.count += count;
  }
}

const UNSEEN = 0;
const VACANT = 1;
const TAKEN = 2;

/** What the lines of entries have said so far. */
class Entries {
  readonly header: DrawHeader;
  readonly numbers: NumbersByRank;
  nextRank = 1;
  readonly #digests: Buffer;
  readonly #states: Uint8Array;

  constructor(header: DrawHeader) {
    this.header = header;
    const { entries, entriesHash } = header;
    this.numbers = draw({ seed: Buffer.from(header.seed, 'hex'), entriesHash, entries });
    this.#digests = Buffer.alloc(entries * DIGEST_BYTES);
    this.#states = new Uint8Array(entries);
  }

  has(number: number): boolean {
    return this.#states[number - 1] !== UNSEEN;
  }

  /** Keeps the first digest of a number. */
  add({ rank, number, digest }: DrawnEntry): void {
    this.nextRank = rank + 1;
    if (this.has(number)) return;
    this.#states[number - 1] = digest === null ? VACANT : TAKEN;
    if (digest !== null) this.#digests.write(digest, (number - 1) * DIGEST_BYTES, 'hex');
  }

  get vacant(): number {
    return this.#states.reduce((sum, state) => (state === VACANT ? sum + 1 : sum), 0);
  }

  /** The numbers without a line; `undefined` if there is none. */
  missing(): { readonly first: number; readonly count: number } | undefined {
    const first = this.#states.indexOf(UNSEEN) + 1;
    if (first === 0) return undefined;
    return { first, count: this.#states.reduce((sum, state) => (state === UNSEEN ? sum + 1 : sum), 0) };
  }

  hash(): string {
    const hash = new EntriesHash(this.header.sale);
    for (const [i, state] of this.#states.entries())
      hash.add(
        state === VACANT ? null : this.#digests.toString('hex', i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES),
      );
    return hash.value();
  }
}
