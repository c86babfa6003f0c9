/**
 * Evaluates one look at a sale: the equations, and a cause for each difference. Reads nothing.
 *
 *   initial + movements = stock + units in live orders     (all in Postgres)
 *   stock = where the unsold units are                     (Postgres and backend: stock.ts)
 *   places given = places in each state                    (of a queue: places.ts)
 */

import { counted } from '../lib/counted.ts';
import type { Identity, VerifyReport } from '../operations/verify-report.ts';
import { gapFindings } from './counters.ts';
import { countsOf, type Finding, fault, identity, type Look, term, underWay, waiting } from './finding.ts';
import { judgePlaces, placeIdentity } from './places.ts';
import type { RepairStep } from './repair-step.ts';
import { judgeStock } from './stock.ts';
import type { Truth } from './truth.ts';

/** If a resize waits longer, no sync works on it. */
const RESIZE_MAX_S = 60;

export interface Judgement {
  readonly findings: readonly Finding[];
  readonly identities: readonly Identity[];
  /** A rebuild is under way: the segments can't be counted now. */
  readonly isBuilding: boolean;
  /** The gap in the first equation: initial stock plus movements, minus stock and the units of live orders. */
  readonly soldGap: number;
}

export function judge(look: Look): Judgement {
  const { places } = look.truth;
  const soldGap = soldIdentity(look.truth).difference;
  const isArchived = look.truth.row.archivedAt !== undefined;
  const isBuilding = !isArchived && isBeingBuilt(look);
  const stock = isBuilding || isArchived ? undefined : judgeStock(look, soldGap);
  return {
    soldGap,
    isBuilding,
    identities: [
      soldIdentity(look.truth),
      ...(stock ? [stock.identity] : []),
      ...(places ? [placeIdentity(places)] : []),
    ],
    findings: [
      ...look.truth.aboveLimit.map((what) =>
        fault('foreign_postgres', 0, `${what}: the engine takes no order beyond the limit`),
      ),
      ...judgeLiveOrders(look, soldGap),
      ...(places ? judgePlaces(places) : []),
      ...(isArchived ? judgeArchived(look, soldGap) : isBuilding ? [building(look)] : judgeBackend(look)),
      ...(stock?.findings ?? []),
    ],
  };
}

export function reportOf(
  { row, ...truth }: Truth,
  findings: readonly Finding[],
  identities: readonly Identity[],
): VerifyReport {
  const differences = [...findings]
    .sort((a, b) => Number(b.isFault) - Number(a.isFault))
    .map(({ repair, id, ...difference }) => difference);
  const faults = differences.filter(({ isFault }) => isFault);
  return {
    saleId: row.sale.id,
    ok: faults.length === 0,
    identities,
    differences,
    findings: faults.map(({ what }) => what),
    rejectedOrders: truth.rejectedOrders,
    lostOrders: truth.lostOrders,
    committedOrders: truth.committedOrders,
    distinctBuyers: truth.distinctBuyers,
  };
}

function soldIdentity({ row, movements, liveUnits }: Truth): Identity {
  return identity(
    'every unit is in stock or sold',
    [term('initial', row.sale.stock), term('movements', movements)],
    [term('stock', row.stock), term('in live orders', liveUnits)],
  );
}

/**
 * The row and the orders were read at one instant, and the same transactions change both. The count is proven wrong
 * only if orders, ledger and stock agree; otherwise it may be the orders that were changed.
 */
function judgeLiveOrders({ truth: { row, committedOrders } }: Look, soldGap: number): Finding[] {
  const { liveOrders } = row;
  if (liveOrders === undefined || liveOrders === committedOrders) return [];
  const what = `the sale has ${counted(committedOrders, 'live order')} in Postgres, and its row says ${liveOrders}`;
  const repair: RepairStep | undefined = soldGap === 0 ? { kind: 'live orders' } : undefined;
  return [fault('foreign_postgres', 0, `${what}: orders or row were changed`, repair)];
}

/**
 * Whether a rebuild is between its first step and its last: it freezes the segments, raises the generation, loads and
 * publishes.
 */
function isBeingBuilt({ truth, record, segments }: Look): boolean {
  const { generation } = truth.row;
  const states = segments.map((segment) => (segment.found === 'sound' ? segment.state : undefined));
  return (
    states.some((state) => state === 'frozen' || state === 'loaded') ||
    (record !== undefined && record.generation < generation)
  );
}

