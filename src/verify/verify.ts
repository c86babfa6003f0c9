/**
 * Proves that no unit was lost or invented, or reports why it can't.
 *
 * The two stores can't be read at one instant. They need not: the engine's own work does not change what is compared
 * (stock.ts), with three exceptions.
 *
 * - A rebuild. The generation is read again at the end; if it has changed, everything is read again. While a rebuild
 *   is under way the look is repeated for a while, and then the report says so.
 * - Log entries, which are trimmed while they are counted. A log that does not continue at its cursor proves nothing
 *   if the cursor has moved. Everything is read again until each log was counted once.
 * - Changes of the sale, which Postgres has first: if the ledger has a newer row, its part of the look is left out.
 *
 * In addition, a fault counts only if the next look finds it again: anything else that changes between two reads
 * raises no alarm.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Backend } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { VerifyReport } from '../operations/verify-report.ts';
import { readCursors } from '../postgres/cursors.ts';
import type { Database } from '../postgres/database.ts';
import { countedUnits, readGivenUnits } from '../sales/given-units.ts';
import type { SaleRow } from '../sales/sale-rows.ts';
import { areMoving, countsOf, type Finding, fault, type Look } from './finding.ts';
import { foreignWriteIn } from './foreign-write.ts';
import { findStrays } from './held-orders.ts';
import { type Judgement, judge, reportOf } from './judge.ts';
import { countLogs, type LogCount } from './logs.ts';
import { judgeMissing, judgeUnrecorded, missingRecords, unrecordedOrders } from './records.ts';
import { judgeStrays } from './stray-findings.ts';
import { changesSince, readTruth } from './truth.ts';

/**
 * While the sale changes, everything is read again, at most this often, until every log has been counted once. Looks during a rebuild
 * do not count: REBUILD_WAIT_MS bounds those.
 */
const MAX_LOOKS = 10;
/** After so many looks a fault is reported that no second look has found: a sale whose faults change all the time is not in order. */
const MAX_LOOKS_WITH_FAULTS = 2 * MAX_LOOKS;
const MAX_SUPPLY_READS = 5;
/** Pause before the look that must find a fault again. */
const CONFIRM_PAUSE_MS = 50;
/** How long to wait for a rebuild before the report says that the segments can't be counted. */
const REBUILD_WAIT_MS = 5_000;

/** A report, and the findings with their repairs. */
export interface Examination {
  readonly report: VerifyReport;
  readonly findings: readonly Finding[];
}

/** @throws UnknownSale, or the database's or backend's error */
export async function verifySale(db: Database, backend: Backend, saleId: string): Promise<VerifyReport> {
  return (await examine(db, backend, saleId)).report;
}

/** @throws as `verifySale` */
export async function examine(db: Database, backend: Backend, saleId: string): Promise<Examination> {
  for (let attempt = 1; ; attempt++) {
    const look = await settledLook(db, backend, saleId);
    const judgement = judge(look);
    try {
      const findings = [...judgement.findings, ...(await judgeOrders(db, backend, look, judgement))];
      return { report: reportOf(look.truth, findings, judgement.identities), findings };
    } catch (error) {
      // The sale was rebuilt while its records were read.
      if (!(error instanceof StaleGeneration) || attempt === MAX_LOOKS) throw error;
    }
  }
}

/** Repeats the look until two looks in a row have found the same faults, and each log has been counted. */
async function settledLook(db: Database, backend: Backend, saleId: string): Promise<Look> {
  const deadline = monotonicMs() + REBUILD_WAIT_MS;
  let before: { readonly look: Look; readonly faults: readonly string[] } | undefined;
  for (let looks = 1; ; ) {
    const look = await lookAt(db, backend, saleId, before?.look);
    const { isBuilding, findings } = judge(look);
    const faults = findings.filter(({ isFault }) => isFault).map(({ what, id = what }) => id);
    const mayWait = monotonicMs() < deadline && (look.since.isRebuilt || isBuilding);
    const isConfirmed = faults.every((id) => before?.faults.includes(id));
    const isCounted = look.truth.cursors.every(({ segment }) => look.confirmed.has(segment));
    const isSettled =
      isConfirmed && (isBuilding || (!areMoving(look) && (isCounted || look.since.moved.size === 0)));
    const isLast = looks >= (isConfirmed ? MAX_LOOKS : MAX_LOOKS_WITH_FAULTS);
    if (!mayWait && (isSettled || isLast)) return look;
    if (!mayWait) looks++;
    before = { look, faults };
    if (faults.length > 0) await delay(CONFIRM_PAUSE_MS);
  }
}

