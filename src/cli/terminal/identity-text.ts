import type { Cause, Identity, Term, VerifyReport } from '../../operations/sale-operations.ts';
import { lines, number, plural } from './output.ts';

/** Both sides of an equation, term by term: `100 initial + 0 movements = 40 stock + 60 in live orders`. */
export function identityText({ left, right, difference }: Identity): string {
  const sign = difference === 0 ? '=' : '≠';
  const off = difference === 0 ? '' : `   (off by ${number(difference)})`;
  return `${sideText(left)} ${sign} ${sideText(right)}${off}`;
}

function sideText(terms: readonly Term[]): string {
  return terms.map(({ name, units }) => `${number(units)} ${name}`).join(' + ') || '0';
}

const CAUSES: Readonly<Record<Cause, string>> = {
  in_flight: 'in flight',
  return_pending: 'return pending',
  top_up_pending: 'top-up pending',
  withdrawal_pending: 'withdrawal under way',
  transfer_pending: 'transfer pending',
  change_pending: 'change pending',
  rebuild_pending: 'rebuild pending',
  lost_entries: 'lost log entries',
  foreign_redis: 'foreign write in Redis',
  foreign_postgres: 'foreign write in Postgres',
  unexplained: 'unexplained',
};

/** Advice for unexplained differences. After a repair there is none, because the repair gives its own. */
function adviceOn({ saleId, differences, repairs }: VerifyReport): string[] {
  if (repairs || !differences.some(({ cause }) => cause === 'unexplained')) return [];
  return [
    '  Nothing proves which store is right. Pause the sale, and find out who else writes to this Redis. If Postgres is',
    `  right, \`stockade recover ${saleId}\` rebuilds the segments from it.`,
  ];
}

/** Prints a report: verdict, equations, differences with their causes, repairs. */
export function reportText(report: VerifyReport): string {
  const orders = `${plural(report.committedOrders, 'order')} of ${plural(report.distinctBuyers, 'buyer')}`;
  return lines([
    `${report.saleId}: ${report.ok ? 'ok' : 'FAILED'}, ${orders}`,
    ...report.identities.map((identity) => `  ${identity.name}: ${identityText(identity)}`),
    ...report.differences.map(
      ({ cause, isFault, what }) => `  ${isFault ? 'found' : 'under way'}: ${what} (${CAUSES[cause]})`,
    ),
    ...adviceOn(report),
    // The text of a repair that was not made says so itself.
    ...(report.repairs ?? []).map(({ done, what }) => `  ${done ? 'repaired: ' : ''}${what}`),
    ...(report.rejectedOrders === 0
      ? []
      : [`  ${plural(report.rejectedOrders, 'order')} rejected by the guard in Postgres`]),
    ...(report.lostOrders === 0
      ? []
      : [`  at least ${plural(report.lostOrders, 'order')} lost by Redis for good`]),
  ]);
}
