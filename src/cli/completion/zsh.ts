/** The completion script for zsh: a function for each group of commands, made of the specs of `_arguments`. */
import type { CompletedCommand, CompletedOption, Value } from './command-tree.ts';
import { saleIds } from './sale-ids.ts';

export function zshScript(tree: CompletedCommand): string {
  const groups = [tree, ...tree.commands.filter(isGroup)];
  return `#compdef stockade
# Completion of stockade for zsh. To use it: eval "$(stockade completion zsh)", after compinit.

_stockade_sales() {
  local -a ids
  ids=(\${(f)"$(${saleIds('$program')})"})
  compadd "$@" -a ids
}

${groups.map((group) => groupFunction(group, group === tree)).join('\n')}
# Called by compinit if this is a file of fpath; otherwise read by \`source\`.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _stockade "$@"
else
  compdef _stockade stockade
fi
`;
}

const isGroup = ({ commands }: CompletedCommand) => commands.length > 0;

function groupFunction(group: CompletedCommand, isRoot: boolean): string {
  const commands = group.commands.map(({ name, summary }) => quoted(`${name}:${summary}`));
  return `${isRoot ? '_stockade' : functionOf(group)}() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands
${isRoot ? '  local program=$words[1]\n' : ''}  commands=(
${commands.map((command) => `    ${command}`).join('\n')}
  )
  _arguments -C ${[...group.options.map(optionSpec), "'1:command:->command'", "'*::argument:->argument'"].join(' \\\n    ')}
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
${group.commands.map(commandCase).join('\n')}
      esac
      ;;
  esac
}
`;
}

function commandCase(command: CompletedCommand): string {
  if (isGroup(command)) return `        ${command.name}) ${functionOf(command)} ;;`;
  const args = command.args.map(
    ({ name, value }, i) => `'${i + 1}:${inSpec(name)}:${quotedPart(actionFor(value))}'`,
  );
  const specs = [...command.options.map(optionSpec), ...args];
  return `        ${command.name}) _arguments ${specs.map((spec) => `\\\n          ${spec}`).join(' ')} ;;`;
}

const functionOf = ({ name }: CompletedCommand) => `_stockade_${name}`;

function optionSpec({ names, summary, placeholder, value, isValueOptional }: CompletedOption): string {
  const colon = isValueOptional ? '::' : ':';
  const takes = value && placeholder ? `${colon}${inSpec(placeholder)}:${actionFor(value)}` : '';
  const rest = `${takes && '='}${quoted(`[${inSpec(inShort(summary))}]${takes}`)}`;
  if (names.length === 1) return `${names[0]}${rest}`;
  return `'(${names.join(' ')})'{${names.join(',')}}${rest}`;
}

/** The first sentence, without what is in brackets: zsh shows it on one line. */
function inShort(summary: string): string {
  return summary.split(/\. | \(/)[0]!;
}

function actionFor(value: Value): string {
  switch (value.kind) {
    case 'words':
      return `(${value.words.join(' ')})`;
    case 'file':
      return '_files';
    case 'sale':
      return '_stockade_sales';
    case 'text':
      return ' ';
  }
}

/** In a spec, colons and brackets separate its parts. */
function inSpec(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, '\\$&');
}

function quoted(text: string): string {
  return `'${quotedPart(text)}'`;
}

function quotedPart(text: string): string {
  return text.replaceAll("'", "'\\''");
}
