import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command.ts';
import { EXIT_OK } from '../explain.ts';
import { withOperations } from '../open-operations.ts';
import { print, printJson } from '../output.ts';
import { saleTable } from './show-sale.ts';

export const listSales: CommandSpec = {
  name: 'list',
  summary: 'list all sales',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade sale list', 'stockade sale list --json'],
  async run({ config, log, json }) {
    const sales = await withOperations({ config, log }, (operations) => operations.list());
    if (json) printJson({ sales });
    else
      print(
        sales.length === 0
          ? 'There are no sales. Create one: stockade sale create <id> --stock 100'
          : saleTable(sales),
      );
    return EXIT_OK;
  },
};
