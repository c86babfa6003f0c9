import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { print, printJson } from '../terminal/output.ts';
import { inOrder, saleTable } from './show-sale.ts';

export const listSales: CommandSpec = {
  name: 'list',
  summary: 'list all sales: first those that run, then not started, ended and closed ones',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade sale list', 'stockade sale list --json'],
  async run({ config, log, json }) {
    const sales = inOrder(await withOperations({ config, log }, (operations) => operations.list()));
    if (json) printJson({ sales });
    else
      print(
        sales.length === 0
          ? `There are no sales. Create one: ${invokedAs()} sale create my-sale --stock 100`
          : saleTable(sales),
      );
    return EXIT_OK;
  },
};
