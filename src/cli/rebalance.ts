import { Option } from 'commander';
import type { RebalanceReport } from '../operations/rebalance-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from './command/command.ts';
import { withOperations } from './command/open-operations.ts';
import { EXIT_OK } from './terminal/explain.ts';
import { columns, number, plural, print, printJson } from './terminal/output.ts';

export const rebalance: CommandSpec = {
  name: 'rebalance <sale>',
  summary: "even out the units left in a sale's segments",
  details:
    'A buyer whose segment is empty waits until units are moved there. A rebalance moves them in advance. Nodes do it ' +
    'regularly (REBALANCE_EVERY_MS). This command does it now; with --dry-run it only says what it would do.',
  options: [new Option('--dry-run', 'move nothing, and show what would be moved')],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade rebalance tickets --dry-run', 'stockade rebalance tickets --json'],
  async run({ config, log, json, args, options }) {
    const dryRun = options.dryRun === true;
    const report = await withOperations({ config, log }, ({ sales }) =>
      sales.rebalance(args[0]!, { dryRun }),
    );
    if (json) printJson(report);
    else print(reportText(report));
    return EXIT_OK;
  },
};

export function reportText({ saleId, dryRun, before, after, moves }: RebalanceReport): string {
  const units = moves.reduce((sum, move) => sum + move.units, 0);
  if (moves.length === 0) return `${saleId}: its segments are already even; nothing is moved.`;
  const verb = dryRun ? 'would be moved' : moves.length === 1 ? 'was made' : 'were made';
  const headline = dryRun
    ? `${saleId}: ${plural(units, 'unit')} ${verb} in ${plural(moves.length, 'move')}.`
    : `${saleId}: ${plural(moves.length, 'move')} of ${plural(units, 'unit')} in all ${verb}.`;
  const rows = before.map((left, segment) => [segment, number(left), number(after[segment]!)]);
  const made = moves.map((move) => `${number(move.units)} from ${move.from} to ${move.to}`);
  return [
    headline,
    columns(rows, { head: ['segment', 'before', 'after'], align: ['right', 'right', 'right'] }),
    ...made,
  ].join('\n');
}
