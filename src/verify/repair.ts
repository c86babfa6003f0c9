/**
 * Repairs what `verify` has found, if the cause is proven, and reports what it did. Each step is one that sync, a rebuild
 * or the process that makes a change would take, or a write that compares first (correct.lua). If another process takes a
 * step meanwhile, this one does nothing. If this process dies, some of the differences remain.
 *
 * Postgres is the truth and is never changed. Two exceptions: a wrong number of live orders is counted again, and places of the
 * queue get the states and the offers that orders prove.
 */

import pLimit from 'p-limit';
import type { Backend, SegmentAudit } from '../engine/contract.ts';
import { BackendCorrupt, StaleGeneration } from '../engine/errors.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { counted, countedAre } from '../lib/counted.ts';
import type { RecoveryReport } from '../operations/recover-operations.ts';
import type { Cause, Repair, VerifyReport } from '../operations/verify-report.ts';
import { applyReturns } from '../orders/returns.ts';
import { numbers } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';
import { relinkOffers, repairPlaces } from '../queue/place-counts.ts';
import type { Recoveries } from '../rebuild/recovery.ts';
import { followState } from '../sales/follow-state.ts';
import { countLiveOrders } from '../sales/live-orders.ts';
import { finishMovements, followMovements, OWN_TIME_S } from '../sales/movements.ts';
import { readSale } from '../sales/sale-rows.ts';
import type { Finding } from './finding.ts';
import { answerIn } from './foreign-write.ts';
import type { MissingRecord, RepairStep } from './repair-step.ts';
import { examine } from './verify.ts';

const PARALLEL_RECORDS = 8;
/** How often records are restored again, because units came back meanwhile. */
const MAX_ATTEMPTS = 5;
/** What a rebuild of the segments does not repair. */
const IN_POSTGRES: ReadonlySet<RepairStep['kind']> = new Set(['live orders', 'places', 'offers']);

export interface RepairStores {
  readonly db: Database;
  readonly backend: Backend;
  readonly recoveries: Recoveries;
}

/** Repairs, and verifies again. @throws as `verifySale` */
export async function repairSale(stores: RepairStores, saleId: string): Promise<VerifyReport> {
  const { findings } = await examine(stores.db, stores.backend, saleId);
  const repairs: Repair[] = [];
  // After a counter was not corrected, no other segment may get units.
  let mayNotGetUnits = false;
  for (const finding of inOrder(findings)) {
    const repair: Repair | undefined =
      mayNotGetUnits && getsUnits(finding.repair)
        ? {
            cause: finding.cause,
            ...undone(`left alone, because another segment was not corrected: ${finding.what}`),
          }
        : await repairFinding(stores, saleId, finding);
    mayNotGetUnits ||= finding.repair?.kind === 'counter' && repair?.done === false;
    if (repair && !repairs.some(({ what }) => what === repair.what)) repairs.push(repair);
  }
  await reopen(stores.backend, saleId);
  const { report } = await examine(stores.db, stores.backend, saleId);
  return { ...report, repairs };
}

/** It always runs, because an earlier repair may have died after units came back and before any board learned of them. */
async function reopen(backend: Backend, saleId: string): Promise<void> {
  try {
    if (await backend.sales.read(saleId)) await backend.sales.reopen(saleId);
  } catch (error) {
    // An overwritten record is among the findings already. A full Redis has let no units come back. Other errors are thrown.
    answerIn(error);
  }
}

/** Whether the repair adds units to a segment. */
function getsUnits(step: RepairStep | undefined): boolean {
  return step?.kind === 'counter' && step.field === 'left' && (step.off === undefined || step.off > 0);
}

/**
 * A rebuild restores everything in the backend: with one, no other repair of the backend is needed. Without one, segments that have too
 * many units are corrected before those that have too few: if the former have sold them meanwhile, the latter must not get them.
 */
function inOrder(findings: readonly Finding[]): Finding[] {
  const rebuild = findings.find(({ repair }) => repair?.kind === 'rebuild');
  if (!rebuild)
    return [...findings].sort((a, b) => Number(getsUnits(a.repair)) - Number(getsUnits(b.repair)));
  return [
    rebuild,
    ...findings.filter(
      ({ isFault, repair, cause }) =>
        isFault && cause === 'foreign_postgres' && (!repair || IN_POSTGRES.has(repair.kind)),
    ),
  ];
}

async function repairFinding(
  stores: RepairStores,
  saleId: string,
  finding: Finding,
): Promise<Repair | undefined> {
  const { cause, repair: step, isFault, what } = finding;
  if (!step)
    return isFault
      ? { cause, done: false, what: `left alone: ${what}. ${adviceFor(cause, saleId)}` }
      : undefined;
  try {
    return { cause, ...(await carryOut(stores, saleId, step)) };
  } catch (error) {
    const why =
      error instanceof StaleGeneration ? 'the sale is being rebuilt: repair it again later' : answerIn(error);
    return { cause, done: false, what: `not repaired: ${what}. The repair failed: ${why}` };
  }
}

function adviceFor(cause: Cause, saleId: string): string {
  if (cause === 'foreign_postgres')
    return 'Postgres is never repaired: undo there what other programs have written';
  if (cause === 'unexplained')
    return `Nothing proves which store is right. Pause the sale, and find out which program writes to this Redis. If Postgres is right, \`stockade recover ${saleId}\` rebuilds the segments from it`;
  return `The right value is not proven. \`stockade recover ${saleId}\` rebuilds the segments from Postgres and their logs; remove a key of another type before`;
}

type Outcome = Omit<Repair, 'cause'>;
const done = (what: string): Outcome => ({ done: true, what });
const undone = (what: string): Outcome => ({ done: false, what });

