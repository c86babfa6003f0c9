/** Wrong orders and records of buyers, and the findings that report them. */
import { counted } from '../lib/counted.ts';
import { type Finding, fault } from './finding.ts';

/** A search for strays ends at this number: then a rebuild is due, and more names do not help. */
export const MAX_STRAYS = 1_000;
const NAMED_STRAYS = 5;

/** A wrong order or record. */
export interface Stray {
  readonly what: string;
  /** Units of an order that is not live in Postgres and may have been deleted there; 0 for all others. */
  readonly goneUnits: number;
}

/** A stray without units that may have been deleted in Postgres. */
export const stray = (what: string): Stray => ({ what, goneUnits: 0 });

/**
 * @param soldGap see `Judgement`: units that have left the stock without a live order. If they equal the units of orders that
 * are in records and not in Postgres, these orders were deleted in Postgres. Otherwise nothing proves which store was changed.
 */
export function judgeStrays(strays: readonly Stray[], soldGap: number): Finding[] {
  const gone = strays.reduce((units, { goneUnits }) => units + goneUnits, 0);
  const isGone = ({ goneUnits }: Stray) => soldGap > 0 && goneUnits > 0;
  const findings = strays.slice(0, NAMED_STRAYS).map((found) => {
    if (!isGone(found)) return ofRecord(found.what, soldGap);
    return gone === soldGap
      ? fault('foreign_postgres', 0, `${found.what}: it was deleted or changed`)
      : fault('unexplained', 0, `${found.what}: it was deleted or changed there, or written into the record`);
  });
  const more = strays.length - findings.length;
  if (more === 0) return findings;
  const most = strays.length >= MAX_STRAYS ? 'at least ' : '';
  return [
    ...findings,
    ofRecord(`${most}${counted(more, 'more order')} in records must not be there`, soldGap),
  ];
}

/**
 * A rebuild makes records from Postgres and the logs, so it is no repair if Postgres itself may have been changed.
 */
function ofRecord(what: string, soldGap: number): Finding {
  const text = `${what}: it was written by others, or the backend has gone back to an older state`;
  return soldGap === 0
    ? fault('foreign_redis', 0, text, { kind: 'rebuild' })
    : fault('foreign_redis', 0, text);
}
