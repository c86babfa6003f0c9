/** The printed report: the tables, and notes for reading them. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count } from '../support/figures.ts';
import { machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import { OPTIONS } from './options.ts';
import type { CatalogueResult } from './result.ts';
import { crowdTable, namingTable, sellingTable, type Table } from './tables.ts';

export function report(result: CatalogueResult): string {
  return [
    ...origin(result),
    '',
    `${sellingTitle()}:`,
    printed(sellingTable(result)),
    '',
    `${crowdTitle(result)}:`,
    printed(crowdTable(result)),
    '',
    'Order ids:',
    printed(namingTable(result)),
    '',
    ...remarks(result),
  ].join('\n');
}

/** The machine and the parameters, and how to repeat the run. */
export function origin({ machine, parameters }: CatalogueResult): string[] {
  return [machineText(machine), parametersText(OPTIONS, parameters)];
}

export function sellingTitle(): string {
  return 'A sale that does not run out, each request by a new buyer';
}

export function crowdTitle({ parameters: { stock, buyers } }: CatalogueResult): string {
  return `A sale of ${count(stock)} units to ${count(buyers)} buyers, drawn at random for each request`;
}

export function remarks({ clientsAlone, locksOverB7 }: CatalogueResult): string[] {
  const ratios = Object.entries(locksOverB7).map(([id, ratio]) => `${id} ${ratio.toFixed(2)}`);
  return [
    `The clients alone, without a store, make ${count(clientsAlone)} requests/s: no way of selling can be faster here.`,
    `Locks in another store than the stock, orders/s relative to B7: ${ratios.join(', ')}.`,
    'An order is sold when its store says so: Redis may lose the last second (AOF everysec), Postgres has committed (fsync).',
    'B9 is measured without its failover, B10 on five Redis servers, B11 on three of ZooKeeper, B12 on Postgres.',
    '"in tests" is the result of the tests in the catalogue, which force the failures. A row that fails there and sold correctly here was lucky.',
    'Above limit: buyers with several orders. A row marked not-checked does not check this limit.',
    'Undersold is "-" where the time was over before a buyer was answered "sold out".',
  ];
}

function printed({ head, align, rows }: Table): string {
  return columns(rows, { head, align });
}
