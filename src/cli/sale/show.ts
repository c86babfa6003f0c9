import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { saleSheet } from './show-sale.ts';

export const showSale: CommandSpec = {
  name: 'show <sale>',
  summary: 'show one sale: its definition, what is left, what is committed',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade sale show tickets', 'stockade sale show tickets --json'],
  async run({ config, log, json, args }) {
    const sale = await withOperations({ config, log }, ({ sales }) => sales.show(args[0]!));
    if (json) printJson(sale);
    else print(saleSheet(sale));
    return EXIT_OK;
  },
};
