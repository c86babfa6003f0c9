/** Pages of other origins at the public port, over both HTTP servers: CORS_ORIGINS decides which may read answers. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseOrigins } from '../../../src/admission/origins.ts';
import { type PublicHost, servePublic } from '../../../src/http/public/public-server.ts';
import { Connections } from '../../../src/http/server/connections.ts';
import { Cors } from '../../../src/http/server/cors.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';
import { ANY_PORT } from '../../support/http/http-server.ts';
import { HTTP_SERVERS, type HttpServerKind } from '../../support/http/http-servers.ts';
import { openBrowser } from '../../support/pages/console-browser.ts';
import { isRelease } from '../../support/tier.ts';

const SHOP = 'https://shop.example';
const BUY = '/v1/sales/tickets/orders';
const asks = (method: string) => ({
  'access-control-request-method': method,
  'access-control-request-headers': 'idempotency-key,x-buyer-id',
});

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

function send(url: string, method: string, headers: Record<string, string> = {}): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, body }));
    });
    sent.on('error', reject).end();
  });
}

const corsOf = ({ headers }: Answered) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith('access-control-') || name === 'vary'),
  );

/** @param origins CORS_ORIGINS */
async function openPort(
  kind: HttpServerKind,
  origins: string | undefined,
  { most = 100, gate }: { most?: number; gate?: PublicHost['gate'] } = {},
) {
  const faults: unknown[] = [];
  const work: string[] = [];
  const { open } = await chooseHttpServer(kind);
  const host = {
    cors: origins === undefined ? undefined : new Cors(parseOrigins(origins)!),
    gate,
    engine: { isShedding: () => true },
    authenticate: () => {
      work.push('authenticated');
      return { refused: { reason: 'missing', detail: 'no buyer' }, scheme: 'Bearer' };
    },
    readSale: async () => {
      work.push('read');
      return undefined;
    },
    answered: () => work.push('sold'),
    readDeadlineMs: 1_000,
    fault: (error: unknown) => faults.push(error),
  };
  const listener = await servePublic(host as unknown as PublicHost, open, ANY_PORT, new Connections(most));
  onTestFinished(async () => {
    await listener.drain(1_000);
    expect(faults).toEqual([]);
  });
  return { url: `http://127.0.0.1:${listener.port}`, work };
}