async function lookAt(
  db: Database,
  backend: Backend,
  saleId: string,
  before: Look | undefined,
): Promise<Look> {
  const truth = await readTruth(db, saleId);
  const { generation, archivedAt } = truth.row;
  const record = await readRecord(backend, saleId);
  // Reading the orders takes time, and logs are trimmed meanwhile: the logs are counted from the present cursors.
  const cursors = await readCursors(db, saleId);
  const { segments, given } = archivedAt
    ? { segments: [], given: undefined }
    : await readSupplies(db, backend, truth.row);
  const known = before?.truth.row.generation === generation ? before.confirmed : new Set<number>();
  const uncounted = cursors.filter(({ segment }) => !known.has(segment) && countsOf(segments[segment]));
  const counts = await countLogs(backend, uncounted, (segment) => countsOf(segments[segment])!.seq);
  const since = await changesSince(db, truth, cursors);
  // A log that continues at its cursor was not trimmed meanwhile.
  const logs = counts.filter(
    ({ cursor, problem }) => problem === undefined || !since.moved.has(cursor.segment),
  );
  const sound = logs.filter((log) => isSound(log, countsOf(segments[log.cursor.segment])!.taken));
  const confirmed = new Set([...known, ...sound.map(({ cursor }) => cursor.segment)]);
  return { truth, ...record, segments, given, logs, confirmed, since };
}

/**
 * Reads the segments, and before them what Postgres has given them. A return that arrived between the two reads would hide a loss of
 * the same number of units. So both are read again until no units have come or gone meanwhile, at most MAX_SUPPLY_READS times.
 */
async function readSupplies(
  db: Database,
  backend: Backend,
  { sale, generation }: SaleRow,
): Promise<Pick<Look, 'segments' | 'given'>> {
  const audit = () => backend.audits.audit(sale.id, sale.segments, generation);
  let before = await audit();
  for (let reads = 1; ; reads++) {
    const [given] = await readGivenUnits(db, [sale.id]);
    const segments = await audit();
    const isSteady = isDeepStrictEqual(countedUnits(before), countedUnits(segments));
    if (isSteady || reads === MAX_SUPPLY_READS)
      return { segments, given: given?.generation === generation ? given : undefined };
    before = segments;
  }
}

function isSound({ cursor, units, problem, fault }: LogCount, taken: number): boolean {
  return problem === undefined && fault === undefined && units === taken - cursor.units;
}

async function readRecord(backend: Backend, saleId: string): Promise<Pick<Look, 'record' | 'recordFault'>> {
  try {
    return { record: await backend.sales.read(saleId) };
  } catch (error) {
    return { record: undefined, recordFault: foreignWriteIn(error) };
  }
}

/** Findings from reading all orders, if the segments can be read. */
async function judgeOrders(
  db: Database,
  backend: Backend,
  { truth, segments }: Look,
  { isBuilding, soldGap }: Judgement,
): Promise<Finding[]> {
  const isReadable = segments.every((found) => found.found !== 'nothing' && countsOf(found));
  const isLost = segments.some((found) => found.found === 'sound' && found.state === 'lost');
  if (isBuilding || !isReadable || isLost || truth.row.archivedAt) return [];
  const { strays, unreadable, faults } = await findStrays(db, backend, truth);
  const { missing, faults: others } = await missingRecords(db, backend, truth, unreadable);
  const unrecorded = faults.length === 0 ? await unrecordedOrders(db, backend, truth, unreadable) : [];
  return [
    ...[...new Set([...faults, ...others])].map((what) => fault('foreign_redis', 0, what)),
    ...judgeMissing(missing, soldGap),
    ...judgeUnrecorded(unrecorded, soldGap),
    ...judgeStrays(strays, soldGap),
  ];
}
