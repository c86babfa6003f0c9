/** What is printed: the tables, and what must be known to read them. */
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

/** Where the figures come from, and how to run the same again. */
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
    `The clients with nothing behind them make ${count(clientsAlone)} requests/s: no way of selling can be faster here.`,
    `Locks elsewhere than in the Redis of the stock, orders/s over those of B7: ${ratios.join(', ')}.`,
    'An order is sold when its store says so: Redis may lose the last second (AOF everysec), Postgres has committed (fsync).',
    'B9 is measured without its failover, B10 on five Redis servers, B11 on three of ZooKeeper, B12 on Postgres.',
    '"in tests" is what the tests of the catalogue force to fail or to hold. A row that fails there and sold well here was lucky.',
    'Above limit: buyers with several orders. A row marked not-checked never looks at them.',
    'Undersold is "-" where the time was over before anybody was told that everything is sold.',
  ];
}

function printed({ head, align, rows }: Table): string {
  return columns(rows, { head, align });
}
