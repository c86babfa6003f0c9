/** `stockade top` on a node: printed, and drawn in a terminal. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConsolePicture } from '../../../src/operations/console/console-operations.ts';
import { callCli, RunningCli } from '../../support/cli/cli.ts';
import { hasTerminals, stockade, Terminal } from '../../support/cli/terminal.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';

let node: TestNode;
let env: NodeJS.ProcessEnv;

const start = async () =>
  startTestNode({
    redisUrl: redisUrl(),
    databaseUrl: await freshDatabase(),
    keyPrefix: freshPrefix(),
    env: { WORKERS: '1' },
  });

beforeAll(async () => {
  node = await start();
  env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
  await node.ops.create({ id: 'tickets', title: 'Front row', stock: 3 }, 'tests');
  await node.ops.create({ id: 'coupons', stock: 5 }, 'tests');
  expect(await node.buy('tickets', 'ann')).toMatchObject({ status: 201 });
});

afterAll(() => node[Symbol.asyncDispose]());

test('without a terminal it prints one picture', async () => {
  const { exitCode, stdout, stderr } = await callCli(['top'], { env });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).toContain(`Stockade at ${node.opsUrl}, `);
  expect(stdout).toMatch(/^node +\d+ requests\/s: \d+ orders\/s, \d+ refusals\/s, 0 not served\/s$/m);
  expect(stdout).toMatch(/^sync +\d+ orders behind, /m);
  expect(stdout).toMatch(/^tickets +selling +2 +3 +0 +1 +0 +████████···· +Front row$/m);
  expect(stdout).toMatch(/^coupons +selling +5 +5 /m);
});

test('--json prints a line for each picture; with --once it is one', async () => {
  const once = await callCli(['top', '--json', '--once', '--limit', '1'], { env });
  const { node: figures, list }: ConsolePicture = JSON.parse(once.stdout);
  expect(figures.value?.perSecond).toBeDefined();
  expect(list?.value?.sales).toMatchObject([{ id: 'coupons' }]);

  await using running = new RunningCli(['top', '--json'], { env });
  await running.said(/(\{.*\}\n){2}/);
  running.signal('SIGINT');
  const { exitCode, stdout } = await running.ended;
  expect(exitCode).toBe(0);
  for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('totals');
});

test.each([
  ['--state nope', 2, '--state must be one of open, paused, closed'],
  ['--limit 101', 2, '--limit must be a whole number from 0 to 100'],
  ['--ops-url http://127.0.0.1:1', 1, 'nothing listens at http://127.0.0.1:1.'],
])('%s: exit code %i', async (args, exitCode, message) => {
  const refused = await callCli(['top', ...args.split(' ')], { env });
  expect(refused).toMatchObject({ exitCode, stdout: '', stderr: expect.stringContaining(message) });
});

test('a node that refuses the token says so', async () => {
  const refused = await callCli(['top'], { env: { ...env, OPS_TOKEN: 'another-token-of-some-length' } });
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('refuses the token') });
});

describe.runIf(hasTerminals)('in a terminal', () => {
  const ENTERED = '\u001b[?1049h';
  const LEFT = '\u001b[?7h\u001b[?25h\u001b[?1049l';
  /** The last picture that was drawn, as lines without what sets their look. */
  const drawn = (shown: string) =>
    shown
      .split('\u001b[H')
      .at(-1)!
      .replaceAll(/\p{Cc}\[[\d;?]*[a-zA-Z]/gu, '')
      .split(/\r+\n/);

  test.each([
    ['q', 'q'],
    ['Ctrl-C', '\u0003'],
  ])('it draws each second, and %s leaves it and restores the screen', async (_, key) => {
    await using terminal = new Terminal(stockade('top'), { env });
    await terminal.sees('tickets');
    expect(terminal.shown).toContain(ENTERED);
    // The terminal may pass a picture on in pieces.
    await until(() => drawn(terminal.shown).length === 24, { what: 'the picture has 24 lines' });
    terminal.clear();
    await terminal.sees('Front row');
    terminal.press(key);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown.endsWith(LEFT)).toBe(true);
  });

  test('it fits a terminal that gets smaller', async () => {
    await using terminal = new Terminal(stockade('top'), { env });
    await terminal.sees('tickets');
    const resize = terminal.resizer();
    resize(30, 8);
    await until(() => drawn(terminal.shown).length === 8, { what: 'the picture has 8 lines' });
    for (const line of drawn(terminal.shown)) expect([...line].length).toBeLessThanOrEqual(30);
    terminal.press('q');
    expect(await terminal.ended).toBe(0);
  });

  test('while the node is away it shows the last picture, and says why', async () => {
    await using other = await start();
    const at = { OPS_URL: other.opsUrl, OPS_TOKEN: other.opsToken };
    await other.ops.create({ id: 'tickets', title: 'Front row', stock: 3 }, 'tests');
    await using terminal = new Terminal(stockade('top'), { env: at });
    await terminal.sees('Front row');
    await other.stop();
    await terminal.sees('No picture: nothing listens at');
    await until(() => drawn(terminal.shown).join('\n').includes('Front row'), { what: 'the last picture' });
    terminal.press('q');
    expect(await terminal.ended).toBe(0);
  });

  test('an error before the first picture is printed on the screen that stays', async () => {
    await using terminal = new Terminal(stockade('top'), { env: { OPS_URL: 'http://127.0.0.1:1' } });
    expect(await terminal.ended).toBe(1);
    expect(terminal.shown).toContain('error: nothing listens');
    expect(terminal.shown).not.toContain(ENTERED);
  });
});
