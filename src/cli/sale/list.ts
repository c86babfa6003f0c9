import { Option } from 'commander';
import {
  ARCHIVED_FILTERS,
  DEFAULT_PAGE_SALES,
  hasArchived,
  MAX_PAGE_SALES,
  parseSaleQuery,
  SALE_STATES,
  type SalePage,
  salePages,
} from '../../operations/sale-list.ts';
import type { SaleOperations, SaleStatus } from '../../operations/sale-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { note, print, printJson } from '../terminal/output.ts';
import { Table } from '../terminal/table.ts';
import { SALE_COLUMNS } from './show-sale.ts';

export const listSales: CommandSpec = {
  name: 'list',
  summary: 'list sales, the newest first',
  options: [
    new Option('--state <state>', `only sales in this state: ${SALE_STATES.join(', ')}`),
    new Option(
      '--archived <which>',
      `archived sales: ${ARCHIVED_FILTERS.join(', ')}; default ${ARCHIVED_FILTERS[0]}`,
    ),
    new Option('--since <time>', 'only sales that start at this time or later, ISO 8601 with zone'),
    new Option('--until <time>', 'only sales that start before this time'),
    new Option('--limit <n>', `sales in a page, up to ${MAX_PAGE_SALES}; default ${DEFAULT_PAGE_SALES}`),
    new Option('--after <place>', 'begin after this place: `next` of the page before'),
    new Option('--all', 'all pages, one after the other'),
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade sale list',
    'stockade sale list --state open --json',
    'stockade sale list --since 2026-12-01T00:00:00Z',
    'stockade sale list --all',
  ],
  async run({ config, log, json, options }) {
    const { state, archived, since, until, limit, after, all } = options;
    const query = await namingFlags('the query', listSales, () =>
      parseSaleQuery({ state, archived, since, until, limit, after }),
    );
    const isAll = all === true;
    const found: SaleStatus[] = [];
    const table = new Table(SALE_COLUMNS);
    let none: string | undefined;
    await withOperations({ config, log }, async ({ sales }) => {
      for await (const page of salePages((wanted) => sales.list(wanted), query)) {
        if (!json) printPage(table, page, isAll);
        else if (isAll) found.push(...page.sales);
        else printJson(page);
        if (!isAll) break;
      }
      if (table.isEmpty && !json) {
        const isFiltered = [state, archived, since, until, after].some((filter) => filter !== undefined);
        none = isFiltered ? 'No sale matches.' : await noSales(sales);
      }
    });
    if (table.remark !== undefined) note(table.remark);
    // All pages are one object. It is printed at the end: half of one would be no JSON.
    if (json && isAll) printJson({ sales: found });
    if (none !== undefined) print(none);
    return EXIT_OK;
  },
};

async function noSales(sales: SaleOperations): Promise<string> {
  return (await hasArchived((query) => sales.list(query)))
    ? 'All sales are archived: --archived include lists them.'
    : `There are no sales. Create one: ${invokedAs()} sale create my-sale --stock 100`;
}

/** Before the next page is read. */
function printPage(table: Table<SaleStatus>, { sales, next }: SalePage, isAll: boolean): void {
  if (sales.length === 0) return;
  print(table.page(sales));
  if (next !== undefined && !isAll) print(`\nMore: --after ${next}, or --all`);
}
