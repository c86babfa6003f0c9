/** The completion scripts in the shells that they are for. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { hasTerminals, Terminal } from '../../support/cli/terminal.ts';
import { until } from '../../support/fixtures.ts';

let cwd: string;

/** A program in place of Stockade, which has two sales, and a server behind it that answers what a shell would run. */
const STAND_IN = `stockade() {
  printf '%s\\n' "sale state" "tickets open" '$(touch\${IFS}ran) open' "coupons closed" "" "More: --after x"
}`;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'stockade-completion-'));
  for (const shell of ['bash', 'zsh']) {
    const { exitCode, stdout } = await callCli(['completion', shell]);
    expect(exitCode).toBe(0);
    writeFileSync(join(cwd, `completion.${shell}`), `${STAND_IN}\n${stdout}`);
  }
  writeFileSync(join(cwd, 'orders.csv'), '');
});

afterAll(() => rmSync(cwd, { recursive: true }));

test('another shell is refused, and the message names those that are known', async () => {
  const { exitCode, stderr } = await callCli(['completion', 'fish']);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('Allowed choices are bash, zsh.');
});

const TOP_LEVEL = ['serve', 'demo', 'verify', 'recover', 'sale', 'order', 'buyer', 'events', 'completion'];

/** A line up to the cursor, and what may come there: some of it, or all of it. */
const CASES: readonly (readonly [string, { has?: readonly string[]; is?: readonly string[] }])[] = [
  ['stockade ', { has: TOP_LEVEL }],
  ['stockade reb', { is: ['rebalance'] }],
  ['stockade sale cl', { is: ['close'] }],
  ['stockade sale close ', { is: ['tickets', 'coupons'] }],
  ['stockade sale close --by ann ti', { is: ['tickets'] }],
  ['stockade sale create ', { is: [] }],
  ['stockade sale top-up tickets --un', { is: ['--units'] }],
  ['stockade buyer erase ann --sale c', { is: ['coupons'] }],
  ['stockade order pay 17 --pay-type c', { has: ['card'] }],
  ['stockade order export tickets --output ord', { is: ['orders.csv'] }],
  ['stockade completion ', { is: ['bash', 'zsh'] }],
  ['stockade demo --queue --kee', { is: ['--keep'] }],
  ['stockade demo --queue --keep --se', { is: ['--seed', '--segments'] }],
  ['stockade demo --queue --keep d', { is: [] }],
  ['stockade demo --queue d', { is: ['draw'] }],
  ['stockade serve --sync o', { is: ['on', 'off'] }],
];

function check(found: readonly string[], { has, is }: (typeof CASES)[number][1]): void {
  if (has) expect(found).toEqual(expect.arrayContaining([...has]));
  if (is) expect([...found].sort()).toEqual([...is].sort());
}

describe('bash', () => {
  /** What `_stockade` offers for these words, of which the last is at the cursor. */
  async function offered(words: readonly string[]): Promise<string[]> {
    const script = `source ./completion.bash
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _stockade
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script, 'bash', ...words], { cwd });
    return stdout.split('\n').filter((line) => line !== '');
  }

  test.each(CASES)('%s', async (line, expected) => check(await offered(line.split(' ')), expected));

  // Readline splits words at these characters.
  test.each<[string[], string[]]>([
    [
      ['stockade', 'sale', 'show', '--ops-url', 'http', ':', '//shop', ':', '9090', ''],
      ['tickets', 'coupons'],
    ],
    [['stockade', 'serve', '--sync', '=', 'of'], ['off']],
    [
      ['stockade', 'serve', '--sync', '='],
      ['on', 'off'],
    ],
    [['stockade', 'sale', 'show', '--ops-url', '=', 'http', ':', '//shop', 't'], ['tickets']],
    [['stockade', 'sale', 'show', 'a', ':', 'ti'], []],
  ])('%j', async (words, expected) => expect(await offered(words)).toEqual(expected));

  test('nothing that a server answers is run', async () => {
    await offered(['stockade', 'sale', 'show', '']);
    expect(() => readFileSync(join(cwd, 'ran'))).toThrow();
  });

  test.runIf(hasTerminals)('Tab completes in a terminal', async () => {
    await using bash = new Terminal("PS1='> ' exec bash --norc", { cwd });
    bash.press('source ./completion.bash; echo rea""dy\n');
    await bash.sees('ready');
    bash.press('echo "<"; : stock\x15');
    bash.press('stockade sale clo\ttick\t--rea\tx');
    await bash.sees('stockade sale close tickets --reason x');
  });
});

describe.runIf(hasTerminals)('zsh', () => {
  /** Writes what a Tab offers into a file, instead of showing it. */
  const RECORD = `
    autoload -Uz compinit && compinit -u -d ./zcompdump
    source ./completion.zsh
    compadd() {
      # With -O, -A or -D it fills an array, and offers nothing.
      if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
      local -a all
      builtin compadd -A all "$@"
      (( $#all )) && print -rl -- $all >> ./offered
      builtin compadd "$@"
    }
    after() { print -r -- 'end of offer' >> ./offered }
    record() { : > ./offered; comppostfuncs=(after); zle complete-word; BUFFER= }
    zle -C complete-word complete-word _main_complete
    zle -N record
    bindkey '^I' record
    unsetopt beep`;

  let zsh: Terminal;

  beforeAll(async () => {
    writeFileSync(join(cwd, 'record.zsh'), RECORD);
    zsh = new Terminal("PS1='> ' exec zsh -f -i", { cwd, columns: 200 });
    zsh.press('source ./record.zsh; echo rea""dy\n');
    await zsh.sees('ready');
  });

  afterAll(() => zsh[Symbol.asyncDispose]());

  async function offered(line: string): Promise<string[]> {
    rmSync(join(cwd, 'offered'), { force: true });
    zsh.press(`${line}\t`);
    const read = () => {
      try {
        return readFileSync(join(cwd, 'offered'), 'utf8');
      } catch {
        return '';
      }
    };
    await until(() => read().includes('end of offer'), {
      what: `zsh completes ${line}; ${zsh.shown}`,
      timeoutMs: 30_000,
    });
    return read()
      .split('\n')
      .filter((word) => word !== '' && word !== 'end of offer');
  }

  test.each(CASES)('%s', async (line, expected) => check([...new Set(await offered(line))], expected));
});
