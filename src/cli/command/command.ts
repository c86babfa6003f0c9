/** What all commands share: settings as flags, `--json`, examples in the help, a checked configuration, a log. */
import { type Command, Option } from 'commander';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { defaultText } from '../../config/describe.ts';
import { loadConfig } from '../../config/load-config.ts';
import { misspeltIn, misspeltText } from '../../config/misspelt.ts';
import { groupOf, type Setting, type SettingName, settings, settingsFor } from '../../config/settings.ts';
import { createLog } from '../../node/process/log.ts';
import { type ExitCode, UsageError } from '../terminal/explain.ts';

export interface Invocation {
  readonly config: Config;
  /** Writes to stderr. */
  readonly log: Logger;
  readonly json: boolean;
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

export interface CommandSpec {
  /** With its arguments, as commander writes them: `create <id>`. */
  readonly name: string;
  readonly summary: string;
  /** Paragraphs after the summary. */
  readonly details?: string;
  readonly options?: readonly Option[];
  /** The words that its first argument can be. Missing: any. */
  readonly argChoices?: readonly string[];
  /** Settings that are flags of this command. The others come from the environment and the defaults. */
  readonly settings: readonly SettingName[];
  /** Defaults of this command that differ from the settings' own. */
  readonly defaults?: Partial<Record<SettingName, unknown>>;
  /** Settings with a fixed value in this command; the environment can't change them. */
  readonly fixed?: Partial<Record<SettingName, unknown>>;
  readonly examples: readonly string[];
  run(invocation: Invocation): Promise<ExitCode>;
}

/** Log level of commands that end by themselves: they log what goes wrong only. */
export const QUIET = { logLevel: 'warn' } as const;

/** Settings of commands that work on sales: they name the stores, or a running node. */
export const SALE_SETTINGS: readonly SettingName[] = [
  ...settingsFor('command', 'Stores', 'Operators'),
  'logLevel',
];

/** Settings of commands that ask a running node and no store. The operators' token may be in the data folder. */
export const NODE_SETTINGS: readonly SettingName[] = [
  ...settingsFor('command', 'Operators'),
  'dataDir',
  'logLevel',
];

/** Where a command line gets its settings from, and what it calls with its exit code. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  finished(exitCode: ExitCode): void;
}

export function addCommand(parent: Command, spec: CommandSpec, { env, finished }: Surroundings): Command {
  const command = parent.command(spec.name).summary(spec.summary).description(describe(spec));
  command.showHelpAfterError(`(example: ${firstExample(spec)}\n add --help for all arguments and options)`);
  if (spec.argChoices) command.registeredArguments[0]!.choices(spec.argChoices);
  for (const option of spec.options ?? []) command.addOption(option);
  command.option('--json', 'print one JSON object on stdout and nothing else there');
  for (const name of spec.settings) addSetting(command, name, spec.defaults?.[name]);
  command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  ${line}\n`).join('')}`);
  return command.action(async (...params: unknown[]) => {
    const self = params.at(-1) as Command;
    refuseEmpty(self);
    const options = self.opts<Record<string, unknown>>();
    // A wrong setting in the environment must not stop a command that uses none.
    const used = spec.settings.length === 0 ? {} : env;
    const config = loadConfig(used, { ...options, ...spec.fixed }, spec.defaults, spec.settings);
    const args = self.processedArgs.filter((arg) => arg !== undefined) as string[];
    const log = createLog(config, { stderr: true });
    for (const misspelt of misspeltIn(used, spec.settings))
      log.warn(`the environment variable ${misspelt.variable} ${misspeltText(misspelt)}`);
    finished(await spec.run({ config, log, json: options.json === true, args, options }));
  });
}

/** Refuses an empty argument, for which a node would answer that it has no such route. @throws UsageError */
function refuseEmpty({ registeredArguments, processedArgs }: Command): void {
  const empty = registeredArguments.find((_, i) => processedArgs[i] === '');
  if (empty)
    throw new UsageError(`<${empty.name()}> is empty: if it is a variable of the shell, that is not set`);
}

function describe({ summary, details }: CommandSpec): string {
  return details === undefined ? sentence(summary) : `${sentence(summary)}\n\n${details}`;
}

export function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

/** The first example. If it has several lines in the help, they are joined. */
function firstExample({ examples }: CommandSpec): string {
  const end = examples.findIndex((line) => !line.endsWith('\\'));
  return examples
    .slice(0, end + 1)
    .map((line) => line.replace(/\\$/, '').trim())
    .join(' ');
}

function addSetting(command: Command, name: SettingName, fallback: unknown): void {
  const setting: Setting<unknown> = settings[name];
  if (setting.flag === undefined) return;
  const standard = fallback === undefined ? defaultText(setting) : String(fallback);
  const text = `${setting.description.replace(/\.$/, '')} (${setting.env}; default: ${standard})`;
  command.addOption(new Option(setting.flag, text.replaceAll('`', '')).helpGroup(`${groupOf(name)}:`));
}