async function carryOut(stores: RepairStores, saleId: string, step: RepairStep): Promise<Outcome> {
  const { db, backend } = stores;
  const generation = (await readSale(db, saleId))?.generation ?? 0;
  const ref = { saleId, generation };
  switch (step.kind) {
    case 'returns':
      await applyReturns(db, backend, saleId);
      return done('applied the pending returns');
    case 'changes':
      await followMovements(db, backend, saleId);
      return done("applied the sale's changes to the segments");
    case 'withdrawals':
      if (step.ageS <= OWN_TIME_S) return undone('left alone: the withdrawal is under way');
      await finishMovements(db, backend, saleId);
      return done('undid the withdrawal that was not finished');
    case 'transfers': {
      const segments = (await readSale(db, saleId))?.sale.segments ?? 0;
      const finished = await backend.transfers.finish(ref, segments);
      return done(`finished ${counted(finished.length, 'transfer')}`);
    }
    case 'live orders':
      return done(`counted ${counted(await countLiveOrders(db, saleId), 'live order')} in Postgres`);
    case 'places': {
      const repaired = await repairPlaces(db, saleId);
      if (repaired === 0) return undone('left alone: no order proves the state of those places');
      return done(`gave ${counted(repaired, 'place')} of the queue the state that its order proves`);
    }
    case 'offers': {
      const relinked = await relinkOffers(db, saleId);
      if (relinked === 0) return undone('left alone: no place without an order is that of those offers');
      const where = relinked === 1 ? 'the place that it names' : 'the places that they name';
      return done(`gave ${counted(relinked, 'offer')} back to ${where}`);
    }
    case 'state':
      await followState(db, backend, saleId);
      return done("gave the segments the sale's state");
    case 'counter': {
      const { segment, field, off } = step;
      const isDone = await backend.audits.correct({ ...ref, segment }, field, off);
      if (!isDone) return undone(`left alone: the counters of segment ${segment} have changed meanwhile`);
      return done(`set units ${field} of segment ${segment} to the value that the other counters give`);
    }
    case 'records':
      return restore(stores, saleId, step.missing);
    case 'rebuild':
      return rebuild(stores.recoveries, saleId);
  }
}

/** If units come back to a segment at that moment, it refuses the orders. Then this begins again, with another lock. */
async function restore(
  stores: RepairStores,
  saleId: string,
  missing: readonly MissingRecord[],
): Promise<Outcome> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const restored = await remember(stores, saleId, missing);
    if (restored !== undefined) return done(`restored ${counted(restored, 'order')} in buyers' records`);
  }
  return undone("not all buyers' records were restored, because units kept coming back: repair it again");
}

/**
 * Restores records. The orders' rows are locked meanwhile, so an order can be returned only after its record has it again. The buyer
 * and the key are read again: the buyer may have been erased since the order was found missing.
 *
 * Postgres may end the session that has the lock, and what this process has sent may arrive after the order was returned. So the
 * segments get the number of units that had come back to them, and refuse the order if more have come back since.
 * @returns the number of restored orders; `undefined` if a segment has refused one
 */
async function remember(
  { db, backend }: RepairStores,
  saleId: string,
  missing: readonly MissingRecord[],
): Promise<number | undefined> {
  return db.transaction(async (trx) => {
    const live = await rows<MissingRecord & { generation: number; segments: number }>(
      trx,
      `SELECT o.order_id::text AS "orderId", o.buyer_id AS "buyerId", o.quantity, coalesce(o.idempotency_key, '') AS key,
         s.generation, s.segments
       FROM orders o JOIN sales s ON s.id = o.sale_id
       WHERE o.order_id = ANY (?::bigint[]) AND o.sale_id = ? AND o.status IN ${LIVE}
       ORDER BY o.order_id FOR SHARE OF o`,
      [numbers(missing.map(({ orderId }) => orderId)), saleId],
    );
    if (live.length === 0) return 0;
    const found = await backend.audits.audit(saleId, live[0]!.segments, live[0]!.generation);
    const added = await pLimit(PARALLEL_RECORDS).map(live, ({ buyerId, generation, segments, ...order }) => {
      const ref = { saleId, segment: homeSegment(buyerId, segments), generation };
      const holding = { buyerId, orders: [{ ...order, seq: 0 }] };
      return backend.audits.remember(ref, holding, returnedTo(found[ref.segment]!));
    });
    return added.includes(false) ? undefined : live.length;
  });
}

/** Units that have come back to a segment. Of one that is missing, any number: it refuses the orders anyway. */
function returnedTo(segment: SegmentAudit): number {
  if (segment.found === 'sound') return segment.returned;
  if (segment.found === 'nothing') return 0;
  if (!segment.others) throw new BackendCorrupt(segment.fault);
  return segment.others.returned;
}

async function rebuild(recoveries: Recoveries, saleId: string): Promise<Outcome> {
  const recovery = await recoveries.complete(saleId);
  if (recovery.state === 'done') return done(rebuiltText(recovery));
  return undone(
    `not rebuilt: ${recovery.state === 'failed' ? recovery.problem : 'its result is no longer known'}`,
  );
}

function rebuiltText({ generation, salvagedOrders, losses }: RecoveryReport): string {
  if (salvagedOrders === undefined)
    return `generation ${generation} was built from Postgres by another process meanwhile`;
  const lost = losses.reduce((sum, { orders }) => sum + orders, 0);
  const missing = lost === 0 ? '' : `; at least ${countedAre(lost, 'order')} lost for good`;
  return `built generation ${generation} from Postgres, ${counted(salvagedOrders, 'order')} saved from the logs${missing}`;
}
