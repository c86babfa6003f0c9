/** Processes `stockade sync` that share the sales of a shop. */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { opsTokenFile } from '../../src/config/ops-token.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import type { Database } from '../../src/postgres/database.ts';
import { BenchFailure } from '../support/failure.ts';
import { type NodeFigures, readFigures } from '../support/metrics-text.ts';
import { NodeProgram } from '../support/node-program.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const DATA_DIR = 'data';
const POLL_MS = 10;
const SHARED_LIMIT_MS = 600_000;
/** Additional time for the end of a program, on busy cores. */
const PROGRAM_END_MS = 60_000;

export class SyncProcess {
  readonly program: NodeProgram<{ readonly opsUrl: string }>;

  private constructor(program: SyncProcess['program']) {
    this.program = program;
  }

  /** @param flags of `stockade sync`, without their dashes @param teardown ends it */
  static async start(flags: Readonly<Record<string, string>>, teardown: Teardown): Promise<SyncProcess> {
    const all = { ...flags, 'ops-port': '0', 'data-dir': DATA_DIR, 'log-level': 'warn' };
    const words = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
    const program = await NodeProgram.start<{ opsUrl: string }>('sync', [MAIN, 'sync', '--json', ...words]);
    teardown.add(() => program[Symbol.asyncDispose](), PROGRAM_END_MS);
    return new SyncProcess(program);
  }

  async figures(): Promise<NodeFigures> {
    const { announcement } = this.program;
    const token = this.program.read(opsTokenFile({ dataDir: DATA_DIR })).trim();
    const answer = await fetch(`${announcement.opsUrl}/metrics`, {
      headers: { authorization: `Bearer ${token}` },
    });
    if (!answer.ok) throw new BenchFailure(`a sync answered ${answer.status}: ${await answer.text()}`);
    return readFigures(await answer.text());
  }
}

export async function startSyncs(
  count: number,
  flags: Readonly<Record<string, string>>,
  teardown: Teardown,
): Promise<SyncProcess[]> {
  const syncs: SyncProcess[] = [];
  for (let i = 0; i < count; i++) syncs.push(await SyncProcess.start(flags, teardown));
  return syncs;
}

/** Of all of them together. */
export function cpuSecondsOfSyncs(syncs: readonly SyncProcess[]): number {
  return syncs.reduce((sum, { program }) => sum + program.cpuSeconds(), 0);
}

/** Waits until every sale has its sync, and the syncs share the sales. @returns how many sales each sync has */
export async function salesOfEachSync(db: Database, sales: number, syncs: number): Promise<number[]> {
  const deadline = Date.now() + SHARED_LIMIT_MS;
  while (Date.now() < deadline) {
    const { rows } = await db.raw<{ rows: { sales: string }[] }>(
      `SELECT count(*) AS sales FROM pg_locks AS held
       JOIN sales ON hashtextextended('stockade:sale:' || sales.id, 0) = (held.classid::bigint << 32 | held.objid::bigint)
       WHERE held.locktype = 'advisory' AND held.granted
         AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       GROUP BY held.pid`,
    );
    const counts = rows.map((row) => Number(row.sales));
    const isShared = Math.max(...counts) <= Math.ceil(sales / syncs);
    if (isShared && counts.reduce((sum, n) => sum + n, 0) >= sales) return counts;
    await delay(POLL_MS);
  }
  throw new BenchFailure(`not within ${SHARED_LIMIT_MS} ms: ${syncs} syncs share ${sales} sales`);
}

/** Waits until so many orders are in Postgres. @throws BenchFailure if they are not in time */
export async function drained(db: Database, orders: number, syncs: readonly SyncProcess[]): Promise<void> {
  const deadline = Date.now() + SHARED_LIMIT_MS;
  let done = 0;
  while (Date.now() < deadline) {
    done = await committedOrders(db);
    if (done >= orders) return;
    await delay(POLL_MS);
  }
  const words = await Promise.all(syncs.map(({ program }) => program.lastWords()));
  throw new BenchFailure(
    `not within ${SHARED_LIMIT_MS} ms: ${orders} orders, but ${done}\n${words.join('\n')}`,
  );
}

/** Orders of one unit that are in Postgres. */
export async function committedOrders(db: Database): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ done: string }] }>(
    'SELECT coalesce(sum(initial_stock - stock), 0) AS done FROM sales',
  );
  return Number(rows[0].done);
}
