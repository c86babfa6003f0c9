import type { SaleOperations, VerifyReport } from '../sync/operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from './command.ts';
import { EXIT_FAILED, EXIT_OK } from './explain.ts';
import { reportText } from './identity-text.ts';
import { withOperations } from './open-operations.ts';
import { print, printJson } from './output.ts';

export const verify: CommandSpec = {
  name: 'verify [sale]',
  summary: 'prove that no unit was lost or sold twice, for one sale or all',
  details:
    'Counts every unit: unsold and sold in Postgres against what the sale began with, and the unsold ones against ' +
    'the segments, the order logs and what is on its way between them. Exit code 1 if an equation does not hold.',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade verify', 'stockade verify tickets', 'stockade verify tickets --json'],
  async run({ config, log, json, args }) {
    const [saleId] = args;
    const reports = await withOperations({ config, log }, (operations) => verifySales(operations, saleId));
    const ok = reports.every((report) => report.ok);
    if (json) printJson(saleId === undefined ? { ok, sales: reports } : reports[0]!);
    else print(reports.length === 0 ? 'There are no sales.' : reports.map(reportText).join('\n'));
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

async function verifySales(operations: SaleOperations, saleId: string | undefined): Promise<VerifyReport[]> {
  const ids = saleId === undefined ? (await operations.list()).map((sale) => sale.id) : [saleId];
  const reports: VerifyReport[] = [];
  for (const id of ids) reports.push(await operations.verify(id));
  return reports;
}
