/**
 * What a shell can complete: the commands as their help shows them, and what is known of each value. It is read from
 * commander, so that a new command, option or choice is completed without a change here.
 */
import type { Argument, Command, Option } from 'commander';

/** A value that a shell can complete. */
export type Value =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'file' }
  /** The id of an existing sale. */
  | { readonly kind: 'sale' }
  /** Anything: nothing is offered. */
  | { readonly kind: 'text' };

export interface CompletedOption {
  /** `-h`, `--help`. */
  readonly names: readonly string[];
  readonly summary: string;
  /** The name of its value, as the help has it. Missing: the option has none. */
  readonly placeholder?: string;
  readonly value?: Value;
  /** The option may stand without its value. */
  readonly isValueOptional: boolean;
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  readonly args: readonly { readonly name: string; readonly value: Value }[];
  /** Of a group, such as `sale`. */
  readonly commands: readonly CompletedCommand[];
}

export function commandTree(command: Command): CompletedCommand {
  const help = command.createHelp();
  return {
    name: command.name(),
    summary: command.summary() || command.description(),
    options: help.visibleOptions(command).map(completedOption),
    args: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      value: valueFor(argument.name(), argument.argChoices),
    })),
    // Commander adds `help`, which has no summary of its own.
    commands: help.visibleCommands(command).map(commandTree),
  };
}

/** All commands and groups, each with the words that lead to it: `''`, `sale`, `sale close`. */
export function* withPaths(tree: CompletedCommand, path = ''): Generator<[string, CompletedCommand]> {
  yield [path, tree];
  for (const command of tree.commands) yield* withPaths(command, `${path} ${command.name}`.trim());
}

function completedOption({ short, long, flags, description, argChoices, optional }: Option): CompletedOption {
  const names = [short, long].filter((name) => name !== undefined);
  const [, placeholder] = /[<[](.+)[>\]]$/.exec(flags) ?? [];
  return {
    names,
    summary: description,
    isValueOptional: optional,
    ...(placeholder !== undefined && { placeholder, value: valueFor(placeholder, argChoices) }),
  };
}

/** Placeholders have meanings: `<file>`, `<path>`, `<sale>`, and `<on|off>` for one of these words. */
function valueFor(placeholder: string, choices: Argument['argChoices'] | undefined): Value {
  if (choices !== undefined) return { kind: 'words', words: choices };
  if (placeholder === 'sale') return { kind: 'sale' };
  const words = placeholder.split('|');
  if (words.includes('file') || placeholder === 'path') return { kind: 'file' };
  return words.length > 1 ? { kind: 'words', words } : { kind: 'text' };
}
