/** The operators' console in a real browser, as an operator sees it. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { findServer } from '../../../scripts/servers.mjs';
import type { TestNode } from '../nodes/node.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Longer than anything takes on a busy machine. */
const WAIT_MS = 90_000;

export interface ConsoleLook {
  readonly width?: number;
  readonly scheme?: 'light' | 'dark';
}

export async function openBrowser(): Promise<Browser> {
  const folder = findServer('chromium');
  if (!folder) throw new Error('Chromium not found: run `node scripts/ensure-servers.mjs chromium`');
  // Its sandbox does not work as root. It opens nothing but the pages of a node under test.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: join(folder, 'chromium'), args, timeout: WAIT_MS });
}

/** A page with the console of a node. It collects what the browser complains about, violations of the policy too. */
export class ConsolePage {
  readonly page: Page;
  readonly complaints: string[] = [];
  readonly #node: TestNode;

  private constructor(page: Page, node: TestNode) {
    this.page = page;
    this.#node = node;
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      // The browser reports each refused request as an error. Refusals are part of these tests.
      if (message.type() === 'error' && !/^Failed to load resource/.test(message.text()))
        this.complaints.push(message.text());
    });
  }

  static async open(
    browser: Browser,
    node: TestNode,
    { width = 1_280, scheme = 'light' }: ConsoleLook = {},
  ): Promise<ConsolePage> {
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme: scheme });
    page.setDefaultTimeout(WAIT_MS);
    const opened = new ConsolePage(page, node);
    await page.goto(`${node.opsUrl}/console`);
    return opened;
  }

  async signIn(token = this.#node.opsToken, name = 'ann'): Promise<void> {
    await this.page.getByLabel('Ops token').fill(token);
    await this.page.getByLabel('Your name (optional)').fill(name);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
  }

  /** Shows the place of the console that this hash names, such as `/sale/tickets`. */
  async goTo(hash: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  }

  /** Opens a dialog with a button, fills its fields, and presses the button that does it. @returns what the dialog said */
  async confirm(open: string, go: string, fields: Readonly<Record<string, string>> = {}): Promise<string> {
    await this.page.getByRole('button', { name: open, exact: true }).click();
    return this.inDialog(go, fields);
  }

  /** As `confirm`, in the dialog that is open. */
  async inDialog(go: string, fields: Readonly<Record<string, string>> = {}): Promise<string> {
    const dialog = this.page.getByRole('dialog');
    for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value);
    const said = await dialog.locator('.what').innerText();
    await dialog.getByRole('button', { name: go, exact: true }).click();
    return said;
  }

  /** The dialog is closed, because the node has done what it asked for. */
  done(): Promise<void> {
    return this.page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  /** The reason that the dialog shows. */
  async refusal(): Promise<string> {
    const shown = this.page.getByRole('dialog').getByRole('alert').filter({ hasText: /./ });
    await shown.waitFor();
    return shown.innerText();
  }

  violations(): Promise<string[]> {
    return violationsOn(this.page);
  }

  /** How many pixels the page is wider than its window. */
  async overflow(): Promise<number> {
    return (await this.page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number;
  }

  async close(): Promise<void> {
    await this.page.close();
  }
}

/** What an accessibility check finds on a page as it is now, one line each. */
export async function violationsOn(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { target: string[] }[] }[];
  };
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join('; ')}`);
}
