import { Argument, Command, Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { bashScript } from '../../../src/cli/completion/bash.ts';
import { commandTree, withPaths } from '../../../src/cli/completion/command-tree.ts';
import { zshScript } from '../../../src/cli/completion/zsh.ts';

/** A program that has commands of every form. */
function program(): Command {
  const made = new Command('stockade').version('1');
  made
    .command('verify [sale]')
    .summary("don't guess: count [all]")
    .addOption(new Option('--every <seconds>', 'pause. Not long (EVERY; default: 5)'))
    .addOption(new Option('--sync <on|off>', 'one of two'))
    .addOption(new Option('--output <file>', 'to a file'));
  const order = made.command('order').summary('orders');
  order
    .command('pay <id>')
    .summary('pay')
    .addOption(new Option('--pay-type <type>', 'how').choices(['card', 'cash']));
  made.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh']));
  return made;
}

const found = (path: string) => [...withPaths(commandTree(program()))].find(([place]) => place === path)![1];

describe('the tree of commands', () => {
  test('has groups, commands and what their help shows', () => {
    expect([...withPaths(commandTree(program()))].map(([path]) => path)).toEqual([
      '',
      'verify',
      'order',
      'order pay',
      'order help',
      'completion',
      'help',
    ]);
    expect(found('').options.map(({ names }) => names)).toEqual([
      ['-V', '--version'],
      ['-h', '--help'],
    ]);
  });

  test('knows of each value how it is completed', () => {
    const { options, args } = found('verify');
    expect(args).toEqual([{ name: 'sale', value: { kind: 'sale' } }]);
    expect(Object.fromEntries(options.map(({ names, value }) => [names.at(-1), value]))).toEqual({
      '--every': { kind: 'text' },
      '--sync': { kind: 'words', words: ['on', 'off'] },
      '--output': { kind: 'file' },
      '--help': undefined,
    });
    expect(found('order pay').options[0]!.value).toEqual({ kind: 'words', words: ['card', 'cash'] });
    expect(found('completion').args[0]!.value).toEqual({ kind: 'words', words: ['bash', 'zsh'] });
  });
});

test('the script for bash names each command with its options, and those that take a value', () => {
  const script = bashScript(commandTree(program()));
  expect(script).toContain(
    "'') commands='verify order completion help' options='-V --version -h --help' valued='' ;;",
  );
  expect(script).toContain(
    "'verify') options='--every --sync --output -h --help' valued='--every --sync --output' ;;",
  );
  expect(script).toContain(`'order pay|--pay-type') _stockade_words 'card cash' "$2" ;;`);
});

test('the script for zsh quotes what separates the parts of a spec, and shortens summaries', () => {
  const script = zshScript(commandTree(program()));
  expect(script).toContain("'verify:don'\\''t guess: count [all]'");
  expect(script).toContain("--every='[pause]:seconds: '");
  expect(script).toContain("--sync='[one of two]:on|off:(on off)'");
  expect(script).toContain("'1:sale:_stockade_sales'");
});
