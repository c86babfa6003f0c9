/** Each port describes itself, over both HTTP servers: for programs, as a page, and with a page for each code. */
import { Agent, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lint } from '../../../scripts/lint-descriptions.mjs';
import { type OpsHost, serveOps } from '../../../src/http/ops/ops-server.ts';
import { type PublicHost, servePublic } from '../../../src/http/public/public-server.ts';
import type { Listener } from '../../../src/http/server/listener.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';
import { ANY_PORT } from '../../support/http/http-server.ts';
import { HTTP_SERVERS } from '../../support/http/http-servers.ts';
import { openBrowser, violationsOn } from '../../support/pages/console-browser.ts';
import { isRelease } from '../../support/tier.ts';

const OPS = { token: 'a token', sales: {}, queues: {}, orders: {}, buyers: {}, events: {}, console: {} };
/** `stockade sync` has no operations. */
const SYNC = { token: 'a token' };
const PATHS = ['/openapi.json', '/docs', '/problems', '/problems/internal'];

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const linted = new Map<string, Promise<string[]>>();

/** What the linter finds. Both servers serve the same texts, and to check one takes half a second. */
function lintOnce(text: string, port: string): Promise<string[]> {
  const found = linted.get(text) ?? lint(text, port);
  linted.set(text, found);
  return found;
}

/** `fetch` would add headers of its own. */
function get(url: string, headers: Record<string, string> = {}, agent?: Agent): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, ...(agent && { agent }) }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, body }));
    });
    sent.on('error', reject).end();
  });
}

describe.each(HTTP_SERVERS)('over %s', (kind) => {
  const faults: unknown[] = [];
  const listeners: Listener[] = [];
  const urls: Record<string, string> = {};

  beforeAll(async () => {
    const { open } = await chooseHttpServer(kind);
    const fault = (error: unknown) => faults.push(error);
    const ports = {
      public: servePublic({ fault } as unknown as PublicHost, open, ANY_PORT),
      ops: serveOps({ ...OPS, fault } as unknown as OpsHost, open, ANY_PORT),
      sync: serveOps({ ...SYNC, fault } as unknown as OpsHost, open, ANY_PORT),
    };
    for (const [name, listening] of Object.entries(ports)) {
      const listener = await listening;
      listeners.push(listener);
      urls[name] = `http://127.0.0.1:${listener.port}`;
    }
  });
  afterAll(async () => {
    await Promise.all(listeners.map((listener) => listener.drain(1_000)));
    expect(faults).toEqual([]);
  });

  describe.each(['public', 'ops', 'sync'])('the %s port', (port) => {
    test.each(PATHS)('answers %s to everybody, and once only to a client that keeps it', async (path) => {
      const first = await get(urls[port] + path);
      const etag = String(first.headers.etag);
      expect(first).toMatchObject({
        status: 200,
        headers: {
          'cache-control': 'no-cache',
          'x-content-type-options': 'nosniff',
          'content-length': String(Buffer.byteLength(first.body)),
        },
      });
      expect(etag).toMatch(/^"[\w-]{16}"$/);
      // Several on one connection: what follows an answer without a body must be found.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      // Over uWebSockets.js, one in sixteen also closes the connection.
      for (const sent of Array.from({ length: 50 }, (_, i) => (i % 2 ? etag : `"x", W/${etag}`))) {
        const again = await get(urls[port] + path, { 'if-none-match': sent }, agent);
        expect(again).toMatchObject({ status: 304, body: '' });
        expect(again.headers).toMatchObject({ etag, 'cache-control': 'no-cache' });
        for (const name of ['content-length', 'content-type', 'transfer-encoding'])
          expect(again.headers).not.toHaveProperty(name);
      }
      expect(await get(urls[port] + path, { 'if-none-match': '"x"' }, agent)).toMatchObject({
        status: 200,
        body: first.body,
      });
      agent.destroy();
    });

    test('its pages load nothing, and run nothing', async () => {
      for (const path of ['/docs', '/problems', '/problems/internal']) {
        const { headers } = await get(urls[port] + path);
        expect(headers['content-type']).toBe('text/html; charset=utf-8');
        expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /);
        expect(headers['content-security-policy']).not.toMatch(/script-src|unsafe|https?:|\*/);
      }
    });

    test('each code of its description has its page, and no other code has', async () => {
      const { components } = JSON.parse((await get(`${urls[port]}/openapi.json`)).body);
      const codes: string[] = components.schemas.ProblemCode.enum;
      expect(codes.length).toBeGreaterThan(port === 'sync' ? 5 : 15);
      for (const code of codes) {
        const { type } = components.examples[code].value;
        const { status, body } = await get(new URL(type, `${urls[port]}/v1/orders/1`).href);
        expect({ code, status }).toEqual({ code, status: 200 });
        expect(body).toContain(`<code>${code}</code>`);
      }
      for (const name of [
        'nope',
        'constructor',
        '__proto__',
        port === 'public' ? 'archived' : 'sold_out',
        ...(port === 'sync' ? ['wrong_state'] : []),
      ])
        expect((await get(`${urls[port]}/problems/${name}`)).status, name).toBe(404);
    });

    // Both servers serve the same text.
    test.runIf(kind === 'uws' || isRelease)('a linter finds nothing in what it serves', async () => {
      const { headers, body } = await get(`${urls[port]}/openapi.json`);
      expect(headers['content-type']).toBe('application/json');
      const found = await lintOnce(body, port);
      // A process with few routes still has the values of all.
      expect(found.filter((line) => port !== 'sync' || !line.includes('no-unused-components'))).toEqual([]);
    });
  });

  test('a problem names a page of the port that has answered', async () => {
    for (const port of ['public', 'ops']) {
      const { body } = await get(`${urls[port]}/nowhere/else`);
      expect(JSON.parse(body)).toMatchObject({ type: '/problems/not_found', code: 'not_found' });
    }
  });

  test('a process describes the routes that it has', async () => {
    const pathsOf = async (port: string) =>
      Object.keys(JSON.parse((await get(`${urls[port]}/openapi.json`)).body).paths);
    expect(await pathsOf('sync')).toEqual([
      ...['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/problems', '/problems/{code}'],
    ]);
    expect((await pathsOf('ops')).length).toBeGreaterThan(25);
  });
});