describe.each(HTTP_SERVERS)('over %s', (kind) => {
  const EXPOSED = expect.stringMatching(/^(?=.*\bETag\b)(?=.*\bRetry-After\b)(?=.*\bWWW-Authenticate\b)/);
  const SHARED = {
    vary: 'Origin',
    'access-control-allow-origin': SHOP,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': EXPOSED,
  };
  const PUBLIC = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED };

  test('without the setting no answer says anything to pages of other origins', async () => {
    const { url } = await openPort(kind, undefined);
    for (const path of ['/v1/sales/tickets', '/openapi.json', '/nowhere'])
      expect(corsOf(await send(url + path, 'GET', { origin: SHOP }))).toEqual({});
    const preflight = await send(url + BUY, 'OPTIONS', { origin: SHOP, ...asks('POST') });
    expect(preflight.status).toBe(405);
    expect(corsOf(preflight)).toEqual({});
  });

  test('a named origin may read every answer, refusals too', async () => {
    const { url } = await openPort(kind, `${SHOP},http://localhost:3000`);
    const paths = ['/v1/sales/tickets', '/v1/orders', '/openapi.json', '/problems/busy', '/nowhere'];
    const answers = await Promise.all(paths.map((path) => send(url + path, 'GET', { origin: SHOP })));
    expect(answers.map(({ status }) => status)).toEqual([404, 401, 200, 200, 404]);
    for (const answer of answers) expect(corsOf(answer)).toEqual(SHARED);
    const shed = await send(url + BUY, 'POST', { origin: SHOP, 'content-length': '0' });
    expect(shed.status).toBe(503);
    expect(corsOf(shed)).toEqual(SHARED);
    const unclear = await send(`${url}/v1/orders`, 'GET', { origin: SHOP, 'transfer-encoding': 'chunked' });
    expect(unclear.status).toBe(400);
    expect(corsOf(unclear)).toEqual(SHARED);
    const wrongMethod = await send(`${url}/v1/orders`, 'PUT', { origin: SHOP });
    expect(wrongMethod.status).toBe(405);
    expect(corsOf(wrongMethod)).toEqual(SHARED);
    const { etag } = answers[2]!.headers;
    const kept = await send(`${url}/openapi.json`, 'GET', { origin: SHOP, 'if-none-match': String(etag) });
    expect(kept.status).toBe(304);
    expect(corsOf(kept)).toEqual(SHARED);
  });

  test.each([
    ['https://other.example'],
    ['https://shop.example.other.example'],
    ['https://shop.example:444'],
    ['http://shop.example'],
    ['HTTPS://SHOP.EXAMPLE'],
    ['null'],
    [''],
  ])('no other origin may, and caches are told: %s', async (origin) => {
    const { url } = await openPort(kind, SHOP);
    expect(corsOf(await send(`${url}/openapi.json`, 'GET', { origin }))).toEqual({ vary: 'Origin' });
    const preflight = await send(url + BUY, 'OPTIONS', { origin, ...asks('POST') });
    expect(preflight.status).toBe(405);
    expect(corsOf(preflight)).toEqual({ vary: 'Origin' });
  });

  test('with * every page may, and none with cookies', async () => {
    const { url } = await openPort(kind, '*');
    for (const origin of [SHOP, 'null', ''])
      expect(corsOf(await send(`${url}/v1/orders`, 'GET', { origin }))).toEqual(PUBLIC);
    const preflight = await send(url + BUY, 'OPTIONS', { origin: SHOP, ...asks('POST') });
    expect(preflight.status).toBe(204);
    expect(corsOf(preflight)).toMatchObject(PUBLIC);
    expect(preflight.headers).not.toHaveProperty('access-control-allow-credentials');
  });

  test('a preflight is answered with the methods of the route, and nothing else is done', async () => {
    const { url, work } = await openPort(kind, SHOP);
    const preflight = await send(url + BUY, 'OPTIONS', { origin: SHOP, ...asks('POST') });
    expect(preflight).toMatchObject({ status: 204, body: '' });
    expect(corsOf(preflight)).toEqual({
      ...SHARED,
      'access-control-allow-methods': 'POST, GET',
      'access-control-allow-headers': expect.stringMatching(
        /Authorization.*Idempotency-Key.*Place-Token.*X-Buyer-Id/,
      ),
      'access-control-max-age': '600',
    });
    for (const name of ['content-length', 'transfer-encoding', 'content-type'])
      expect(preflight.headers).not.toHaveProperty(name);
    expect(work).toEqual([]);
    // Neither is a preflight.
    expect((await send(url + BUY, 'OPTIONS', { origin: SHOP })).status).toBe(405);
    expect((await send(`${url}/nowhere`, 'OPTIONS', { origin: SHOP, ...asks('GET') })).status).toBe(404);
  });

  test('a preflight counts for the limits of the address and of connections', async () => {
    const gated = await openPort(kind, SHOP, { gate: () => problem('rate_limited') });
    const limited = await send(gated.url + BUY, 'OPTIONS', { origin: SHOP, ...asks('POST') });
    expect(limited.status).toBe(429);
    expect(corsOf(limited)).toEqual(SHARED);
    const full = await openPort(kind, SHOP, { most: 0 });
    const shed = await send(full.url + BUY, 'OPTIONS', { origin: SHOP, ...asks('POST') }).catch(
      () => undefined,
    );
    // Above the limit a new connection may be closed without an answer.
    if (shed) expect(shed).toMatchObject({ status: 503, headers: { vary: 'Origin' } });
  });
});

/** A server with one page, on a port of its own. @returns the origin of the page */
async function openSite(): Promise<string> {
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html');
    answer.end('<!doctype html><title>shop</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

// The pages of shops in `test/integration/client/` have another origin than their node, too.
if (isRelease) {
  test('a page of a named origin reads a problem and its headers in a browser; a page of another origin reads nothing', async () => {
    const [shop, other] = [await openSite(), await openSite()];
    const { url } = await openPort('node', shop);
    const browser = await openBrowser();
    onTestFinished(() => browser.close());
    const ask = async (origin: string) => {
      const page = await browser.newPage();
      await page.goto(origin);
      return page.evaluate(`fetch(${JSON.stringify(url + BUY)}, {
      method: 'POST', headers: { 'idempotency-key': '"k"', authorization: 'Bearer x' }, credentials: 'include',
    }).then(
      async (answer) => [answer.status, (await answer.json()).code, answer.headers.get('retry-after')],
      (error) => error.name,
    )`);
    };
    expect(await ask(shop)).toEqual([503, 'busy', '1']);
    expect(await ask(other)).toBe('TypeError');
  });
}
