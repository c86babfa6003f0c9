/** Commands for buyers. */
import { Option } from 'commander';
import {
  type Erasure,
  type ErasureReport,
  type ErasureWish,
  type FoundBuyer,
  parseErasure,
} from '../operations/buyer-operations.ts';
import { AUTHOR_OPTIONS, authorOf } from './command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from './command/command.ts';
import { confirmation, YES_OPTION } from './command/confirm.ts';
import { namingFlags } from './command/flags.ts';
import { withOperations } from './command/open-operations.ts';
import { EXIT_OK } from './terminal/explain.ts';
import { note, number, plural, print, printJson } from './terminal/output.ts';
import { type Column, printTable } from './terminal/table.ts';

const eraseBuyer: CommandSpec = {
  name: 'erase <id>',
  summary: "replace a buyer's id by a pseudonym, in orders and in Redis, for good",
  details:
    'The orders stay, and count as before. Each sale gets another pseudonym, and the keys that the client gave to its ' +
    'purchases are removed. The buyer can no longer see, pay or cancel the orders; the shop can.\n\n' +
    'In a sale that is not closed, the id is replaced when the sale is closed. With --running it is replaced now: the sale is ' +
    'rebuilt, and all its buyers wait for seconds. The sale then knows nothing of the buyer: a repeated request buys a second ' +
    'time, and the limit per buyer begins anew.\n\n' +
    "What the shop noted with an order stays, and so do events and logs that were written before. Don't name the buyer in " +
    '--reason or --by.',
  options: [
    new Option('--sale <sale>', 'only in this sale (default: in all)'),
    new Option('--running', 'also in sales that are not closed'),
    ...AUTHOR_OPTIONS,
    YES_OPTION,
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade buyer erase buyer-4711 --reason "request of 23 November"',
    'stockade buyer erase buyer-4711 --sale tickets --running',
  ],
  async run({ config, log, json, args, options: { sale, running, ...options } }) {
    const author = authorOf(options);
    const erasure = {
      buyerId: args[0],
      ...(sale !== undefined && { saleId: sale }),
      running: running === true,
      reason: author.reason,
    };
    const { wish } = await namingFlags(
      'the erasure',
      eraseBuyer,
      () => parseErasure(erasure, author.actor, 'by'),
      FLAGS,
    );
    const confirm = confirmation(`erase ${wish.buyerId}`, options);
    const report = await withOperations({ config, log }, async ({ buyers }) => {
      let isKnown = true;
      await confirm(async () => {
        const { found = [] } = await buyers.erase({ ...wish, dryRun: true }, author);
        isKnown = found.length > 0;
        return told(wish, found);
      });
      return isKnown ? buyers.erase(wish, author) : { erased: [], waiting: [] };
    });
    if (json) printJson(report);
    else printReport(report);
    return EXIT_OK;
  },
};

/** What will happen; empty if no sale knows the buyer. */
export function told({ running }: ErasureWish, found: readonly FoundBuyer[]): string[] {
  const waiting = found.filter(({ until }) => until !== undefined);
  const erased = found.filter(({ until }) => until === undefined);
  return [
    ...(erased.length > 0
      ? [
          `A pseudonym takes the place of the id in ${ordersIn(erased)}.`,
          'The buyer can no longer see, pay or cancel what is there.',
        ]
      : []),
    ...(waiting.length > 0
      ? [
          `In ${ordersIn(waiting)} the id stays until the sale is closed, unless you add --running: then it is replaced now.`,
        ]
      : []),
    ...(running && found.length > 0
      ? [
          'Sales that are not closed are rebuilt: all their buyers wait for seconds. The limit begins anew for this buyer.',
        ]
      : []),
  ];
}

/** "3 orders of jazz", "3 orders in 2 sales". */
function ordersIn(found: readonly FoundBuyer[]): string {
  const orders = plural(
    found.reduce((sum, { orders }) => sum + orders, 0),
    'order',
  );
  return found.length === 1
    ? `${orders} of ${found[0]!.saleId}`
    : `${orders} in ${plural(found.length, 'sale')}`;
}

const FLAGS = { buyerId: '<id>', saleId: '--sale' } as const;

const STATES = {
  erased: 'erased',
  closed: 'waits until the sale is closed',
  rebuilt: 'waits until sync rebuilds the sale',
} as const;

interface ErasureRow extends Erasure {
  readonly state: (typeof STATES)[keyof typeof STATES];
}

export const ERASURE_COLUMNS: readonly Column<ErasureRow>[] = [
  { head: 'sale', of: ({ saleId }) => saleId, isId: true },
  { head: 'orders', of: ({ orders }) => number(orders), align: 'right', spare: 1 },
  { head: 'pseudonym', of: ({ pseudonym }) => pseudonym },
  { head: 'state', of: ({ state }) => state },
];

export function erasureRows({ erased, waiting }: ErasureReport): ErasureRow[] {
  return [
    ...erased.map((each) => ({ ...each, state: STATES.erased })),
    ...waiting.map((each) => ({ ...each, state: STATES[each.until] })),
  ];
}

function printReport(report: ErasureReport): void {
  const rows = erasureRows(report);
  if (rows.length === 0) print('No sale knows this buyer.');
  else printTable(ERASURE_COLUMNS, rows);
  if (report.waiting.some(({ until }) => until === 'closed'))
    note('To replace it now in sales that are not closed, add --running.');
}

export const BUYER_COMMANDS = [eraseBuyer];
