/**
 * Commands that change a sale. The sale's id is the only argument. What the change sets is an option, as in `sale create`,
 * and has the name that it has in the JSON of the ops port.
 */
import { Option } from 'commander';
import { parseChange } from '../../engine/sale/sale-change.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { confirmation, YES_OPTION } from '../command/confirm.ts';
import { namingFlags, numberOrText, parsedOrText } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { finalChange } from './final-changes.ts';
import { saleSheet } from './show-sale.ts';

interface ChangeSpec extends Pick<CommandSpec, 'name' | 'summary' | 'details' | 'options' | 'examples'> {
  /** Makes the JSON of the change, as the ops port accepts it, from the options. */
  readonly change: (options: Readonly<Record<string, unknown>>) => Record<string, unknown>;
  /** The change can't be undone, or not with each option. */
  readonly isFinal?: true;
}

function changeCommand({ change, options = [], isFinal, ...spec }: ChangeSpec): CommandSpec {
  return {
    ...spec,
    options: [...options, ...AUTHOR_OPTIONS, ...(isFinal ? [YES_OPTION] : [])],
    settings: SALE_SETTINGS,
    defaults: QUIET,
    async run({ config, log, json, args, options: given }) {
      const saleId = args[0]!;
      const author = authorOf(given);
      const sale = await namingFlags('the change', { options }, () => {
        const wanted = parseChange(change(given)).change;
        const final = finalChange(wanted);
        const confirm = final && confirmation(`${final.verb} ${saleId}`, given);
        return withOperations({ config, log }, async ({ sales }) => {
          await confirm?.(async () => final!.tell(await sales.show(saleId)));
          return sales.change(saleId, wanted, author);
        });
      });
      if (json) printJson(sale);
      else print(saleSheet(sale));
      return EXIT_OK;
    },
  };
}

const SUMMARIES = {
  pause: 'pause a sale: buyers are refused until it is resumed',
  resume: 'resume a paused sale',
  close: 'close a sale for good: its orders stay, and nothing more is sold',
} as const;

const [pauseSale, resumeSale, closeSale] = (['pause', 'resume', 'close'] as const).map((action) =>
  changeCommand({
    name: `${action} <sale>`,
    summary: SUMMARIES[action],
    examples: [`stockade sale ${action} tickets --reason "wrong price"`],
    change: () => ({ action }),
    ...(action === 'close' && { isFinal: true }),
  }),
) as [CommandSpec, CommandSpec, CommandSpec];

const archiveSale = changeCommand({
  name: 'archive <sale>',
  summary: 'move a closed sale out of Redis: it stays in Postgres',
  details:
    'Its orders can still be listed, exported, paid back and redeemed. It can never be opened again, and lists of sales ' +
    'leave it out.',
  examples: ['stockade sale archive tickets --reason "the concert is over"'],
  change: () => ({ action: 'archive' }),
  isFinal: true,
});

const topUpSale = changeCommand({
  name: 'top-up <sale>',
  summary: 'add units to a sale, also while it sells or is sold out',
  options: [new Option('--units <n>', 'how many to add (required)')],
  examples: ['stockade sale top-up tickets --units 500 --reason "second batch came in"'],
  change: ({ units }) => ({ action: 'top-up', units: numberOrText(units) }),
});

const withdrawFromSale = changeCommand({
  name: 'withdraw <sale>',
  summary: 'take unsold units out of a sale',
  details: 'Takes out all of them or none: if fewer are unsold, nothing changes and the exit code is 1.',
  options: [new Option('--units <n>', 'how many to take out (required)')],
  examples: ['stockade sale withdraw tickets --units 20 --reason "kept for guests"'],
  change: ({ units }) => ({ action: 'withdraw', units: numberOrText(units) }),
});

