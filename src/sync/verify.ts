/**
 * Proves that nothing was lost or invented: the identities of a sale, term by term.
 *
 *   initial + movements = stock + units in live orders                                     (all in Postgres)
 *   stock = in segments + in transit + in logs beyond the cursors + returns not yet applied   (Postgres and backend)
 *
 * The two stores can't be read at one instant. They need not: a take moves units from a segment to its log, so that
 * their sum stays; a commit moves them from the log to Postgres, where stock and cursors change together. So Postgres is
 * read first, at one instant of its own; then the segments, at one of theirs; and a log's part is its units taken by the
 * second instant less those applied by the first. What the logs really hold is counted besides, and must agree; of a
 * log whose cursor has moved meanwhile that can't be said, as its entries are trimmed while they are counted.
 */
import pLimit from 'p-limit';
import type { Backend, LogPosition, SegmentSnapshot } from '../engine/contract.ts';
import { unitsOf } from './batch.ts';
import { type Cursor, readCursors } from './cursors.ts';
import { type Database, rows } from './database.ts';
import { after, checkChain } from './log-chain.ts';
import { type Identity, type Term, UnknownSale, type VerifyReport } from './operations.ts';
import { readSale, type SaleRow } from './sale-rows.ts';

/** Entries of one log that are in memory at a time, of up to 256 orders each. */
const LOG_PAGE_ENTRIES = 200;
const PARALLEL_LOGS = 4;
/** While the sale moves all is read again, at most this often, until every log has been counted once. */
const MAX_ATTEMPTS = 10;

interface Truth {
  readonly row: SaleRow;
  readonly cursors: readonly Cursor[];
  readonly movements: number;
  readonly liveUnits: number;
  readonly committedOrders: number;
  readonly distinctBuyers: number;
  readonly returns: number;
  /** Orders that are about to be taken back: whether the backend has done it already can't be seen. */
  readonly pendingReturns: number;
  readonly rejectedOrders: number;
  readonly aboveLimit: readonly string[];
}

/** @throws UnknownSale, or the database's or backend's error */
export async function verifySale(db: Database, backend: Backend, saleId: string): Promise<VerifyReport> {
  const counted = new Set<number>();
  for (let attempt = 1; ; attempt++) {
    const truth = await readTruth(db, saleId);
    const { row, cursors } = truth;
    const segments = await backend.sales.snapshot(saleId, row.sale.segments, row.generation);
    const uncounted = cursors.filter((cursor) => !counted.has(cursor.segment));
    const logs = await countLogs(backend, uncounted, segments);
    const moved = await movedSince(db, truth);
    const still = logs.filter((log) => !moved.has(log.cursor.segment));
    const report = compare(truth, segments, still);
    if (report.ok) for (const { cursor } of still) counted.add(cursor.segment);
    const complete = report.ok && counted.size === cursors.length;
    const steady = moved.size === 0 && truth.pendingReturns === 0;
    if (complete || steady || attempt === MAX_ATTEMPTS) return report;
  }
}

