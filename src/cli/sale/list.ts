import { Option } from 'commander';
import {
  ARCHIVED_FILTERS,
  DEFAULT_PAGE_SALES,
  MAX_PAGE_SALES,
  parseSaleQuery,
  SALE_STATES,
  type SalePage,
  salePages,
} from '../../operations/sale-list.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { print, printJson } from '../terminal/output.ts';
import { saleTable } from './show-sale.ts';

export const listSales: CommandSpec = {
  name: 'list',
  summary: 'list sales, the newest first',
  options: [
    new Option('--state <state>', `only sales in this state: ${SALE_STATES.join(', ')}`),
    new Option(
      '--archived <which>',
      `archived sales: ${ARCHIVED_FILTERS.join(', ')}; default ${ARCHIVED_FILTERS[0]}`,
    ),
    new Option('--limit <n>', `sales in a page, up to ${MAX_PAGE_SALES}; default ${DEFAULT_PAGE_SALES}`),
    new Option('--after <place>', 'begin after this place: `next` of the page before'),
    new Option('--all', 'all pages, one after the other'),
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade sale list', 'stockade sale list --state open --json', 'stockade sale list --all'],
  async run({ config, log, json, options }) {
    const { state, archived, limit, after, all } = options;
    const query = await namingFlags('the query', listSales, () =>
      parseSaleQuery({ state, archived, limit, after }),
    );
    const show = json ? new JsonPages(all === true) : new TextPages(all === true);
    await withOperations({ config, log }, async ({ sales }) => {
      const pages = salePages((wanted) => sales.list(wanted), query);
      for await (const page of pages) {
        show.page(page);
        if (all !== true) break;
      }
    });
    show.end();
    return EXIT_OK;
  },
};

/** Each page as a table of its own, because it is printed before the next one is read. */
class TextPages {
  readonly #all: boolean;
  #isEmpty = true;

  constructor(all: boolean) {
    this.#all = all;
  }

  page({ sales, next }: SalePage): void {
    if (sales.length === 0) return;
    this.#isEmpty = false;
    print(saleTable(sales));
    if (next !== undefined && !this.#all) print(`\nMore: --after ${next}, or --all`);
  }

  end(): void {
    if (this.#isEmpty)
      print(`There are no such sales. Create one: ${invokedAs()} sale create my-sale --stock 100`);
  }
}

/** One object, whatever the number of pages. */
class JsonPages {
  readonly #all: boolean;
  #before = '{"sales":[';

  constructor(all: boolean) {
    this.#all = all;
  }

  page(page: SalePage): void {
    if (!this.#all) printJson(page);
    else if (page.sales.length > 0) {
      print(this.#before + page.sales.map((sale) => JSON.stringify(sale)).join(',\n'));
      this.#before = ',';
    }
  }

  end(): void {
    if (this.#all) print(this.#before === ',' ? ']}' : `${this.#before}]}`);
  }
}
