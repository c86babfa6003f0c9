import { Command } from 'commander';
import { version } from '../node/process/version.ts';
import { BUYER_COMMANDS } from './buyer.ts';
import { addCommand, type Surroundings, sentence } from './command/command.ts';
import { completionOf } from './completion/completion.ts';
import { demo } from './demo/demo.ts';
import { doctor } from './doctor/doctor.ts';
import { EVENT_COMMANDS } from './events/commands.ts';
import { migrate } from './migrate.ts';
import { ORDER_COMMANDS } from './order/commands.ts';
import { checkQueue } from './queue/check.ts';
import { drawFile } from './queue/draw.ts';
import { OFFER_COMMANDS } from './queue/offers.ts';
import { listPlaces } from './queue/places.ts';
import { showQueue } from './queue/show.ts';
import { rebalance } from './rebalance.ts';
import { recover } from './recover.ts';
import { rehearse } from './rehearse/rehearse.ts';
import { CHANGE_COMMANDS } from './sale/change.ts';
import { createSale } from './sale/create.ts';
import { deleteSale } from './sale/delete.ts';
import { saleLedger } from './sale/ledger.ts';
import { listSales } from './sale/list.ts';
import { saleQueue } from './sale/queue.ts';
import { showSale } from './sale/show.ts';
import { serve } from './serve.ts';
import { sync } from './sync.ts';
import { EXIT_OK, type ExitCode } from './terminal/explain.ts';
import { invokedAs } from './terminal/invoked-as.ts';
import { top } from './top/top.ts';
import { verify } from './verify.ts';

const COMMANDS = [serve, demo, top, migrate, sync, verify, rebalance, recover, doctor, rehearse];
const GROUPS = [
  {
    name: 'sale',
    summary: 'create, list, show, change and delete sales',
    specs: [createSale, listSales, showSale, ...CHANGE_COMMANDS, saleQueue, deleteSale, saleLedger],
  },
  {
    name: 'order',
    summary: 'list, show, export, edit, pay, cancel, redeem and refund orders',
    specs: ORDER_COMMANDS,
  },
  {
    name: 'buyer',
    summary: 'erase a buyer',
    specs: BUYER_COMMANDS,
  },
  {
    name: 'events',
    summary: 'list and re-send order events that the webhook did not accept',
    specs: EVENT_COMMANDS,
  },
  {
    name: 'queue',
    summary: 'show the queue of a sale, stop and pace its offers, check its draw',
    specs: [showQueue, listPlaces, ...OFFER_COMMANDS, drawFile, checkQueue],
  },
];

/** With the longest flag of a setting, the texts beside the flags have this many columns of 80. */
const MIN_TEXT_COLUMNS = 30;

const OUTRO = `
Settings come from flags, then the environment, then defaults;
\`stockade serve --help\` shows all of them.
Exit codes: 0 the command succeeded, 1 it failed or found a fault, 2 the command
line or the configuration is wrong, 3 a rehearsal says no-go.

Examples:
  stockade demo                             sell 100 units to 20,000 requests
  stockade serve                            a node with nothing else installed
  stockade sale create tickets --stock 100  a sale on that node
`;

function hereStockadeIs(command: string): string {
  return command === 'stockade' ? '' : `\nHere, \`stockade\` stands for:\n  ${command}\n`;
}

/**
 * @param argv as `process.argv`: the command begins at the third element
 * @returns the exit code of the command. @throws CommanderError, and the errors of the command
 */
export async function runProgram(
  argv: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT_OK;
  const surroundings: Surroundings = {
    env,
    finished: (code) => {
      exitCode = code;
    },
  };
  const program = new Command('stockade')
    .description('A flash-sale stock engine: nothing oversold, nothing left over, every answer true.')
    .version(version())
    .addHelpText('after', () => OUTRO + hereStockadeIs(invokedAs()))
    .configureHelp({ subcommandTerm, minWidthToWrap: MIN_TEXT_COLUMNS })
    .exitOverride();
  for (const spec of COMMANDS) addCommand(program, spec, surroundings);
  for (const { name, summary, specs } of GROUPS) {
    const group = program.command(name).summary(summary).description(sentence(summary));
    for (const spec of specs) addCommand(group, spec, surroundings);
    group.showHelpAfterError(`(stockade ${name} has: ${namesIn(group)}; add --help for more)`);
  }
  addCommand(program, completionOf(program), surroundings);
  program.showHelpAfterError(`(stockade has: ${namesIn(program)}; add --help for more)`);
  await program.parseAsync(argv);
  return exitCode;
}

/** A command's name and arguments. All commands have `[options]`: without it, the summaries fit into 80 columns. */
function subcommandTerm(command: Command): string {
  const args = command.registeredArguments.map((argument) => {
    return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
  });
  return [command.name(), ...args].join(' ');
}

function namesIn(group: Command): string {
  return group.commands.map((command) => command.name()).join(', ');
}
