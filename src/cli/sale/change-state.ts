import type { SaleOperations } from '../../sync/operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command.ts';
import { EXIT_OK } from '../explain.ts';
import { withOperations } from '../open-operations.ts';
import { print, printJson } from '../output.ts';
import { saleSheet } from './show-sale.ts';

type Action = keyof Pick<SaleOperations, 'pause' | 'resume' | 'close'>;

const SUMMARIES: Readonly<Record<Action, string>> = {
  pause: 'pause a sale: buyers are told so until it is resumed',
  resume: 'resume a paused sale',
  close: 'close a sale for good: orders stay, nothing more is sold',
};

function changeState(action: Action): CommandSpec {
  return {
    name: `${action} <id>`,
    summary: SUMMARIES[action],
    settings: SALE_SETTINGS,
    defaults: QUIET,
    examples: [`stockade sale ${action} tickets`],
    async run({ config, log, json, args }) {
      const sale = await withOperations({ config, log }, (operations) => operations[action](args[0]!));
      if (json) printJson(sale);
      else print(saleSheet(sale));
      return EXIT_OK;
    },
  };
}

export const pauseSale = changeState('pause');
export const resumeSale = changeState('resume');
export const closeSale = changeState('close');
