/** `stockade demo --queue` as a visitor sees it, from the lobby to the verdict. */
import { exec } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RunningCli, runCli } from '../support/cli/cli.ts';
import { hasTerminals, stockade, Terminal } from '../support/cli/terminal.ts';
import { until } from '../support/fixtures.ts';
import { openBrowser, violationsOn } from '../support/pages/console-browser.ts';
import { ShopVisit } from '../support/pages/shop-page.ts';

let cwd: string;
let browser: Browser;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'stockade-demo-queue-'));
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  rmSync(cwd, { recursive: true });
});

const HELD = { oversold: 0, undersold: 0, overtaken: 0, verify: 'ok', holds: true };

/** What the page says about them now; NaN if it says nothing. */
async function peopleAhead(page: Page): Promise<{ readonly title: string; readonly count: number }> {
  const ids = ['queue-title', 'queue-number', 'queue-what'];
  const [title, count, what] = await page.evaluate<string[]>(
    `${JSON.stringify(ids)}.map((id) => document.getElementById(id).textContent)`,
  );
  return { title: title!, count: /ahead of you/.test(what!) ? Number(count) : Number.NaN };
}

/** The demo has ended: its page says so, and does not promise a place in a shop that is gone. */
async function isGone({ page, complaints }: ShopVisit) {
  await page.getByText('The demo has ended: its shop can’t be reached any more.').waitFor();
  for (const part of ['#queue-actions', '#form', '#live'])
    expect(await page.locator(part).isVisible()).toBe(false);
  expect(complaints).toEqual([]);
}

test.each(['fifo', 'draw'])(
  '%s, without a terminal: nobody is overtaken, and no file is left',
  async (order) => {
    const args = `demo --queue ${order} --json --stock 20 --buyers 60 --opens-in 3`;
    const { exitCode, stdout, stderr } = await runCli(args.split(' '), { cwd });
    expect(JSON.parse(stdout), stderr).toMatchObject({ ...HELD, scenario: 'queue', order, sold: 20 });
    expect(exitCode).toBe(0);
    expect(existsSync(join(cwd, '.stockade'))).toBe(false);
  },
);

test.runIf(hasTerminals)(
  'a visitor takes a place in the lobby, and buys; node and page run until Ctrl-C',
  async () => {
    const env = { NO_COLOR: '1' };
    await using terminal = new Terminal(stockade('demo --queue --stock 30 --buyers 60 --opens-in 20'), {
      cwd,
      env,
    });
    await terminal.sees(/Open http:\S+ now/);
    const [, origin] = /Open (http:\S+) now/.exec(terminal.shown)!;
    await using visit = await ShopVisit.open(browser, origin!, { width: 360, scheme: 'dark' });
    const { page } = visit;
    // So that people are ahead of the visitor, who go on one by one.
    await visit.shows('#crowd .meter', /^Waiting\s*(1[5-9]|[23]\d)$/);
    await visit.buy();
    await visit.shows('#queue-title', /You have place \d+/);
    await visit.shows('#crowd', 'The lobby: the sale opens in');
    expect(await violationsOn(page)).toEqual([]);
    const inLobby = await peopleAhead(page);
    expect(inLobby.count).toBeGreaterThanOrEqual(15);
    await until(
      async () => {
        const { title, count } = await peopleAhead(page);
        return title === 'You are in the queue' && count > 0 && count < inLobby.count;
      },
      { what: 'fewer people are ahead of the visitor', timeoutMs: 90_000 },
    );
    await visit.shows('#queue-title', 'It is your turn');
    await page.getByRole('button', { name: 'Buy 1 unit' }).click();
    await visit.told('It is yours');
    await page.getByRole('button', { name: /^Pay order/ }).click();
    await visit.shows('#list .badge', 'paid');
    await visit.shows('#crowd .verdict', 'nobody was overtaken');
    await visit.shows('#state', 'Over');
    expect(await violationsOn(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    await terminal.sees('run until Ctrl-C');
    terminal.press('\x03');
    expect(await terminal.ended).toBe(0);
    await isGone(visit);
    expect(terminal.shown).toContain('Holds: 30 units went to 30 buyers in their turn');
    expect(visit.complaints).toEqual([]);
  },
);

test('draw --keep: the commands that it prints show that the draw is right', async () => {
  const args = 'demo --queue draw --keep --stock 20 --buyers 60 --opens-in 3';
  await using demo = new RunningCli(args.split(' '), { cwd, env: {} });
  const [, folder] = await demo.said(/run until Ctrl-C; the data stays in (\S+)\.$/m);
  const [commands] = await demo.said(/^curl .*\n.* queue check .*$/m);
  const { stdout } = await promisify(exec)(commands, { cwd, env: { PATH: process.env.PATH } });
  expect(stdout).toMatch(/: the draw is right, \d+ numbers$/m);
  expect(stdout).toContain('the commitment is the one that you gave');
  const [, shown] = await demo.said(/bound by the commitment ([0-9a-f]{64})\.$/m);
  expect(commands).toContain(`--commitment ${shown}`);
  const [, origin] = await demo.said(/the page (http:\S+) run until Ctrl-C/);
  await using visit = await ShopVisit.open(browser, origin!, { width: 390 });
  await visit.shows('#state', 'Over');
  await visit.page.getByText('How the draw can be checked').click();
  await visit.shows('#draw-facts dd', shown!);
  await visit.shows('#draw-facts dt', 'Seed');
  expect(await violationsOn(visit.page)).toEqual([]);
  demo.signal('SIGINT');
  expect((await demo.ended).exitCode).toBe(0);
  await isGone(visit);
  expect(existsSync(join(cwd, folder!))).toBe(true);
  rmSync(join(cwd, '.stockade'), { recursive: true });
});

test('Ctrl-C in the lobby: exit code 130, no file is left, and the page says that the shop is gone', async () => {
  await using demo = new RunningCli('demo --queue'.split(' '), { cwd, env: {} });
  const [, origin] = await demo.said(/Open (http:\S+) now, and get a place yourself/);
  await using visit = await ShopVisit.open(browser, origin!, {});
  await visit.buy();
  await visit.shows('#queue-title', /You have place \d+/);
  demo.signal('SIGINT');
  expect((await demo.ended).exitCode).toBe(130);
  await isGone(visit);
  await visit.shows('#state', 'Not reachable');
  expect(existsSync(join(cwd, '.stockade'))).toBe(false);
});