function building({ truth }: Look): Finding {
  const { generation } = truth.row;
  return fault(
    'rebuild_pending',
    0,
    `generation ${generation} is not published: a rebuild is under way, or was not finished`,
    { kind: 'rebuild' },
  );
}

function judgeBackend(look: Look): Finding[] {
  return [...lostSegments(look), ...judgeLogs(look), ...judgeState(look), ...judgeResize(look)];
}

/** The second equation needs no segments here: the unsold units of an archived sale are in Postgres alone. */
function judgeArchived({ truth, record, recordFault }: Look, soldGap: number): Finding[] {
  const { count } = truth.pendingChanges;
  const isThere = record !== undefined || recordFault !== undefined;
  const remove: RepairStep = { kind: isThere ? 'rebuild' : 'changes' };
  const restored = 'the sale is archived, and the backend holds its record: the backend may be an older copy';
  return [
    ...gapFindings(soldGap, ': orders, stock or ledger were changed'),
    ...(count > 0
      ? [underWay('change_pending', 0, 'the archived sale must still be removed from the backend', remove)]
      : isThere
        ? [fault('rebuild_pending', 0, restored, remove)]
        : []),
  ];
}

function lostSegments({ truth, record, recordFault, segments }: Look): Finding[] {
  const rebuild: RepairStep = { kind: 'rebuild' };
  const lost = fault('lost_entries', 0, "the sale's record is not in the backend", rebuild);
  const foreign = fault(
    'foreign_redis',
    0,
    `the key of the sale's record was written by others: ${recordFault}`,
  );
  return [
    ...(record ? [] : [recordFault === undefined ? lost : foreign]),
    ...segments.flatMap((found, segment) => {
      if (found.found === 'nothing') {
        const what = `segment ${segment} is not in the backend in generation ${truth.row.generation}`;
        return [fault('lost_entries', 0, what, rebuild)];
      }
      if (found.found === 'fault' && !found.others) {
        const what = `the key of segment ${segment} was written by others: ${found.fault}`;
        return [fault('foreign_redis', 0, what)];
      }
      return [];
    }),
  ];
}

function judgeLogs({ logs, segments }: Look): Finding[] {
  return logs.flatMap(({ cursor, units, problem, fault: garbage }) => {
    const { segment } = cursor;
    const found = countsOf(segments[segment]);
    if (!found) return [];
    if (garbage !== undefined) {
      return [fault('foreign_redis', 0, `log of segment ${segment} was written by others: ${garbage}`)];
    }
    if (problem !== undefined) {
      return [fault('lost_entries', 0, `log of segment ${segment}: ${problem}`, { kind: 'rebuild' })];
    }
    const expected = found.taken - cursor.units;
    if (units === expected) return [];
    const what = `log of segment ${segment} holds ${counted(units, 'unit')} beyond the cursor; its counter says ${expected}`;
    return [fault('foreign_redis', units - expected, what)];
  });
}

/** Sync carries out a resize while the sale sells; it may wait until the logs are short. */
function judgeResize({ truth: { pendingResizes: open } }: Look): Finding[] {
  if (open.count === 0) return [];
  const what = `a resize of the sale is pending${waiting(open)}`;
  return [underWay('change_pending', 0, what, open.ageS > RESIZE_MAX_S ? { kind: 'rebuild' } : undefined)];
}

/** A change that the segments have not applied yet is open in the ledger. Without one, they must have the state in Postgres. */
function judgeState({ truth, record, segments, since }: Look): Finding[] {
  const { state } = truth.row;
  const states = segments.flatMap((found) =>
    found.found === 'sound' && found.state !== 'lost' ? [found.state] : [],
  );
  const others = [...states, ...(record ? [record.state] : [])].filter((other) => other !== state);
  const open = truth.pendingChanges;
  if (open.count > 0) {
    const what = `${counted(open.count, 'change')} of the sale must still be applied to the segments${waiting(open)}`;
    return [underWay('change_pending', 0, what, { kind: 'changes' })];
  }
  if (others.length === 0 || since.isChanged) return [];
  const what = `the sale is ${state} in Postgres and ${others[0]} in the backend, and the ledger has no open change`;
  return [fault('foreign_redis', 0, what, { kind: 'state' })];
}
