import { CHANGE_COMMANDS } from './change.ts';
import { createSale } from './create.ts';
import { deleteSale } from './delete.ts';
import { saleLedger } from './ledger.ts';
import { listSales } from './list.ts';
import { saleQueue } from './queue.ts';
import { showSale } from './show.ts';

export const SALE_COMMANDS = [
  createSale,
  listSales,
  showSale,
  ...CHANGE_COMMANDS,
  saleQueue,
  deleteSale,
  saleLedger,
];