const moveSaleWindow = changeCommand({
  name: 'window <sale>',
  summary: 'change when a sale starts or ends',
  options: [
    new Option('--starts-at <time>', 'ISO 8601 with zone'),
    new Option('--ends-at <time>', 'ISO 8601 with zone'),
    new Option('--no-end', 'no end: the sale goes on until it is closed').conflicts('endsAt'),
  ],
  examples: [
    'stockade sale window tickets --ends-at 2026-11-28T01:00:00+01:00 \\',
    '  --reason "one hour more"',
    'stockade sale window tickets --no-end',
  ],
  change: ({ startsAt, endsAt, end }) => {
    if (startsAt === undefined && endsAt === undefined && end !== false) {
      throw new UsageError('say what to change: give --starts-at, --ends-at or --no-end');
    }
    return {
      action: 'window',
      ...(startsAt === undefined ? {} : { startsAt }),
      ...(end === false ? { endsAt: null } : endsAt === undefined ? {} : { endsAt }),
    };
  },
});

const resizeSale = changeCommand({
  name: 'resize <sale>',
  summary: 'give a sale another number of segments, while it sells',
  details: 'Buyers wait for a moment. None is refused because of it, and the limits per buyer stay in force.',
  options: [new Option('--segments <n>', 'from 1 to 1024 (required)')],
  examples: ['stockade sale resize tickets --segments 32 --reason "more buyers than thought"'],
  change: ({ segments }) => ({ action: 'resize', segments: numberOrText(segments) }),
});

const requireToken = changeCommand({
  name: 'require-token <sale>',
  summary: 'set whether buyers need a purchase token',
  options: [
    new Option('--on', 'sell only to buyers who have one'),
    new Option('--off', 'sell to all buyers').conflicts('on'),
  ],
  examples: ['stockade sale require-token tickets --on --reason "programs buy ahead"'],
  change: ({ on, off }) => {
    if (on === undefined && off === undefined) throw new UsageError('--on or --off must be given');
    return { action: 'require-token', requireToken: on === true };
  },
});

const editSale = changeCommand({
  name: 'edit <sale>',
  summary: 'change title, limit per buyer, price, metadata or time to pay, while the sale sells',
  details:
    'An empty value removes a price, currency or time to pay. A new time to pay applies to orders that are committed ' +
    'afterwards. The limit per buyer can only be raised, because buyers may already hold as many units as it allows. So the ' +
    'command asks before it raises the limit.',
  options: [
    new Option('--title <text>', 'name of the item, one line'),
    new Option('--per-buyer-limit <n>', 'units that one buyer may have; not less than now'),
    new Option('--price-minor <n>', "price in the currency's minor unit (cents)"),
    new Option('--face-value-minor <n>', "face value in the currency's minor unit"),
    new Option('--currency <code>', 'ISO 4217, such as EUR'),
    new Option('--pay-within-seconds <n>', 'seconds after which an unpaid order expires'),
    new Option('--metadata <json>', 'a JSON object, which replaces the old one'),
  ],
  examples: [
    'stockade sale edit tickets --title "Front row, Friday" --price-minor 4900 --currency EUR \\',
    '  --reason "typing error"',
  ],
  change: ({ title, perBuyerLimit, metadata, currency, priceMinor, faceValueMinor, payWithinSeconds }) => {
    const change = {
      ...{ title, perBuyerLimit: numberOrText(perBuyerLimit) },
      ...{ metadata: parsedOrText(metadata), currency: currency === '' ? null : currency },
      priceMinor: numberOrNull(priceMinor),
      faceValueMinor: numberOrNull(faceValueMinor),
      payWithinSeconds: numberOrNull(payWithinSeconds),
    };
    if (Object.values(change).every((value) => value === undefined))
      throw new UsageError('say what to change: give --title, --price-minor or another option; add --help');
    return { action: 'edit', ...change };
  },
  isFinal: true,
});

/** An empty value removes what was set. */
function numberOrNull(value: unknown): unknown {
  return value === '' ? null : numberOrText(value);
}

export const CHANGE_COMMANDS: readonly CommandSpec[] = [
  pauseSale,
  resumeSale,
  closeSale,
  archiveSale,
  topUpSale,
  withdrawFromSale,
  moveSaleWindow,
  resizeSale,
  requireToken,
  editSale,
];