/** One snapshot of Postgres: all statements see the same instant. */
async function readTruth(db: Database, saleId: string): Promise<Truth> {
  return db.transaction(
    async (trx) => {
      const row = await readSale(trx, saleId);
      if (!row) throw new UnknownSale(saleId);
      const [sums] = await rows<Record<string, string>>(
        trx,
        `SELECT
           (SELECT coalesce(sum(units), 0) FROM stock_movements WHERE sale_id = s.id) AS movements,
           (SELECT coalesce(sum(units), 0) FROM stock_returns WHERE sale_id = s.id AND applied_at IS NULL) AS returns,
           (SELECT count(*) FROM stock_returns WHERE sale_id = s.id AND applied_at IS NULL) AS pending,
           (SELECT count(*) FROM orders WHERE sale_id = s.id AND status = 'rejected') AS rejected,
           live.units, live.orders, live.buyers
         FROM sales s, LATERAL (
           SELECT coalesce(sum(quantity), 0) AS units, count(*) AS orders, count(DISTINCT buyer_id) AS buyers
           FROM orders WHERE sale_id = s.id AND status IN ('unpaid', 'paid', 'redeemed')) AS live
         WHERE s.id = ?`,
        [saleId],
      );
      const above = await rows<{ buyer_id: string; units: string }>(
        trx,
        `SELECT buyer_id, sum(quantity) AS units FROM orders
         WHERE sale_id = ? AND status IN ('unpaid', 'paid', 'redeemed')
         GROUP BY buyer_id HAVING sum(quantity) > ? ORDER BY buyer_id LIMIT 20`,
        [saleId, row.sale.perBuyerLimit],
      );
      return {
        row,
        cursors: await readCursors(trx, saleId),
        movements: Number(sums!.movements),
        liveUnits: Number(sums!.units),
        committedOrders: Number(sums!.orders),
        distinctBuyers: Number(sums!.buyers),
        returns: Number(sums!.returns),
        pendingReturns: Number(sums!.pending),
        rejectedOrders: Number(sums!.rejected),
        aboveLimit: above.map(
          (b) => `buyer ${b.buyer_id} holds ${b.units} units, above ${row.sale.perBuyerLimit}`,
        ),
      };
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  );
}

interface LogCount {
  readonly cursor: Cursor;
  /** Units in the entries beyond the cursor, as far as the segment's counter goes. */
  readonly units: number;
  readonly problem: string | undefined;
}

async function countLogs(
  backend: Backend,
  cursors: readonly Cursor[],
  segments: readonly SegmentSnapshot[],
): Promise<LogCount[]> {
  return pLimit(PARALLEL_LOGS).map(cursors, (cursor) =>
    countLog(backend, cursor, segments[cursor.segment]?.counters?.seq ?? 0),
  );
}

/** Page by page, up to entry `upTo`: a log may hold far more than fits in memory, and grows while it is counted. */
async function countLog(backend: Backend, cursor: Cursor, upTo: number): Promise<LogCount> {
  let position: LogPosition = cursor;
  for (let units = 0; ; ) {
    const [read] = await backend.log.readLog([position], LOG_PAGE_ENTRIES);
    const verdict = checkChain(read!);
    if (!verdict.ok) return { cursor, units, problem: verdict.problem };
    for (const entry of read!.entries) if (entry.seq <= upTo) units += unitsOf(entry.orders);
    const newest = read!.entries.at(-1);
    if (!newest || newest.seq >= upTo) return { cursor, units, problem: undefined };
    position = after(position, newest);
  }
}

function compare(
  truth: Truth,
  segments: readonly SegmentSnapshot[],
  logs: readonly LogCount[],
): VerifyReport {
  const { row, cursors } = truth;
  const logOf = new Map(logs.map((log) => [log.cursor.segment, log]));
  const findings: string[] = [...truth.aboveLimit];
  let left = 0;
  let inLogs = 0;
  for (const { segment, counters } of segments) {
    const cursor = cursors[segment];
    if (!counters || !cursor) {
      findings.push(`segment ${segment} is not in the backend in generation ${row.generation}`);
      continue;
    }
    left += counters.left;
    inLogs += counters.taken - cursor.units;
    const log = logOf.get(segment);
    if (!log) continue;
    if (log.problem) findings.push(`log of segment ${segment}: ${log.problem}`);
    const expected = counters.taken - cursor.units;
    if (log.units !== expected) {
      findings.push(
        `log of segment ${segment} holds ${log.units} units beyond the cursor; its counter says ${expected}`,
      );
    }
  }
  const identities = [
    identity(
      'every unit is in stock or sold',
      [term('initial', row.sale.stock), term('movements', truth.movements)],
      [term('stock', row.stock), term('in live orders', truth.liveUnits)],
    ),
    identity(
      'Postgres and the segments agree',
      [term('stock', row.stock)],
      [
        term('in segments', left),
        term('in transit', 0),
        term('in logs beyond the cursors', inLogs),
        term('returns not yet applied', truth.returns),
      ],
    ),
  ];
  return {
    saleId: row.sale.id,
    ok: findings.length === 0 && identities.every((i) => i.difference === 0),
    identities,
    findings,
    rejectedOrders: truth.rejectedOrders,
    committedOrders: truth.committedOrders,
    distinctBuyers: truth.distinctBuyers,
  };
}

function identity(name: string, left: Term[], right: Term[]): Identity {
  const sum = (terms: Term[]) => terms.reduce((total, { units }) => total + units, 0);
  return { name, left, right, difference: sum(left) - sum(right) };
}

function term(name: string, units: number): Term {
  return { name, units };
}

/** The segments whose cursors have moved. */
async function movedSince(db: Database, { row, cursors }: Truth): Promise<Set<number>> {
  const now = await readCursors(db, row.sale.id);
  const moved = now.filter(
    ({ seq, generation }, i) => seq !== cursors[i]?.seq || generation !== cursors[i]?.generation,
  );
  return new Set(moved.map((cursor) => cursor.segment));
}
