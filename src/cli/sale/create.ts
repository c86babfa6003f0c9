import { Option } from 'commander';
import { InvalidInput } from '../../engine/errors.ts';
import { parseSale } from '../../engine/sale/sale-json.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { numberOrText, parsedOrText, withFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { note, print, printJson } from '../terminal/output.ts';
import { QUEUE_OPTIONS } from './queue-options.ts';
import { commitmentOf, drawRemark, fitRemark } from './queue-remarks.ts';
import { saleSheet } from './show-sale.ts';

const options = [
  new Option('--stock <n>', 'units for sale (required)'),
  new Option('--title <text>', 'name of the item, for people'),
  new Option('--segments <n>', 'parts that the stock is split into (default: 8)'),
  new Option('--starts-at <time>', 'ISO 8601 with zone (default: now)'),
  new Option('--ends-at <time>', 'ISO 8601 with zone (default: no end)'),
  new Option('--per-buyer-limit <n>', 'units that one buyer may hold (default: 1)'),
  new Option('--require-token', 'sell only to buyers who have a purchase token'),
  new Option('--pay-within-seconds <n>', 'time to pay an order (default: no limit)'),
  new Option('--price-minor <n>', 'price in minor units of the currency, such as cents'),
  new Option('--face-value-minor <n>', 'face value in minor units'),
  new Option('--currency <code>', 'ISO 4217 code, such as EUR'),
  new Option('--shop-id <id>', 'the shop that the sale belongs to'),
  new Option('--metadata <json>', 'a JSON object that is stored with the sale'),
  ...QUEUE_OPTIONS,
];

const NUMBERS = new Set([
  'stock',
  'segments',
  'perBuyerLimit',
  'payWithinSeconds',
  'priceMinor',
  'faceValueMinor',
  'offerSeconds',
  'presenceSeconds',
  'maxWaiting',
]);

export const createSale: CommandSpec = {
  name: 'create <id>',
  summary: 'create a sale, open for buyers within its window',
  options: [...options, ...AUTHOR_OPTIONS],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade sale create tickets --stock 100',
    'stockade sale create tickets --stock 1000 --segments 16 --per-buyer-limit 2 \\',
    '  --starts-at 2026-11-27T20:00:00+01:00 --ends-at 2026-11-28T00:00:00+01:00',
    'stockade sale create tickets --stock 1000 --queue draw \\',
    '  --starts-at 2026-11-27T20:00:00+01:00',
  ],
  async run({ config, log, json, args, options: given }) {
    const input = saleInput(args[0]!, given);
    const { actor, reason } = authorOf(given);
    const { sale, commitment } = await withOperations({ config, log }, async ({ sales, queues }) => {
      const sale = await sales.create({ ...input, ...(reason !== '' && { reason }) }, actor);
      return { sale, commitment: await commitmentOf(queues, sale) };
    });
    if (json) printJson(sale);
    else print(`Created.\n${saleSheet(sale, commitment)}`);
    for (const line of [...drawRemark(sale, commitment), ...fitRemark(sale)]) note(line);
    return EXIT_OK;
  },
};

/**
 * The sale's JSON from the command line. It is checked here too, so that faults are reported without a node or a database.
 * @throws InvalidInput that names the flags
 */
export function saleInput(id: string, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const input: Record<string, unknown> = { id };
  for (const option of options) {
    const name = option.attributeName();
    const value = given[name];
    if (value === undefined) continue;
    input[name] = name === 'metadata' ? parsedOrText(value) : NUMBERS.has(name) ? numberOrText(value) : value;
  }
  try {
    parseSale(input);
  } catch (error) {
    throw error instanceof InvalidInput ? withFlags(error, 'the sale is not valid', flagOf) : error;
  }
  return input;
}

function flagOf(field: string): string {
  if (field === 'id') return '<id>';
  return options.find((option) => option.attributeName() === field)?.long ?? field;
}
