/**
 * The list of a shop's processes. Each has a row in Postgres with its version, digests of the settings that must be
 * the same everywhere (node/stores/shared-settings.ts), and how often it has checked that its stock belongs to this
 * database.
 *
 *   started ──report──> listed ──report, every two seconds──> listed ──ends──> removed
 *                          └──dies──> not counted after SILENT_S, removed by another process after FORGET_S
 *
 * The stock does not depend on these rows: a lost row is written again, and the row of a dead process only delays the start
 * of other processes (`ownership.ts`).
 */
import { type Database, rows } from '../postgres/database.ts';

/** A process that was silent for this long has ended, or uses another database. */
const SILENT_S = 10;
const FORGET_S = 60;

export interface ListedProcess {
  readonly process: string;
  readonly version: string;
  /** Digest by the setting's environment variable. */
  readonly settings: Readonly<Record<string, string>>;
}

export class ProcessList {
  readonly #db: Database;
  readonly #self: ListedProcess;

  constructor(db: Database, self: ListedProcess) {
    this.#db = db;
    this.#self = self;
  }

  /** Reports that this process runs and has checked its stock once more. @returns the other running processes */
  async report(): Promise<ListedProcess[]> {
    const { process, version, settings } = this.#self;
    const updated = await rows(
      this.#db,
      'UPDATE processes SET looks = looks + 1, seen_at = now() WHERE process = ? RETURNING process',
      [process],
    );
    if (updated.length === 0) {
      await this.#db.raw(
        `INSERT INTO processes (process, version, settings, looks, seen_at) VALUES (?, ?, ?, 1, now())`,
        [process, version, JSON.stringify(settings)],
      );
      await this.#db.raw(
        `DELETE FROM processes WHERE abs(extract(epoch FROM now() - seen_at)) > ${FORGET_S}`,
      );
    }
    return rows<ListedProcess>(
      this.#db,
      `SELECT process, version, settings FROM processes
       WHERE process <> ? AND abs(extract(epoch FROM now() - seen_at)) < ${SILENT_S} ORDER BY process`,
      [process],
    );
  }

  async remove(): Promise<void> {
    await this.#db.raw('DELETE FROM processes WHERE process = ?', [this.#self.process]);
  }
}

/** How often each running process has checked that its stock belongs to this database. */
export async function readChecks(db: Database): Promise<ReadonlyMap<string, number>> {
  const found = await rows<{ process: string; looks: string }>(
    db,
    `SELECT process, looks FROM processes WHERE abs(extract(epoch FROM now() - seen_at)) < ${SILENT_S}`,
  );
  return new Map(found.map(({ process, looks }) => [process, Number(looks)]));
}