describe('the linter', () => {
  test('finds an example that does not fit, and an operation without an answer for faults of the client', async () => {
    const { open } = await chooseHttpServer('node');
    const listener = await servePublic({} as PublicHost, open, ANY_PORT);
    const { body } = await get(`http://127.0.0.1:${listener.port}/openapi.json`);
    await listener.drain(1_000);
    const wrong = JSON.parse(body);
    const { post } = wrong.paths['/v1/sales/{saleId}/orders'];
    post.responses['201'].content['application/json'].example.quantity = 'two';
    wrong.paths['/docs'].get.responses = { 200: { description: 'The page' } };
    const found = await lint(JSON.stringify(wrong), 'wrong');
    expect(found).toHaveLength(2);
    expect(found[0]).toContain('no-invalid-media-type-examples');
    expect(found[1]).toContain('operation-4xx-response');
  });
});

// The pages load and run nothing, as the tests above say.
if (isRelease)
  describe('in a browser', () => {
    const views = [
      ['dark', 360],
      ['light', 1_280],
      ['dark', 1_280],
      ['light', 360],
    ] as const;
    test.each(views)('the pages are readable, %s, %i wide, and need no script', async (scheme, width) => {
      const { open } = await chooseHttpServer('node');
      const listener = await serveOps(OPS as unknown as OpsHost, open, ANY_PORT);
      const browser = await openBrowser();
      try {
        const context = await browser.newContext({
          viewport: { width, height: 800 },
          colorScheme: scheme,
        });
        const page = await context.newPage();
        const complaints: string[] = [];
        const asked: string[] = [];
        page.on('console', (message) => complaints.push(message.text()));
        page.on('request', (sent) => asked.push(sent.url()));
        for (const path of ['/docs', '/problems', '/problems/unavailable']) {
          await page.goto(`http://127.0.0.1:${listener.port}${path}`);
          const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
          expect(wide, `${path} is wider than the window`).toBeLessThanOrEqual(0);
          expect(await violationsOn(page), path).toEqual([]);
        }
        expect(asked.filter((url) => !url.startsWith('data:'))).toHaveLength(3);
        expect(complaints).toEqual([]);
      } finally {
        await browser.close();
        await listener.drain(1_000);
      }
    });
  });
