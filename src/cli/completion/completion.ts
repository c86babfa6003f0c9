import type { Command } from 'commander';
import type { CommandSpec } from '../command/command.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { bashScript } from './bash.ts';
import { commandTree } from './command-tree.ts';
import { zshScript } from './zsh.ts';

const SCRIPTS = { bash: bashScript, zsh: zshScript } as const;

/** @param program the whole program, when all commands are added */
export function completionOf(program: Command): CommandSpec {
  return {
    name: 'completion <shell>',
    summary: 'print a script with which a shell completes commands, options and sales',
    details:
      'The script completes the word `stockade`: a program on the PATH or a function, not an alias. Sales are completed if ' +
      'a node or the stores can be reached with the settings in the environment; a call takes some tenths of a second.',
    argChoices: Object.keys(SCRIPTS),
    settings: [],
    examples: [
      'eval "$(stockade completion bash)"    in ~/.bashrc',
      'eval "$(stockade completion zsh)"     in ~/.zshrc, after compinit',
    ],
    async run({ json, args }) {
      const shell = args[0] as keyof typeof SCRIPTS;
      const script = SCRIPTS[shell](commandTree(program));
      if (json) printJson({ shell, script });
      else print(script.trimEnd());
      return EXIT_OK;
    },
  };
}
