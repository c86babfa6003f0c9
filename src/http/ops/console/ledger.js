// The ledger of a sale: who changed what, when and why. `stockade sale ledger` says the same in a terminal.
import { call, saleUrl } from './api.js';
import { el, table } from './dom.js';
import { number, plural, time } from './format.js';

const HEADINGS = [
  'When',
  'What',
  { text: 'Units', class: 'n' },
  'Who',
  'Reason',
  { text: 'Details', class: 'details' },
  'Applied',
];

const QUEUE_SETTINGS = ['queue', 'offerSeconds', 'presenceSeconds', 'maxWaiting', 'fit'];

/** Names of values that do not say by themselves what they are. */
const NAMES = { allowed: 'to hand out' };

/** The newest entry first: an operator mostly looks for that one. */
export function ledgerTab(saleId) {
  const panel = el('div', {}, el('p', { class: 'note' }, 'Reading the ledger …'));
  const read = async () => {
    const ledger = await readLedger(saleId);
    const cellsOf = (entry) => [
      time(entry.at),
      entry.action,
      entry.units === 0 ? '' : (entry.units > 0 ? '+' : '') + number(entry.units),
      entry.actor ?? '',
      entry.reason,
      detailText(entry),
      entry.applied ? 'yes' : 'not yet',
    ];
    panel.replaceChildren(table('Ledger, the newest entry first', HEADINGS, [...ledger].reverse(), cellsOf));
  };
  read().catch((error) => panel.replaceChildren(el('p', { class: 'refused' }, error.message)));
  return panel;
}

async function readLedger(saleId) {
  const ledger = [];
  for (let after = ''; after !== undefined; ) {
    const page = await call('GET', `${saleUrl(saleId)}/ledger${after && `?after=${after}`}`);
    ledger.push(...page.ledger);
    after = page.next;
  }
  return ledger;
}

/** What an entry changed, and what it was before. */
export function detailText({ action, units, detail }) {
  const { from, to, wanted } = detail;
  if (detail.void === true) return `had no effect, wanted ${wanted}`;
  switch (action) {
    case 'create':
      return beginText(detail);
    case 'window':
      return changesText({ starts: from[0], ends: from[1] }, { starts: to[0], ends: to[1] }, timeOrNever);
    case 'resize':
      return `from ${number(from)} to ${plural(to, 'segment')}`;
    case 'require-token':
      return to === true ? 'required now' : 'no longer required';
    case 'withdraw':
      return units === -Number(wanted) ? '' : `wanted ${number(Number(wanted))}`;
    case 'edit':
      return changesText(from, to, valueText);
    case 'queue':
      return changesText(from, to, wordText);
    case 'erase':
      return `${plural(detail.orders, 'order')} of one buyer, now ${detail.pseudonym}`;
    default:
      return from === undefined ? '' : `was ${from}`;
  }
}

function beginText({
  stock,
  segments,
  perBuyerLimit,
  startsAt,
  endsAt,
  requireToken,
  payWithinSeconds,
  ...settings
}) {
  return [
    `${plural(stock, 'unit')} in ${plural(segments, 'segment')}`,
    `${number(perBuyerLimit)} per buyer`,
    `starts ${time(startsAt)}`,
    `ends ${timeOrNever(endsAt)}`,
    requireToken && 'purchase token required',
    ...QUEUE_SETTINGS.map((name) => settings[name] !== undefined && `${name} ${wordText(settings[name])}`),
    payWithinSeconds !== undefined && `pay within ${payWithinSeconds} s`,
  ]
    .filter(Boolean)
    .join('; ');
}

/** Names only what has changed. Metadata may be long, so it is only named. */
function changesText(from, to, textOf) {
  return Object.keys(to)
    .filter((name) => JSON.stringify(to[name]) !== JSON.stringify(from[name]))
    .map((name) => {
      if (name === 'metadata') return name;
      const before = name in from ? `, was ${textOf(from[name])}` : '';
      return `${NAMES[name] ?? name} ${textOf(to[name])}${before}`;
    })
    .join('; ');
}

const timeOrNever = (iso) => time(iso) || 'never';

const wordText = (value) => (typeof value === 'number' ? number(value) : (value ?? 'none'));

/** With quotation marks, an empty title is seen too. */
const valueText = (value) => (value === null || value === undefined ? 'none' : JSON.stringify(value));
