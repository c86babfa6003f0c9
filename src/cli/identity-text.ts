import type { Identity, Term, VerifyReport } from '../sync/operations.ts';
import { plural } from './output.ts';

/** Both sides of an equation, term by term: `100 initial + 0 movements = 40 stock + 60 in live orders`. */
export function identityText({ left, right, difference }: Identity): string {
  const sign = difference === 0 ? '=' : '≠';
  const off = difference === 0 ? '' : `   (off by ${difference})`;
  return `${sideText(left)} ${sign} ${sideText(right)}${off}`;
}

function sideText(terms: readonly Term[]): string {
  return terms.map(({ name, units }) => `${units} ${name}`).join(' + ') || '0';
}

/** A report as lines: verdict, equations, findings. */
export function reportText(report: VerifyReport): string {
  const orders = `${plural(report.committedOrders, 'order')} of ${plural(report.distinctBuyers, 'buyer')}`;
  return [
    `${report.saleId}: ${report.ok ? 'ok' : 'FAILED'}, ${orders}`,
    ...report.identities.map((identity) => `  ${identity.name}: ${identityText(identity)}`),
    ...report.findings.map((finding) => `  found: ${finding}`),
    ...(report.rejectedOrders === 0
      ? []
      : [`  ${plural(report.rejectedOrders, 'order')} rejected by the guard in Postgres`]),
  ].join('\n');
}
