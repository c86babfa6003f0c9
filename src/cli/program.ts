import { Command } from 'commander';
import { version } from '../node/process/version.ts';
import { addCommand, type CommandSpec, type Surroundings, sentence } from './command/command.ts';
import { EXIT_OK, type ExitCode } from './terminal/explain.ts';
import { invokedAs } from './terminal/invoked-as.ts';

/** Loads what a command needs. */
type Load<T> = () => Promise<T>;

/** By name, in the order of the help. */
const COMMANDS: Readonly<Record<string, Load<CommandSpec>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  demo: async () => (await import('./demo/demo.ts')).demo,
  top: async () => (await import('./top/top.ts')).top,
  migrate: async () => (await import('./migrate.ts')).migrate,
  sync: async () => (await import('./sync.ts')).sync,
  verify: async () => (await import('./verify.ts')).verify,
  rebalance: async () => (await import('./rebalance.ts')).rebalance,
  recover: async () => (await import('./recover.ts')).recover,
  doctor: async () => (await import('./doctor/doctor.ts')).doctor,
  rehearse: async () => (await import('./rehearse/rehearse.ts')).rehearse,
};
const GROUPS: Readonly<Record<string, { summary: string; load: Load<readonly CommandSpec[]> }>> = {
  sale: {
    summary: 'create, list, show, change and delete sales',
    load: async () => (await import('./sale/commands.ts')).SALE_COMMANDS,
  },
  order: {
    summary: 'list, show, export, edit, pay, cancel, redeem and refund orders',
    load: async () => (await import('./order/commands.ts')).ORDER_COMMANDS,
  },
  buyer: {
    summary: 'erase a buyer',
    load: async () => (await import('./buyer.ts')).BUYER_COMMANDS,
  },
  events: {
    summary: 'list and re-send order events that the webhook did not accept',
    load: async () => (await import('./events/commands.ts')).EVENT_COMMANDS,
  },
  queue: {
    summary: 'show the queue of a sale, stop and pace its offers, check its draw',
    load: async () => (await import('./queue/commands.ts')).QUEUE_COMMANDS,
  },
};

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
  // A command that comes first is the only one that can be meant. The help and the completion need all of them.
  const first = argv[2] ?? '';
  const isKnown = Object.hasOwn(COMMANDS, first) || Object.hasOwn(GROUPS, first);
  const isCalled = (name: string) => !isKnown || name === first;
  for (const [name, load] of Object.entries(COMMANDS)) {
    if (isCalled(name)) addCommand(program, await load(), surroundings);
  }
  for (const [name, { summary, load }] of Object.entries(GROUPS)) {
    if (!isCalled(name)) continue;
    const group = program.command(name).summary(summary).description(sentence(summary));
    for (const spec of await load()) addCommand(group, spec, surroundings);
    group.showHelpAfterError(`(stockade ${name} has: ${namesIn(group)}; add --help for more)`);
  }
  if (isCalled('completion')) {
    const { completionOf } = await import('./completion/completion.ts');
    addCommand(program, completionOf(program), surroundings);
  }
  program.showHelpAfterError(`(stockade has: ${namesIn(program)}; add --help for more)`);
  await program.parseAsync(withHelpAsFlag(program, argv));
  return exitCode;
}

/**
 * Turns `help sale create` and `sale help create` into `sale create --help`. Commander's own `help` looks at one word only, ends
 * with the exit code that the process has so far, and answers a word that it does not know with the whole help.
 */
function withHelpAsFlag(program: Command, argv: readonly string[]): readonly string[] {
  const words = argv.slice(2);
  const isGroup = program.commands.some((each) => each.commands.length > 0 && each.name() === words[0]);
  const at = isGroup ? 1 : 0;
  if (words[at] !== 'help') return argv;
  const asked = words.toSpliced(at, 1);
  const path: string[] = [];
  let command = program;
  for (const word of asked) {
    // What follows the name of a command is for the command.
    if (command.commands.length === 0 || word === 'help' || word.startsWith('-')) break;
    const next = command.commands.find((each) => each.name() === word);
    // Without `help`, commander says that there is no such command, and which one may be meant.
    if (next === undefined) return [...argv.slice(0, 2), ...asked];
    command = next;
    path.push(word);
  }
  return [...argv.slice(0, 2), ...path, '--help'];
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
