// Verify: whether every unit is accounted for, and what explains each difference.
import { repair } from './actions.js';
import { look, saleUrl } from './api.js';
import { el, say, setText, table } from './dom.js';
import { number, plural, time } from './format.js';

/** The last report of each sale, so that changing tabs does not lose it. */
const reports = new Map();

export function forgetReports() {
  reports.clear();
}

/** @param saleOf the sale as the last picture has it */
export function verifyTab(saleId, saleOf) {
  const verifyButton = el('button', { type: 'button', class: 'main' }, 'Verify now');
  const repairButton = el('button', { type: 'button', class: 'grave-quiet', hidden: true }, 'Repair …');
  const refused = el('p', { class: 'refused', role: 'alert' });
  const result = el('div');
  const keep = (report) => {
    reports.set(saleId, { report, at: new Date().toISOString() });
    fill();
  };
  const fill = () => {
    const kept = reports.get(saleId);
    repairButton.hidden = kept === undefined || kept.report.ok;
    result.replaceChildren(...(kept === undefined ? [] : reportParts(kept.report, kept.at)));
  };
  verifyButton.addEventListener('click', async () => {
    verifyButton.disabled = true;
    setText(verifyButton, 'Verifying …');
    setText(refused, '');
    try {
      const report = await look(`${saleUrl(saleId)}/verify`);
      keep(report);
      say(verdict(report));
    } catch (error) {
      setText(refused, error.message);
    } finally {
      verifyButton.disabled = false;
      setText(verifyButton, 'Verify now');
    }
  });
  repairButton.addEventListener('click', () => {
    const sale = saleOf();
    if (sale) repair(sale, reports.get(saleId).report, keep);
  });
  fill();
  return el(
    'div',
    {},
    el(
      'p',
      { class: 'note' },
      'Compares Postgres, the segments and the logs while the sale sells. It changes nothing, and may take minutes for a large sale.',
    ),
    el('div', { class: 'buttons' }, verifyButton, repairButton),
    refused,
    result,
  );
}

function verdict(report) {
  const faults = report.findings.length;
  return report.ok
    ? `Every unit of ${report.saleId} is accounted for.`
    : `${plural(faults, 'fault')} found in ${report.saleId}.`;
}

function reportParts(report, at) {
  const { identities, differences, repairs, rejectedOrders, lostOrders } = report;
  return [
    el('p', { class: report.ok ? 'verdict good' : 'verdict bad' }, verdict(report)),
    el(
      'p',
      { class: 'note' },
      `${time(at)}. ${plural(report.committedOrders, 'order')} of ${plural(report.distinctBuyers, 'buyer')}; ${number(rejectedOrders)} rejected and ${number(lostOrders)} lost since the sale began.`,
    ),
    ...identities.map(equation),
    differences.length === 0
      ? el('p', { class: 'note' }, 'No difference between the stores.')
      : table(
          'Differences and what explains them',
          ['Kind', 'Cause', { text: 'Units', class: 'n' }, 'Explanation'],
          differences,
          ({ isFault, cause, units, what }) => [
            el('span', { class: isFault ? 'state bad' : 'state off' }, isFault ? 'fault' : 'under way'),
            cause.replaceAll('_', ' '),
            number(units),
            what,
          ],
        ),
    ...(repairs === undefined || repairs.length === 0
      ? []
      : [
          table('Repairs', ['Done', 'Cause', 'What'], repairs, ({ done, cause, what }) => [
            done ? 'yes' : 'no',
            cause.replaceAll('_', ' '),
            what,
          ]),
        ]),
  ];
}

/** Both sides with their terms, such as: initial 100 + movements 0 = stock 60 + live orders 40. */
function equation({ name, left, right, difference }) {
  const side = (terms) => terms.map((term) => `${term.name} ${number(term.units)}`).join(' + ');
  const holds = difference === 0 ? 'holds' : `off by ${number(difference)}`;
  return el(
    'p',
    { class: 'equation' },
    el('span', { class: difference === 0 ? 'state good' : 'state bad' }, holds),
    ` ${name}: ${side(left)} = ${side(right)}`,
  );
}
