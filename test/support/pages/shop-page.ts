/** The page of examples/shop-page/ in a real browser, with a node that it sells from. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page, Route } from 'playwright-core';
// @ts-expect-error The example is JavaScript.
import { createShop } from '../../../examples/shop-page/server.js';
import { startTestNode, type TestNode } from '../nodes/node.ts';
import { embedded, makeSale } from '../nodes/stores.ts';

const JWT_SECRET = 'a-secret-of-the-tests-with-enough-characters';
const WAIT_MS = 90_000;

export interface ShopLook {
  readonly width?: number;
  readonly scheme?: 'light' | 'dark';
}

interface GivenAnswer {
  readonly status: number;
  readonly body: string;
}

export class ExampleShop implements AsyncDisposable {
  readonly node: TestNode;
  readonly origin: string;
  readonly #server: Server;
  readonly #settings: { saleId: string };

  private constructor(node: TestNode, origin: string, server: Server, settings: { saleId: string }) {
    [this.node, this.origin, this.#server, this.#settings] = [node, origin, server, settings];
  }

  static async open(env: Record<string, string> = {}): Promise<ExampleShop> {
    const settings = {
      ...{ shopUrl: '', opsUrl: '', opsToken: '', saleId: '', jwtSecret: JWT_SECRET },
      client: new URL('../../../dist/client/', import.meta.url),
    };
    const server: Server = createShop(settings);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const node = await startTestNode({
      ...(await embedded()),
      env: { BUYER_AUTH: 'jwt', JWT_SECRET, CORS_ORIGINS: origin, ...env },
    });
    Object.assign(settings, { shopUrl: node.publicUrl, opsUrl: node.opsUrl, opsToken: node.opsToken });
    return new ExampleShop(node, origin, server, settings);
  }

  /** Makes a sale with a title and a price, unless `spec` says otherwise. @returns its id */
  sell(spec: Record<string, unknown> = {}): Promise<string> {
    const usual = { title: 'Front row', stock: 10, segments: 1, priceMinor: 4_900, currency: 'EUR' };
    return makeSale(this.node, { ...usual, ...spec });
  }

  /** Opens the page about a sale, for a new buyer. */
  async visit(browser: Browser, saleId: string, look: ShopLook = {}): Promise<ShopVisit> {
    this.#settings.saleId = saleId;
    const visit = await ShopVisit.open(browser, this.origin, look);
    await visit.page.locator('#live', { hasText: /live/ }).waitFor();
    return visit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node[Symbol.asyncDispose]();
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export class ShopVisit implements AsyncDisposable {
  readonly page: Page;
  /** What the browser complains about. */
  readonly complaints: string[] = [];
  /** The answers to the page's requests, such as `POST /session 200`. */
  readonly answers: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.on('response', (answer) =>
      this.answers.push(`${answer.request().method()} ${new URL(answer.url()).pathname} ${answer.status()}`),
    );
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      // The browser reports each refused request as an error. Refusals are part of these tests.
      if (message.type() === 'error' && !/^Failed to load resource/.test(message.text()))
        this.complaints.push(message.text());
    });
  }

  static async open(browser: Browser, origin: string, { width = 1_280, scheme = 'light' }: ShopLook) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    const visit = new ShopVisit(page);
    await page.goto(origin);
    return visit;
  }

  /** Answers each purchase of the page by this function, instead of the node. It counts the keys, and returns them. */
  async answering(answer: (nth: number) => GivenAnswer | 'cut'): Promise<readonly (string | undefined)[]> {
    const keys: (string | undefined)[] = [];
    await this.page.route('**/v1/sales/*/orders', async (route: Route) => {
      if (route.request().method() !== 'POST') return route.fallback();
      keys.push(route.request().headers()['idempotency-key']);
      const given = answer(keys.length);
      if (given === 'cut') return route.abort();
      const headers = {
        'content-type': 'application/problem+json',
        'access-control-allow-origin': new URL(this.page.url()).origin,
        'access-control-allow-credentials': 'true',
      };
      return route.fulfill({ ...given, headers });
    });
    return keys;
  }

  /** Presses the button. */
  async buy(): Promise<void> {
    await this.page.locator('#buy:enabled').click();
  }

  /** Waits until the page says this about the purchase. */
  async told(title: string): Promise<void> {
    await this.page.locator('#outcome h2', { hasText: title }).waitFor();
  }

  /** Waits until the element has a text like this. */
  async shows(selector: string, text: string | RegExp): Promise<void> {
    await this.page.locator(selector, { hasText: text }).first().waitFor();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
  }
}
