/** The sessions of the README and of all parts of the tutorial, pasted into a shell beside a node: they print what the pages say. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { RunningCli } from '../../support/cli/cli.ts';
import { comparable, runSession, sessionOf } from '../../support/cli/doc-session.ts';
import { LONG_TIMEOUTS_ENV } from '../../support/long-timeouts.ts';
import { embeddedData } from '../../support/nodes/embedded-data.ts';
import { inTier } from '../../support/tier.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SESSION_LIMIT_MS = 180_000;

/** A folder that looks to the commands like the one of the repository, but for the node's data. */
function folderOfReader(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-reader-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(ROOT, 'dist'), join(folder, 'dist'));
  return folder;
}

/** The tutorial begins as the README does. */
const PAGES = inTier({
  test: ['README.md'],
  release: ['README.md', 'docs/tutorial.md', 'docs/tutorial-after-a-sale.md', 'docs/tutorial-queue.md'],
});

test.each(PAGES)('%s prints what it shows', async (page) => {
  const steps = sessionOf(readFileSync(join(ROOT, page), 'utf8'));
  expect(steps.some(({ printed }) => printed.includes('committed'))).toBe(true);
  const cwd = folderOfReader();
  const data = await embeddedData();
  if (data !== undefined) cpSync(data, join(cwd, '.stockade'), { recursive: true });
  await using node = new RunningCli(['serve', '--port', '0', '--ops-port', '0'], {
    cwd,
    env: LONG_TIMEOUTS_ENV,
  });
  const [line] = await node.said(/^.*Create a sale: .*$/m);
  const { publicUrl, opsUrl } = JSON.parse(line);
  const printed = await runSession(steps, {
    cwd,
    env: { PATH: process.env.PATH, PORT: new URL(publicUrl).port, OPS_PORT: new URL(opsUrl).port },
    timeout: SESSION_LIMIT_MS,
  });
  expect(comparable(printed)).toEqual(comparable(steps.map((step) => step.printed)));
});
