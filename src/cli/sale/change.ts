import { userInfo } from 'node:os';
import { Option } from 'commander';
import { InvalidInput } from '../../engine/errors.ts';
import { parseActor, parseChange } from '../../engine/sale-change.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command.ts';
import { EXIT_OK, UsageError } from '../explain.ts';
import { withOperations } from '../open-operations.ts';
import { print, printJson } from '../output.ts';
import { saleSheet } from './show-sale.ts';

const AUTHOR_OPTIONS = [
  new Option('--reason <text>', 'why, for the ledger'),
  new Option('--by <name>', 'who does it, for the ledger (default: the user of this shell)'),
];

interface ChangeSpec extends Pick<CommandSpec, 'name' | 'summary' | 'details' | 'options' | 'examples'> {
  /** The change in JSON, as the ops port takes it, from the arguments behind the sale's id and the options. */
  readonly change: (
    args: readonly string[],
    options: Readonly<Record<string, unknown>>,
  ) => Record<string, unknown>;
}

function changeCommand({ change, options = [], ...spec }: ChangeSpec): CommandSpec {
  return {
    ...spec,
    options: [...options, ...AUTHOR_OPTIONS],
    settings: SALE_SETTINGS,
    defaults: QUIET,
    async run({ config, log, json, args, options: given }) {
      const [saleId, ...rest] = args as [string, ...string[]];
      const sale = await namingFlags(() => {
        const parsed = parseChange({ ...change(rest, given), reason: given.reason ?? '' });
        const author = { actor: actorOf(given.by), reason: parsed.reason };
        return withOperations({ config, log }, (operations) =>
          operations.change(saleId, parsed.change, author),
        );
      });
      if (json) printJson(sale);
      else print(saleSheet(sale));
      return EXIT_OK;
    },
  };
}

/** What is found to be invalid, here or by whoever does it, is said of arguments and flags. */
async function namingFlags<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const faults = error.faults.map(({ field, problem }) => ({
      field: FLAGS[field] ?? field,
      problem: problem
        .replaceAll(/\b(startsAt|endsAt)\b/g, (name) => FLAGS[name]!)
        .replace('true or false', 'on or off'),
    }));
    throw new InvalidInput('the change is not valid', faults);
  }
}

const FLAGS: Readonly<Record<string, string>> = {
  units: '<units>',
  startsAt: '--starts-at',
  endsAt: '--ends-at',
  segments: '--segments',
  requireToken: '<on|off>',
  reason: '--reason',
  'X-Operator': '--by',
};

/** @throws InvalidInput */
function actorOf(given: unknown): string {
  return given === undefined ? userInfo().username : parseActor(String(given));
}

/** What is no number stays text: the schema then says what it must be. */
const numberOrText = (text: string | undefined) =>
  text !== undefined && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;

const SUMMARIES = {
  pause: 'pause a sale: buyers are told so until it is resumed',
  resume: 'resume a paused sale',
  close: 'close a sale for good: orders stay, nothing more is sold',
} as const;

const [pauseSale, resumeSale, closeSale] = (['pause', 'resume', 'close'] as const).map((action) =>
  changeCommand({
    name: `${action} <id>`,
    summary: SUMMARIES[action],
    examples: [`stockade sale ${action} tickets --reason "wrong price"`],
    change: () => ({ action }),
  }),
) as [CommandSpec, CommandSpec, CommandSpec];

const topUpSale = changeCommand({
  name: 'top-up <id> <units>',
  summary: 'add units to a sale, while it sells or is sold out',
  examples: ['stockade sale top-up tickets 500 --reason "second batch came in"'],
  change: ([units]) => ({ action: 'top-up', units: numberOrText(units) }),
});

const withdrawFromSale = changeCommand({
  name: 'withdraw <id> <units>',
  summary: 'take unsold units out of a sale',
  details: 'All of them or none: if fewer are unsold, nothing is changed and the exit code is 1.',
  examples: ['stockade sale withdraw tickets 20 --reason "kept for guests"'],
  change: ([units]) => ({ action: 'withdraw', units: numberOrText(units) }),
});

const moveSaleWindow = changeCommand({
  name: 'window <id>',
  summary: 'change when a sale starts or ends',
  options: [
    new Option('--starts-at <time>', 'ISO 8601 with zone'),
    new Option('--ends-at <time>', 'ISO 8601 with zone'),
    new Option('--no-end', 'the sale ends when it is closed').conflicts('endsAt'),
  ],
  examples: [
    'stockade sale window tickets --ends-at 2026-11-28T01:00:00+01:00 \\',
    '  --reason "one hour more"',
    'stockade sale window tickets --no-end',
  ],
  change: (_, { startsAt, endsAt, end }) => {
    if (startsAt === undefined && endsAt === undefined && end !== false) {
      throw new UsageError('--starts-at, --ends-at or --no-end must be given: what of the window to change');
    }
    return {
      action: 'window',
      ...(startsAt === undefined ? {} : { startsAt }),
      ...(end === false ? { endsAt: null } : endsAt === undefined ? {} : { endsAt }),
    };
  },
});

const resizeSale = changeCommand({
  name: 'resize <id>',
  summary: 'give a sale another number of segments, while it sells',
  details: 'Buyers wait for a moment; none is refused for it, and no limit is forgotten.',
  options: [new Option('--segments <n>', 'from 1 to 1024').makeOptionMandatory()],
  examples: ['stockade sale resize tickets --segments 32 --reason "more buyers than thought"'],
  change: (_, { segments }) => ({ action: 'resize', segments: numberOrText(segments as string) }),
});

const requireToken = changeCommand({
  name: 'require-token <id> <on|off>',
  summary: 'say whether buyers need a purchase token',
  examples: ['stockade sale require-token tickets on --reason "programs buy ahead"'],
  change: ([word]) => ({
    action: 'require-token',
    requireToken: word === 'on' ? true : word === 'off' ? false : word,
  }),
});

export const CHANGE_COMMANDS: readonly CommandSpec[] = [
  pauseSale,
  resumeSale,
  closeSale,
  topUpSale,
  withdrawFromSale,
  moveSaleWindow,
  resizeSale,
  requireToken,
];
