import { QUEUE_NAMES } from '../../engine/sale/queue-json.ts';
import type { SaleJson } from '../../engine/sale/sale-json.ts';
import { isRowId, parsePageQuery } from '../../operations/checked-input.ts';
import type { LedgerEntry } from '../../operations/sale-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { number, plural, print, printJson } from '../terminal/output.ts';
import { noteMore, PAGE_OPTIONS } from '../terminal/pages.ts';
import { type Column, printTable } from '../terminal/table.ts';

export const saleLedger: CommandSpec = {
  name: 'ledger <sale>',
  summary: 'list how a sale began and what operators changed: when, who, why',
  options: PAGE_OPTIONS,
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade sale ledger tickets', 'stockade sale ledger tickets --json'],
  async run({ config, log, json, args, options: { limit, after } }) {
    const query = await namingFlags('the query', saleLedger, () => parsePageQuery({ limit, after }, isRowId));
    const page = await withOperations({ config, log }, ({ sales }) => sales.ledger(args[0]!, query));
    if (json) printJson(page);
    else if (page.ledger.length === 0) print('There are no more entries.');
    else printTable(LEDGER_COLUMNS, page.ledger);
    if (!json) noteMore(page.next);
    return EXIT_OK;
  },
};

export const LEDGER_COLUMNS: readonly Column<LedgerEntry>[] = [
  { head: 'when', of: ({ at }) => at },
  { head: 'what', of: ({ action }) => action },
  { head: 'units', of: unitsText, align: 'right' },
  { head: 'who', of: ({ actor }) => actor ?? 'not known', isText: true },
  { head: 'state', of: ({ applied }) => (applied ? 'applied' : 'under way'), spare: 1 },
  { head: 'detail', of: detailText, isText: true, spare: 3 },
  { head: 'why', of: ({ reason }) => reason, isText: true, spare: 2 },
];

function unitsText({ units }: LedgerEntry): string {
  return units === 0 ? '' : `${units > 0 ? '+' : ''}${number(units)}`;
}

function detailText({ action, units, detail }: LedgerEntry): string {
  const { from, to, wanted } = detail;
  if (detail.void === true) return `had no effect, wanted ${valueText(wanted)}`;
  switch (action) {
    case 'create':
      return settingsText(detail as unknown as Settings);
    case 'window':
      return windowText(from as Window, to as Window);
    case 'resize':
      return `from ${valueText(from)} to ${valueText(to)} segments`;
    case 'require-token':
      return to === true ? 'required now' : 'no longer required';
    case 'withdraw':
      return units === -Number(wanted) ? '' : `wanted ${valueText(wanted)}`;
    case 'edit':
      return editText(from as Values, to as Values);
    case 'erase':
      return `${plural(Number(detail.orders), 'order')} of one buyer, now ${detail.pseudonym}`;
    case 'queue':
      return queueText(from as Values, to as Values);
    case 'top-up':
    case 'archive':
      return '';
    default:
      return `was ${from}`;
  }
}

/** The settings that a sale began with, as in the ledger. */
type Settings = Omit<SaleJson, 'id' | 'metadata'>;

function settingsText({ stock, segments, perBuyerLimit, startsAt, endsAt, ...settings }: Settings): string {
  return [
    `${plural(stock, 'unit')} in ${plural(segments, 'segment')}`,
    `${number(perBuyerLimit)} per buyer`,
    `starts ${startsAt}`,
    `ends ${endsAt ?? 'never'}`,
    ...(settings.requireToken ? ['purchase token required'] : []),
    ...QUEUE_NAMES.flatMap((name) =>
      settings[name] === undefined ? [] : [`${name} ${valueText(settings[name])}`],
    ),
    ...(settings.payWithinSeconds === undefined ? [] : [`pay within ${number(settings.payWithinSeconds)} s`]),
  ].join('; ');
}

/** Start and end as in the ledger; `null` if the sale has no end. */
type Window = readonly [string, string | null];

/** Names only the times that have changed. */
function windowText(from: Window, to: Window): string {
  const moves = ['starts', 'ends'].map((name, i) =>
    from[i] === to[i] ? [] : [`${name} ${to[i] ?? 'never'}, was ${from[i] ?? 'never'}`],
  );
  return moves.flat().join('; ');
}

type Values = Readonly<Record<string, unknown>>;

function valueText(value: unknown): string {
  return typeof value === 'number' ? number(value) : String(value ?? 'none');
}

function editText(from: Values, to: Values): string {
  const shown = (value: unknown) => (typeof value === 'string' ? JSON.stringify(value) : valueText(value));
  return Object.keys(to)
    .map((name) => (name === 'metadata' ? name : `${name} ${shown(to[name])}, was ${shown(from[name])}`))
    .join('; ');
}

/** Names of values that do not say by themselves what they are. */
const SHOWN_NAMES: Readonly<Record<string, string>> = { allowed: 'to hand out' };

/** The settings of the queue that have changed, or what an operator did with its offers. */
function queueText(from: Values, to: Values): string {
  return Object.keys(to)
    .filter((name) => to[name] !== from[name])
    .map((name) => {
      const before = name in from ? `, was ${valueText(from[name])}` : '';
      return `${SHOWN_NAMES[name] ?? name} ${valueText(to[name])}${before}`;
    })
    .join('; ');
}
