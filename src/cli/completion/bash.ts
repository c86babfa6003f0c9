/** The completion script for bash, from 3.2 on: macOS has no newer one. It needs no package of completions. */
import { type CompletedCommand, type CompletedOption, type Value, withPaths } from './command-tree.ts';
import { saleIds } from './sale-ids.ts';

export function bashScript(tree: CompletedCommand): string {
  const all = [...withPaths(tree)];
  return `# Completion of stockade for bash. To use it: eval "$(stockade completion bash)"

# Sets what the command has: its subcommands, its options, and those of its options that take a value.
_stockade_command() {
  commands='' options='' valued=''
  case $1 in
${all.map(([path, command]) => commandCase(path, command)).join('\n')}
  esac
}

# Completes the value of an option ("sale delete|--export") or of an argument ("sale delete|1").
_stockade_value() {
  case $1 in
${valueCases(all).join('\n')}
  esac
}

_stockade_words() {
  COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_stockade_files() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$1"))
  compopt -o filenames 2>/dev/null
}

${FOLLOW}
complete -F _stockade stockade
`;
}

function commandCase(path: string, { commands, options }: CompletedCommand): string {
  const names = (some: readonly CompletedOption[]) => some.flatMap((option) => option.names).join(' ');
  const set = [
    ...(commands.length === 0 ? [] : [`commands='${commands.map(({ name }) => name).join(' ')}'`]),
    `options='${names(options)}'`,
    `valued='${names(options.filter(({ value }) => value !== undefined))}'`,
  ];
  return `    '${path}') ${set.join(' ')} ;;`;
}

/** One case for all places that are completed alike. */
function valueCases(all: readonly (readonly [string, CompletedCommand])[]): string[] {
  const places = new Map<string, string[]>();
  const add = (place: string, value: Value | undefined) => {
    const work = value === undefined ? undefined : workFor(value);
    if (work !== undefined) places.set(work, [...(places.get(work) ?? []), `'${place}'`]);
  };
  for (const [path, { options, args }] of all) {
    for (const { names, value } of options) for (const name of names) add(`${path}|${name}`, value);
    args.forEach(({ value }, i) => {
      add(`${path}|${i + 1}`, value);
    });
  }
  return [...places].map(([work, patterns]) => `    ${patterns.join(' | ')}) ${work} ;;`);
}

function workFor(value: Value): string | undefined {
  switch (value.kind) {
    case 'words':
      return `_stockade_words '${value.words.join(' ')}' "$2"`;
    case 'file':
      return '_stockade_files "$2"';
    case 'sale':
      return `_stockade_words "$(${saleIds('"$3"')})" "$2"`;
    case 'text':
      return undefined;
  }
}

/**
 * Bash splits words at `:` and `=` too, so `--ops-url http://shop:9090` is six words. A word that begins with a hyphen is never taken for
 * the value of an option: some options have a value that may be left out.
 */
const FOLLOW = `_stockade() {
  local cur=\${COMP_WORDS[COMP_CWORD]} path='' place=1 option='' word i
  local commands options valued
  COMPREPLY=()
  _stockade_command ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == = && i -eq COMP_CWORD-1 ]]; then
      continue
    elif [[ -n $word && -z \${word//[:=]/} ]]; then
      # Bash has split here: what follows still belongs to the word before.
      option=''
      ((i++))
    elif [[ -n $option && $word != -* ]]; then
      option=''
    elif [[ $word == -* ]]; then
      option=''
      [[ " $valued " == *" $word "* ]] && option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      path=\${path:+$path }$word
      _stockade_command "$path"
    else
      ((place++))
    fi
  done
  if ((i > COMP_CWORD)); then return; fi
  if [[ $cur == = ]]; then cur=''; fi
  if [[ -n $option && $cur != -* ]]; then
    _stockade_value "$path|$option" "$cur" "\${COMP_WORDS[0]}"
  elif [[ $cur == -* ]]; then
    _stockade_words "$options" "$cur"
  elif [[ -n $commands ]]; then
    _stockade_words "$commands" "$cur"
  else
    _stockade_value "$path|$place" "$cur" "\${COMP_WORDS[0]}"
  fi
}
`;
