import { Option } from 'commander';
import { MAX_PAGE_ORDERS } from '../../operations/order-list.ts';
import { ORDER_STATUSES } from '../../operations/order-operations.ts';
import { parseOrderQuery } from '../../operations/order-query.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { noteMore } from '../terminal/pages.ts';
import { printTable } from '../terminal/table.ts';
import { orderColumns } from './show-order.ts';

export const FILTER_OPTIONS = [
  new Option(
    '--status <list>',
    `only orders of these statuses, separated by commas: ${ORDER_STATUSES.join(', ')}`,
  ),
  new Option('--since <time>', 'only orders that were purchased from this time on, ISO 8601 with zone'),
  new Option('--until <time>', 'only orders that were purchased before this time'),
  new Option('--buyer <id>', 'only orders of this buyer'),
  new Option('--reference <text>', 'only orders with this reference of the shop'),
];

/** The values of these options, by the names that `operations/order-query.ts` has for them. */
export function given(options: Readonly<Record<string, unknown>>, names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, options[name]]));
}

export const FILTERS = ['status', 'since', 'until', 'buyer', 'reference'] as const;

/** @param isOnlyPage no page comes before it, and none after it */
function noOrders(options: Readonly<Record<string, unknown>>, isOnlyPage: boolean): string {
  if (!isOnlyPage) return 'No order matches on this page.';
  const isFiltered = FILTERS.some((name) => options[name] !== undefined);
  return isFiltered ? 'No order matches.' : 'The sale has no orders yet.';
}

export const listOrders: CommandSpec = {
  name: 'list <sale>',
  summary: 'list the orders of a sale, page by page',
  options: [
    ...FILTER_OPTIONS,
    new Option('--order <order>', 'which come first: newest or oldest').default('newest', 'newest'),
    new Option('--limit <n>', `orders in a page, from 1 to ${MAX_PAGE_ORDERS}`).default('100', '100'),
    new Option('--after <id>', 'begin after this order: `next` of the page before'),
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade order list tickets',
    'stockade order list tickets --status unpaid,paid --order oldest --json',
    'stockade order list tickets --buyer ann',
    'stockade order list tickets --reference cart-4711',
  ],
  async run({ config, log, json, args, options }) {
    // What only Postgres knows is refused as a fault of a flag too: `after` may be no order of the sale.
    const { query, page } = await namingFlags('the query', listOrders, async () => {
      const query = parseOrderQuery(given(options, [...FILTERS, 'order', 'limit', 'after']));
      const page = await withOperations({ config, log }, ({ orders }) => orders.listOrders(args[0]!, query));
      return { query, page };
    });
    if (json) printJson(page);
    else {
      if (page.orders.length === 0)
        print(noOrders(options, query.after === undefined && page.next === undefined));
      else printTable(orderColumns(query.buyerId !== undefined), page.orders);
      noteMore(page.next);
    }
    return EXIT_OK;
  },
};
